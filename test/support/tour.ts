import { readFileSync } from 'node:fs';

/** A command of docs/tour.md and what it prints. */
export interface Step {
  readonly command: string;
  readonly output: string;
}

/** The commands of docs/tour.md by the titles of its sections. */
export function tourSteps(): ReadonlyMap<string, readonly Step[]> {
  const page = readFileSync(new URL('../../docs/tour.md', import.meta.url), 'utf8');
  const sections = page.split(/^## /m).slice(1);
  return new Map(
    sections.map((section): [string, readonly Step[]] => [section.split('\n')[0] ?? '', stepsOf(section)]),
  );
}

function stepsOf(section: string): readonly Step[] {
  const blocks = [...section.matchAll(/^```console\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
  return blocks.flatMap((block) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((step) => {
        const [command = '', ...lines] = step.split('\n');
        return { command, output: lines.join('\n') };
      }),
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
        .replace(/\bweb-[a-z0-9]{5,10}-[a-z0-9]{5}\b/g, 'web-pod')
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
