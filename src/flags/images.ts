import { texts, WrongValue } from './readers.ts';

/** Programs that stand for images (`--image`). */

/** Programs that `--image` can give an image by name; `emulation/containers/images.ts` has them. */
export const imagePrograms = ['server', 'agnhost', 'pause', 'commands'] as const;

/** What is asked of the files of this machine. */
export interface LocalFiles {
  /** Whether a path leads to a file that can be run. */
  readonly isExecutable: (path: string) => boolean;
  readonly isFolder: (path: string) => boolean;
  /** The path without links; of what is not there, the path itself. */
  readonly realPath: (path: string) => string;
}

/** The program of an image. */
export interface ImageChoice {
  /** With or without its tag. */
  readonly image: string;
  /** The name of a built-in program, or a file or folder of this machine. */
  readonly program: string;
}

/** `--image`: `ghcr.io/shop/tool=agnhost`. Programs by name are known ones. */
export function imageChoices(value: unknown): readonly ImageChoice[] {
  return texts(value).map((choice) => {
    const [, image = '', program = ''] = /^([^=\s]+)=(\S+)$/.exec(choice) ?? [];
    if (image === '') throw new WrongValue(`"${choice}" must be like ghcr.io/shop/tool=agnhost`);
    if (!isFile(program) && !imagePrograms.some((name) => name === program)) throw noProgram(image, program);
    return { image, program };
  });
}

/** Checks the files and folders of `--image`. @throws {WrongValue} for a file that cannot be run. */
export function existingPrograms(
  images: readonly ImageChoice[],
  { isExecutable, isFolder, realPath }: LocalFiles,
): readonly ImageChoice[] {
  for (const { image, program } of images.filter((each) => isFile(each.program))) {
    if (isFolder(program)) continue;
    if (!isExecutable(program)) throw noProgram(image, program);
    const hidden = ownOfContainers.find((folder) => realPath(program).startsWith(`${folder}/`));
    if (hidden === undefined) continue;
    const why = `containers have a ${hidden} of their own, and would not find it: put it into another folder`;
    throw new WrongValue(`"${program}" for "${image}": ${why}`);
  }
  return images;
}

/** Folders of which the machine's are not seen in containers. */
const ownOfContainers = ['/tmp', '/run', '/dev', '/proc', '/sys'];

function isFile(program: string): boolean {
  return program.startsWith('/');
}

function noProgram(image: string, program: string): WrongValue {
  const known = `the programs are ${imagePrograms.join(', ')}, and executable files and folders by their absolute path`;
  return new WrongValue(`there is no program "${program}" for "${image}": ${known}`);
}
