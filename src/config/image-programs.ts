import { WrongValue } from './errors.ts';
import { texts } from './flags.ts';

/** The program of an image. */
export interface ImageChoice {
  /** With or without its tag. */
  readonly image: string;
  /** The name of a built-in program, or a file of this machine. */
  readonly program: string;
}

/**
 * Reads `--image`: `ghcr.io/shop/tool=agnhost`.
 *
 * @param programs which there are, by name; for messages.
 * @param isProgram whether there is such a program.
 */
export function imageChoices(
  programs: readonly string[],
  isProgram: (name: string) => boolean,
): (value: unknown) => readonly ImageChoice[] {
  return (value) =>
    texts(value ?? []).map((text) => {
      const [, image = '', program = ''] = /^([^=\s]+)=(\S+)$/.exec(text) ?? [];
      if (image === '') throw new WrongValue(`"${text}" must be like ghcr.io/shop/tool=agnhost`);
      if (!isProgram(program)) {
        const known = `the programs are ${programs.join(', ')}, and executable files by their absolute path`;
        throw new WrongValue(`there is no program "${program}" for "${image}": ${known}`);
      }
      return { image, program };
    });
}
