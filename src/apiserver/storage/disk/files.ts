import fs from 'node:fs';
import { promisify } from 'node:util';
import path from 'node:path';
import { resolve } from 'node:path';

/**
 * The file operations that change the data directory. Tests replace them to simulate full disks, failed syncs and power
 * cuts.
 */
export interface FileLayer {
  /** Creates an empty file, or truncates an existing one. */
  create(path: string): WritableFile;
  /** Opens an existing file for writing. */
  open(path: string): WritableFile;
  rename(from: string, to: string): void;
  remove(path: string): void;
  /** Makes creations, renames and removals in a directory durable. */
  syncDirectory(path: string): void;
}

/** A file that is open for writing. */
export interface WritableFile {
  /** Writes all of `bytes` at `position`. */
  write(bytes: Buffer, position: number): Promise<void>;
  /** Resolves when what was written is durable. */
  sync(): Promise<void>;
  truncate(length: number): void;
  close(): void;
}

const write = promisify(fs.write);
const datasync = promisify(fs.fdatasync);

/** Smaller writes are synchronous: copying them into the page cache takes less than the thread pool. */
const synchronousBytes = 256 * 1024;

/** The file system. Only the owner may read files, since they contain Secrets. */
export const fileSystem: FileLayer = {
  create: (path) => writable(fs.openSync(path, 'w', 0o600)),
  open: (path) => writable(fs.openSync(path, 'r+')),
  rename: fs.renameSync,
  remove: fs.unlinkSync,
  syncDirectory(path) {
    const directory = fs.openSync(path, 'r');
    try {
      fs.fsyncSync(directory);
    } finally {
      fs.closeSync(directory);
    }
  },
};

function writable(file: number): WritableFile {
  return {
    async write(bytes, position) {
      let done = 0;
      // A short write is no error: the next write reports the cause.
      while (done < bytes.length) {
        const left = bytes.length - done;
        if (left <= synchronousBytes) done += fs.writeSync(file, bytes, done, left, position + done);
        else done += (await write(file, bytes, done, left, position + done)).bytesWritten;
      }
    },
    sync: () => datasync(file),
    truncate: (length) => fs.ftruncateSync(file, length),
    close: () => fs.closeSync(file),
  };
}

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

/**
 * Creates a directory and missing ones above it, for their owner only. Node's `recursive` loops forever where the system
 * reports ENOENT for an existing directory (in /proc).
 *
 * @param directory absolute.
 * @returns the topmost one that was created; undefined for none.
 * @throws {Error} of the system.
 */
export function makeDirectories(directory: string): string | undefined {
  const missing: string[] = [];
  for (let at = directory; !exists(at); at = path.dirname(at)) missing.unshift(at);
  for (const each of missing) {
    try {
      fs.mkdirSync(each, { mode: 0o700 });
    } catch (error) {
      // Another process may have created it just now.
      if (codeOf(error) !== 'EEXIST' || !exists(each)) throw error;
    }
  }
  if (!fs.statSync(directory).isDirectory()) {
    throw Object.assign(new Error(`${directory} is not a directory`), { code: 'ENOTDIR', path: directory });
  }
  return missing[0];
}

function exists(file: string): boolean {
  try {
    fs.statSync(file);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT' && file !== path.dirname(file)) return false;
    throw error;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error ? Reflect.get(error, 'code') : undefined;
}

/** Messages for system errors of files and directories. */
const problems: ReadonlyMap<string, string> = new Map([
  ['EACCES', 'this user may not write there: make it the owner, or name another place'],
  ['EDQUOT', 'the quota of this user is used up'],
  ['EEXIST', 'what is there is no directory'],
  ['EIO', 'the disk fails'],
  ['EISDIR', 'it is a directory'],
  ['ELOOP', 'symbolic links lead in a circle'],
  ['EMFILE', 'too many files are open'],
  ['ENAMETOOLONG', 'the name is too long'],
  ['ENFILE', 'too many files are open'],
  ['ENOENT', 'no directory can be made there'],
  ['ENOSPC', 'the disk is full: make room and start again'],
  ['ENOTDIR', 'it is a file, or below one'],
  ['EPERM', 'the system does not allow it'],
  ['EROFS', 'the file system is read-only: mount it for writing, or name another place'],
]);
/** SQLITE_FULL */
const sqliteFull = 13;

/**
 * Why a file or directory cannot be used, as a message for operators; undefined for other errors.
 *
 * @param place the path of the file or directory. The path in the error is added when it differs.
 */
export function fileProblem(error: unknown, place: string): string | undefined {
  if (!(error instanceof Error) || Reflect.get(error, 'syscall') === 'listen') return undefined;
  if (Reflect.get(error, 'errcode') === sqliteFull) return problems.get('ENOSPC');
  // Checks of Node itself have codes such as ERR_FS_EISDIR.
  const problem = problems.get(String(Reflect.get(error, 'code')).replace('ERR_FS_', ''));
  const named: unknown = Reflect.get(error, 'path');
  if (problem === undefined || typeof named !== 'string' || resolve(named) === resolve(place)) return problem;
  return `${problem} (${named})`;
}
