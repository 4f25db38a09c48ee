import fs from 'node:fs';
import path from 'node:path';

/** A file of the data directory is not as it was written. */
export class DamagedStorageError extends Error {
  override readonly name = 'DamagedStorageError';
  readonly file: string;
  /** The position in the file, in bytes. */
  readonly offset: number;
  constructor(file: string, offset: number, reason: string) {
    super(
      `${file} is damaged at byte ${offset}: ${reason}. Nothing was changed. ` +
        'Restore the data directory from a backup, or move it away to start empty.',
    );
    this.file = file;
    this.offset = offset;
  }
}

/** Another process uses the data directory. */
export class StorageLockedError extends Error {
  override readonly name = 'StorageLockedError';
  readonly directory: string;
  constructor(directory: string, holder: string | undefined) {
    super(`${directory} is in use by ${holder === undefined ? 'another process' : `process ${holder}`}`);
    this.directory = directory;
  }
}

/** The lock file has content, and lock files are empty. */
export class ForeignLockError extends Error {
  override readonly name = 'ForeignLockError';
  constructor(file: string, cause: unknown) {
    super(
      `${file} is not the lock of a data directory. If no other process uses the directory, remove the file: ` +
        'it holds nothing.',
      { cause },
    );
  }
}

/** The data directory has the identity of a server but none of its logs. */
export class MissingLogError extends Error {
  override readonly name = 'MissingLogError';
  constructor(directory: string, identity: string) {
    super(
      `${directory} has the identity of a server (${identity}) but none of its logs. Nothing was changed. ` +
        'Restore the logs from a backup, or move the directory away to start empty.',
    );
  }
}

/** The data directory cannot be created, read or written. */
export class UnusableDirectoryError extends Error {
  override readonly name = 'UnusableDirectoryError';
  readonly directory: string;
  constructor(directory: string, problem: string, cause: unknown) {
    super(`cannot keep the store in ${directory}: ${problem}`, { cause });
    this.directory = directory;
  }
}

/** SQLITE_BUSY: another process holds the lock. */
const sqliteBusy = 5;
/** SQLITE_NOTADB: the file is not empty, and not a database. */
const sqliteNotADatabase = 26;

/**
 * Locks a directory for this process; the returned function unlocks it. The lock has to end with the process, and to
 * hold between containers that share a volume, which process ids and abstract sockets do not. Advisory file locks of
 * the kernel do both. Node has no API for them, but SQLite takes one: an exclusive transaction on an empty database,
 * which is never written, is a POSIX lock on its file. (Nothing else in this process may open the lock file: closing
 * any descriptor of it releases the lock.)
 *
 * @throws {StorageLockedError} when another process, or another store in this one, has the lock.
 * @throws {ForeignLockError} when the lock file has content.
 */
export async function lockDirectory(directory: string): Promise<() => void> {
  // Imported on demand, since Node 22 warns that it is experimental.
  const { DatabaseSync } = await import('node:sqlite');
  const holder = path.join(directory, 'lock.pid');
  const file = path.join(directory, 'lock');
  createLockFile(file);
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    database.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    const code: unknown = error instanceof Error ? Reflect.get(error, 'errcode') : undefined;
    if (code === sqliteBusy) throw new StorageLockedError(directory, readHolder(holder));
    if (code === sqliteNotADatabase) throw new ForeignLockError(file, error);
    throw error;
  }
  try {
    fs.writeFileSync(holder, `${process.pid}\n`, { mode: 0o600 });
  } catch {
    // It is only for messages: a full disk must not prevent reads of the store.
  }
  return () => database.close();
}

/**
 * Creates the lock file, for its owner only: SQLite would make it readable for all. An existing one is not opened, since
 * closing it would release a lock of this process.
 */
function createLockFile(file: string): void {
  try {
    fs.closeSync(fs.openSync(file, 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    const { mode, uid } = fs.statSync(file);
    if ((mode & 0o077) !== 0 && uid === process.getuid?.()) fs.chmodSync(file, 0o600);
  }
}

function readHolder(file: string): string | undefined {
  try {
    return fs.readFileSync(file, 'latin1').trim();
  } catch {
    return undefined;
  }
}
