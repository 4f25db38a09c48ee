import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** What a page shows between fences, without the indentation of the list that it is in; `kind` is empty where none is named. */
export interface Block {
  readonly kind: string;
  readonly text: string;
}

/** A command of a page and what it prints. */
export interface Step {
  readonly command: string;
  readonly output: string;
}

/** The fenced blocks of a Markdown text, in their order. */
export function blocksOf(text: string): readonly Block[] {
  return [...text.matchAll(/^( *)```([a-z]*)\n([\s\S]*?)^\1```$/gm)].map(
    ([, indentation = '', kind = '', block = '']) => ({
      kind,
      text: block.replaceAll(new RegExp(`^${indentation}`, 'gm'), ''),
    }),
  );
}

/** The text of the block of a page of docs that begins with some words. @throws {Error} where there is none. */
export function blockOf(page: string, beginning: string): string {
  const text = readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8');
  const found = blocksOf(text).find((block) => block.text.startsWith(beginning));
  if (found === undefined) throw new Error(`${page} has no block that begins with ${beginning}`);
  return found.text;
}

/** The commands of a block. Those of `console` begin with `$ `, and what follows is their output; `sh` has nothing else. */
export function stepsOf({ kind, text }: Block): readonly Step[] {
  const steps: Step[] = [];
  for (const line of text.split('\n')) {
    const last = steps.at(-1);
    if (last !== undefined && last.output === '' && goesOn(last.command)) {
      steps.splice(-1, 1, { command: `${last.command}\n${line}`, output: '' });
    } else if (kind === 'console' ? line.startsWith('$ ') : line !== '') {
      steps.push({ command: line.replace(/^\$ /, ''), output: '' });
    } else if (last !== undefined) {
      steps.splice(-1, 1, { ...last, output: `${last.output}${line}\n` });
    }
  }
  return steps;
}

/** Whether a shell wants more lines: after a backslash, in a here-document, and in quotes, pipes and loops. */
function goesOn(command: string): boolean {
  const [, end] = /<<'?(\w+)/.exec(command) ?? [];
  if (end !== undefined) return !command.split('\n').includes(end);
  return command.endsWith('\\') || spawnSync('bash', ['-nc', command]).status !== 0;
}

/** The commands of docs/tour.md by the titles of its sections. */
export function tourSteps(): ReadonlyMap<string, readonly Step[]> {
  const page = readFileSync(new URL('../../docs/tour.md', import.meta.url), 'utf8');
  const sections = page.split(/^## /m).slice(1);
  return new Map(
    sections.map((section): [string, readonly Step[]] => [
      section.split('\n')[0] ?? '',
      blocksOf(section)
        .filter(({ kind }) => kind === 'console')
        .flatMap(stepsOf),
    ]),
  );
}

/** Sections whose commands need a cluster network. */
export const networkSections: readonly string[] = ['Traffic', 'Policies'];

/** The lines of an output with what is the same in every run: addresses, generated names, ports, ages and widths are not. */
export function comparableLines(output: string): string[] {
  return output
    .split('\n')
    .map((line) =>
      line
        .replace(/\b10\.244\.(\d+)\.\d+/g, '10.244.$1.x')
        .replace(/\b10\.96\.\d+\.\d+/g, '10.96.x.x')
        .replace(/\b172\.18\.\d+\.\d+:\d+/g, 'node:port')
        .replace(/\b172\.19\.255\.2:\d+/g, 'outside:port')
        .replace(/\b(web|cart|catalog|storefront)-[a-z0-9]{5,10}-[a-z0-9]{5}\b/g, '$1-pod')
        .replace(/\bweb-[a-z0-9]{5}\b/g, 'web-slice')
        .replace(/\b80:\d+\/TCP/g, '80:port/TCP')
        .replace(/\b(?:\d+[hm])?\d+[smh]\b/g, 'age')
        .replace(/10\.244\.\d\.x(?:,10\.244\.\d\.x)+/g, (list) => list.split(',').sort().join())
        // Of thirty connections: all of them, or some.
        .replace(/^ *(?!30 )\d+ web-pod$/, 'some web-pod')
        .replace(/(timed out after) \d+/, '$1 n')
        .replace(/(Failed to connect to web port 80) .*/, '$1')
        // Of kubectl 1.34 and later.
        .replace(/(" deleted) from \S+ namespace$/, '$1')
        .replace(/\s+/g, ' ')
        .trim(),
    )
    .filter((line) => line !== '');
}
