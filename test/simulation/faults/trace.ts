import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Hears what happens in a simulation, a line at a time; undefined: no trace. */
export type Trace = ((line: string) => unknown) | undefined;

/** Writes what happened in a seed, and at its end what was wrong, to a file of a folder, and answers its path. */
export function keepTrace(folder: string, seed: number, lines: readonly string[], report: string): string {
  const path = join(folder, `${seed}.log`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(path, `${lines.join('\n')}\n${report}\n`);
  return path;
}
