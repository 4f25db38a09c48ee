import { cpus } from 'node:os';
import type { ProgramName } from '../../cluster/programs.ts';
import { figure, printTable, save } from '../report.ts';

/** What a figure has to be: at most or at least so much, or so many times the peer's. */
export interface Goal {
  readonly bound: '≤' | '≥';
  readonly value: number;
  /** The value counts the peer's figures. */
  readonly ofPeer?: true;
}

/** A line of the table. */
export interface Compared {
  readonly name: string;
  readonly unit: string;
  readonly ours: number;
  /** Absent where there is no peer, or none was measured. */
  readonly peer?: { readonly name: string; readonly value: number } | undefined;
  readonly goal?: Goal;
}

/** Programs of Debian, and their packages. */
export const packages = { haproxy: 'haproxy', dnsperf: 'dnsperf', nft: 'nftables', curl: 'curl' } as const;

/** A part of the benchmark, which says what it needs. */
export interface Part {
  readonly needs: readonly (keyof typeof packages)[];
  /** What it compares with. */
  readonly peers: readonly (ProgramName | keyof typeof packages)[];
  /** A peer that does its work for root alone. */
  readonly rootPeer?: ProgramName;
  /** @param isAlone without peers. */
  readonly measure: (isAlone: boolean) => Promise<readonly Compared[]>;
}

/** At most so much. */
export function atMost(value: number): Goal {
  return { bound: '≤', value };
}

/** At least so much. */
export function atLeast(value: number): Goal {
  return { bound: '≥', value };
}

/** At most so many times the peer's. */
export function atMostOfPeer(value: number): Goal {
  return { ...atMost(value), ofPeer: true };
}

/** At least so many times the peer's. */
export function atLeastOfPeer(value: number): Goal {
  return { ...atLeast(value), ofPeer: true };
}

const began = performance.now();

/** Says on standard error what goes on. */
export function progress(text: string): void {
  process.stderr.write(`${((performance.now() - began) / 1000).toFixed(0).padStart(5)} s  ${text}\n`);
}

/** Whether a goal is met; undefined: it counts a peer's figures, which are not there. */
function isMet({ ours, peer, goal }: Compared): boolean | undefined {
  if (goal === undefined) return undefined;
  const limit = goal.ofPeer === true ? peer && peer.value * goal.value : goal.value;
  if (limit === undefined) return undefined;
  return goal.bound === '≤' ? ours <= limit : ours >= limit;
}

function goalOf({ goal, unit }: Compared): string {
  if (goal === undefined) return '';
  const what = goal.ofPeer === true ? '× the peer' : unit;
  return `${goal.bound} ${String(goal.value)} ${what}`.trimEnd();
}

function verdictOf(row: Compared): string {
  if (row.goal === undefined) return '';
  const met = isMet(row);
  return met === undefined ? 'no peer' : met ? 'met' : 'MISSED';
}

/** A row in a few words, for those who wait for the table. */
export function lineOf(row: Compared): string {
  const peer = row.peer === undefined ? '' : ` (${row.peer.name}: ${figure(row.peer.value)})`;
  return `${row.name}: ${figure(row.ours)} ${row.unit}${peer} ${verdictOf(row)}`.trimEnd();
}

/** Prints the table, and writes bench-results/peers.json. */
export async function print(rows: readonly Compared[]): Promise<void> {
  const { length: cores, 0: first } = cpus();
  process.stdout.write(`${cores} cores (${first?.model ?? ''}), Node.js ${process.version}\n`);
  const of = ({ unit }: Compared, value: number): string => `${figure(value)} ${unit}`.trimEnd();
  printTable([
    ['', 'ours', 'peer', '', 'goal', ''],
    ...rows.map((row) => [
      ...[row.name, of(row, row.ours)],
      ...[row.peer === undefined ? '' : of(row, row.peer.value), row.peer?.name ?? ''],
      ...[goalOf(row), verdictOf(row)],
    ]),
  ]);
  const missed = rows.filter((row) => isMet(row) === false).length;
  const met = rows.filter((row) => isMet(row) === true).length;
  process.stdout.write(`${met} goals met, ${missed} missed\n`);
  await save(
    'peers',
    rows.map((row) => ({ ...row, met: isMet(row) })),
  );
}
