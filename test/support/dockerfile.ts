import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import { recordAt } from '../../src/objects/json.ts';

/** One instruction of a Dockerfile: `COPY`, and what is behind it. */
export interface Instruction {
  readonly name: string;
  readonly text: string;
}

/** What is between one `FROM` and the next. */
export interface Stage {
  /** The name behind `AS`; the last stage, which becomes the image, has none. */
  readonly name: string;
  readonly instructions: readonly Instruction[];
}

/** The stages of a Dockerfile. */
export function stagesOf(file: string): Stage[] {
  const lines = readFileSync(file, 'utf8')
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n');
  const stages: { name: string; instructions: Instruction[] }[] = [];
  for (const line of lines) {
    const [, name = '', text = ''] = /^([A-Z]+) +(.*)$/.exec(line) ?? [];
    if (name === 'FROM') stages.push({ name: / AS (\S+)$/.exec(text)?.[1] ?? '', instructions: [] });
    else if (name !== '') stages.at(-1)?.instructions.push({ name, text });
  }
  return stages;
}

/** The words of an instruction that is written as JSON, such as `ENTRYPOINT`. */
export function wordsOf({ instructions }: Stage, name: string): string[] {
  const text = instructions.find((instruction) => instruction.name === name)?.text ?? '[]';
  const words: unknown = JSON.parse(text.slice(text.indexOf('[')));
  return Array.isArray(words) ? words.map(String) : [];
}

/** What a `COPY` copies: sources in another stage, or of the repository. @throws {Error} for other flags than `--from`. */
export function copyOf(text: string): { from: string | undefined; sources: string[]; target: string } {
  const words = text.split(' ');
  const from = words[0]?.startsWith('--from=') ? words.shift()?.slice('--from='.length) : undefined;
  if (words.some((word) => word.startsWith('--'))) throw new Error(`COPY ${text}: what would that copy?`);
  return { from, sources: words.slice(0, -1), target: words.at(-1) ?? '' };
}

/**
 * Builds stages below a directory, without a container: a folder for each is its file system. The base image is not
 * there, so what a stage runs before its `WORKDIR` is left out. `npm ci` takes the packages of this repository.
 */
export class Builder {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
    const modules = join(process.cwd(), 'node_modules');
    writeFileSync(
      this.#npm,
      `#!/bin/sh
set -e
case "$*" in
  'ci --ignore-scripts') ln -s '${modules}' node_modules ;;
  'ci --omit=dev --ignore-scripts') mv '${join(directory, 'production')}' node_modules ;;
  *) echo "npm $*: what would that do?" >&2; exit 1 ;;
esac
`,
    );
    chmodSync(this.#npm, 0o755);
    for (const path of productionPackages()) {
      cpSync(path, join(directory, path.replace('node_modules', 'production')), {
        recursive: true,
        filter: (file) => file === path || basename(file) !== 'node_modules',
      });
    }
  }

  get #npm(): string {
    return join(this.#directory, 'npm');
  }

  /** The root of the stage's files. @throws {Error} for what cannot be done here. */
  build({ name, instructions }: Stage): string {
    const root = this.#rootOf(name);
    let work: string | undefined;
    for (const { name: verb, text } of instructions) {
      if (verb === 'WORKDIR') {
        work = join(root, text);
        mkdirSync(work, { recursive: true });
      } else if (verb === 'COPY' && work !== undefined) {
        this.#copy(text, work);
      } else if (verb === 'RUN' && work !== undefined) {
        this.#run(text, work);
      }
    }
    return root;
  }

  #rootOf(stage: string): string {
    return join(this.#directory, 'stages', stage === '' ? 'image' : stage);
  }

  #copy(text: string, work: string): void {
    const { from, sources, target } = copyOf(text);
    for (const source of sources) {
      const path = from === undefined ? source : join(this.#rootOf(from), source);
      const into = join(work, target, target.endsWith('/') ? basename(source) : '');
      cpSync(path, into, { recursive: true, verbatimSymlinks: true });
    }
  }

  #run(command: string, work: string): void {
    if (/(^|\s)\//.test(command)) throw new Error(`RUN ${command}: it would touch this machine`);
    const path = [this.#directory, dirname(process.execPath), process.env['PATH']].join(delimiter);
    execFileSync('sh', ['-ec', command], { cwd: work, env: { ...process.env, PATH: path }, stdio: 'pipe' });
  }
}

/** The directories of what `npm ci --omit=dev` installs, those below others too; optional ones are for other platforms. */
function productionPackages(): string[] {
  const lock: unknown = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  const packages = recordAt(lock, 'packages');
  return Object.keys(packages).filter((path) => {
    const { dev, optional } = recordAt(packages, path);
    return path !== '' && dev !== true && (optional !== true || existsSync(path));
  });
}
