import { mkdir, writeFile } from 'node:fs/promises';
import { arch, cpus } from 'node:os';

/** One measured figure. */
export interface Row {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** The budget of DESIGN.md, as text; absent where there is none. */
  readonly budget?: string;
}

/** Prints the figures as a table and writes them to bench-results/<name>.json. */
export async function report(name: string, rows: readonly Row[]): Promise<void> {
  const cells = rows.map((row) => [row.name, figure(row.value), row.unit, row.budget ?? '']);
  const widths = [0, 1, 2, 3].map((column) => Math.max(...cells.map((line) => line[column]?.length ?? 0)));
  for (const [what = '', value = '', unit = '', budget = ''] of cells) {
    const line = `${what.padEnd(widths[0] ?? 0)}  ${value.padStart(widths[1] ?? 0)} ${unit.padEnd(widths[2] ?? 0)}  ${budget}`;
    process.stdout.write(`${line.trimEnd()}\n`);
  }
  const folder = new URL('../../bench-results/', import.meta.url);
  await mkdir(folder, { recursive: true });
  const machine = { node: process.version, arch: arch(), cores: cpus().length };
  await writeFile(
    new URL(`${name}.json`, folder),
    `${JSON.stringify({ name, machine, rows }, undefined, 2)}\n`,
  );
}

function figure(value: number): string {
  const digits = value >= 100 ? 0 : value >= 1 ? 1 : 3;
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
