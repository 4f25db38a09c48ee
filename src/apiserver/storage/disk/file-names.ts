import fs from 'node:fs';
import path from 'node:path';
import type { FileLayer } from './files.ts';

/**
 * The logs of a data directory, numbered from 1, and its snapshots: snapshot n is the state before log n. A store starts
 * from a snapshot, or from the empty state before log 1, and replays all logs from there.
 */
export interface DirectoryListing {
  /** Ascending. */
  readonly logs: readonly number[];
  /** Ascending. */
  readonly snapshots: readonly number[];
  /** File names of incomplete snapshots. */
  readonly unfinished: readonly string[];
}

/** The suffix of a snapshot that is being written. */
const unfinishedSuffix = '.tmp';

/** The path of a log. */
export function logFile(directory: string, number: number): string {
  return path.join(directory, `log-${digits(number)}`);
}

/** The path of a complete snapshot. */
export function snapshotFile(directory: string, number: number): string {
  return path.join(directory, `snapshot-${digits(number)}`);
}

/** The path of a snapshot that is being written. */
export function unfinishedFile(directory: string, number: number): string {
  return snapshotFile(directory, number) + unfinishedSuffix;
}

/** The logs and snapshots in a directory. */
export function listDirectory(directory: string): DirectoryListing {
  const names = fs.readdirSync(directory);
  return {
    logs: numbers(names, /^log-(\d{10})$/),
    snapshots: numbers(names, /^snapshot-(\d{10})$/),
    unfinished: names.filter((name) => name.startsWith('snapshot-') && name.endsWith(unfinishedSuffix)),
  };
}

/** True when a directory has a log or snapshot with content. */
export function holdsStore(directory: string): boolean {
  const { logs, snapshots } = listDirectory(directory);
  const files = [
    ...logs.map((number) => logFile(directory, number)),
    ...snapshots.map((number) => snapshotFile(directory, number)),
  ];
  return files.some((file) => fs.statSync(file).size > 0);
}

/** Removes the logs and snapshots before a number. */
export function removeBefore(files: FileLayer, directory: string, number: number): void {
  const { logs, snapshots } = listDirectory(directory);
  for (const old of snapshots) if (old < number) files.remove(snapshotFile(directory, old));
  for (const old of logs) if (old < number) files.remove(logFile(directory, old));
}

function digits(number: number): string {
  return String(number).padStart(10, '0');
}

function numbers(names: readonly string[], pattern: RegExp): number[] {
  const found: number[] = [];
  for (const name of names) {
    const matched = pattern.exec(name)?.[1];
    if (matched !== undefined) found.push(Number(matched));
  }
  return found.sort((a, b) => a - b);
}
