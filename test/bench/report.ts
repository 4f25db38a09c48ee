import { mkdir, writeFile } from 'node:fs/promises';
import { arch, cpus, loadavg } from 'node:os';

/** One measured figure. */
export interface Row {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** CPU time of the measured process for one operation, in µs; absent where it is not measured. */
  readonly cpu?: number;
  /** The budget of DESIGN.md, as text; absent where there is none. */
  readonly budget?: string;
}

/** Prints the figures as a table and writes them to bench-results/<name>.json. */
export async function report(name: string, rows: readonly Row[]): Promise<void> {
  const withCpu = rows.some((row) => row.cpu !== undefined);
  const lines = rows.map((row) => [
    row.name,
    `${figure(row.value)} ${row.unit}`,
    ...(withCpu ? [row.cpu === undefined ? '' : `${figure(row.cpu)} µs CPU`] : []),
    row.budget ?? '',
  ]);
  printTable(lines);
  await save(name, rows);
}

/** Prints lines of cells, as wide as the widest of each column: the first and the last to the left. */
export function printTable(lines: readonly (readonly string[])[]): void {
  const widths = (lines[0] ?? []).map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  for (const line of lines) {
    const cells = line.map((cell, column) =>
      column === 0 || column === line.length - 1
        ? cell.padEnd(widths[column] ?? 0)
        : cell.padStart(widths[column] ?? 0),
    );
    process.stdout.write(`${cells.join('  ').trimEnd()}\n`);
  }
}

/** Writes what was measured to bench-results/<name>.json, and prints the load of the machine. */
export async function save(name: string, rows: readonly object[]): Promise<void> {
  const load = loadavg()[0] ?? 0;
  process.stdout.write(`load ${figure(load)}\n`);
  const folder = new URL('../../bench-results/', import.meta.url);
  await mkdir(folder, { recursive: true });
  const machine = { node: process.version, arch: arch(), cores: cpus().length, load };
  await writeFile(
    new URL(`${name}.json`, folder),
    `${JSON.stringify({ name, machine, rows }, undefined, 2)}\n`,
  );
}

/** With as many digits as its size deserves. */
export function figure(value: number): string {
  const digits = value >= 100 ? 0 : value >= 1 ? 1 : 3;
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
