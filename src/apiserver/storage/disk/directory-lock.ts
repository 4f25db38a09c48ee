import fs from 'node:fs';
import path from 'node:path';
import { ForeignLockError, StorageLockedError } from './errors.ts';

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
