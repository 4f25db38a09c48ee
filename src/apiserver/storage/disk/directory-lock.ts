import fs from 'node:fs';
import path from 'node:path';
import { ForeignLockError, StorageLockedError } from './errors.ts';

/** SQLITE_BUSY: another process holds the lock. */
const sqliteBusy = 5;
/** SQLITE_NOTADB: the file has a content, and not that of a database. */
const sqliteNotADatabase = 26;

/**
 * Takes a directory for this process; the returned function gives it back. The lock must vanish with the process
 * however it dies, must not need a guess whether an old one is stale, and must hold between containers that share
 * a volume (so neither process ids nor abstract sockets will do). The kernel's advisory file locks are that, but
 * Node does not offer them. Its SQLite does: an exclusive transaction on an empty database, which is never
 * written, is a POSIX lock on that file. (Nothing else in this process may open the lock file: closing any
 * descriptor of it would drop the lock.)
 *
 * @throws {StorageLockedError} when another process, or another store in this one, has the directory.
 * @throws {ForeignLockError} when the lock file is not ours.
 */
export async function lockDirectory(directory: string): Promise<() => void> {
  // Loaded only here: Node 22 prints a warning that it is experimental.
  const { DatabaseSync } = await import('node:sqlite');
  const holder = path.join(directory, 'lock.pid');
  const file = path.join(directory, 'lock');
  keepToOwner(file);
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
    // Only for the message of the next one; a full disk must not keep a store from being read.
  }
  return () => database.close();
}

/**
 * Makes the lock file, readable by its owner only: SQLite would make it readable for all. One that is there is not
 * opened, as closing it would drop a lock that this process has.
 */
function keepToOwner(file: string): void {
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
