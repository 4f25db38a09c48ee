import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { asUser, makers } from './gate.ts';
import { end, pathWithoutBubblewrap, UpHome } from './up-process.ts';

/**
 * The tutorials and tasks of Kubernetes' documentation, in manifests and words of our own (test/tutorials): each command
 * prints what its user was promised. `$` begins a command, `?` one that is asked until it says so; the lines behind it are
 * what it prints, `…` is any text, and blanks count as one.
 */

const folder = join(import.meta.dirname, '../../tutorials');
const main = join(import.meta.dirname, '../../../src/main.js');

interface Step {
  readonly command: string;
  readonly isRepeated: boolean;
  readonly printed: readonly string[];
}

function stepsOf(text: string): readonly Step[] {
  return text
    .split(/^(?=[$?] )/m)
    .slice(1)
    .map((part) => {
      const [first = '', ...printed] = part.trimEnd().split('\n');
      return {
        command: first.slice(2),
        isRepeated: first.startsWith('?'),
        printed: printed.map(withoutBlanks),
      };
    });
}

function withoutBlanks(line: string): string {
  return line.trim().replaceAll(/\s+/g, ' ');
}

function fits(wanted: readonly string[], printed: readonly string[]): boolean {
  const pattern = wanted
    .map((line) =>
      line
        .split('…')
        .map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`))
        .join('.*'),
    )
    .join('\n');
  return new RegExp(`^${pattern}$`).test(printed.join('\n'));
}

/** Describes all of them, for a user without root, with the program that sandboxes are made with. */
export function describeTutorials(way: 'bubblewrap' | 'unshare'): void {
  const missing = makers.find(({ maker }) => maker === 'user')?.missing ?? 'a user';
  describe.skipIf(missing !== '')(
    `tutorials, for a user without root, by ${way}${missing === '' ? '' : ` (missing: ${missing})`}`,
    () => {
      const home = new UpHome('user');
      let up: ChildProcess;
      beforeAll(async () => {
        if (way === 'unshare') Object.assign(home.environment, { PATH: pathWithoutBubblewrap(home.folder) });
        up = await home.start([]);
      });
      afterAll(async () => {
        await end(up, 'SIGKILL');
        home.remove();
      });

      /** Both outputs of a command line. */
      const shell = async (line: string): Promise<readonly string[]> => {
        const script = `servicenet() { ${[...asUser, process.execPath, main].join(' ')} "$@"; }\n${line}`;
        const child = spawn('bash', ['-c', script], {
          cwd: folder,
          env: home.environment,
          stdio: ['ignore', 'pipe', 'pipe'],
        });
        let printed = '';
        child.stdout.on('data', (text) => (printed += String(text)));
        child.stderr.on('data', (text) => (printed += String(text)));
        await once(child, 'close');
        return printed.trimEnd().split('\n').map(withoutBlanks);
      };

      const names = readdirSync(folder).filter((name) => name.endsWith('.txt'));
      it.each(names.map((name) => basename(name, '.txt')))('%s', { timeout: 400_000 }, async (name) => {
        for (const { command, isRepeated, printed } of stepsOf(
          readFileSync(join(folder, `${name}.txt`), 'utf8'),
        )) {
          let said = await shell(command);
          const look = async (): Promise<string> => {
            if (fits(printed, said)) return printed.join('\n');
            const before = said.join('\n');
            if (isRepeated) said = await shell(command);
            return before;
          };
          const options = isRepeated ? { timeout: 120_000, interval: 300 } : { timeout: 0 };
          await expect.poll(look, { ...options, message: command }).toBe(printed.join('\n'));
        }
      });
    },
  );
}
