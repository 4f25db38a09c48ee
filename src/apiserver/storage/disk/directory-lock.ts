import fs from 'node:fs';
import path from 'node:path';
import { StorageLockedError } from './errors.ts';

/** SQLITE_BUSY: somebody else holds the lock. */
const BUSY = 5;

/**
 * Takes a directory for this process; the returned function gives it back. The lock must vanish with the process
 * however it dies, must not need a guess whether an old one is stale, and must hold between containers that share
 * a volume (so neither process ids nor abstract sockets will do). The kernel's advisory file locks are that, but
 * Node does not offer them. Its SQLite does: an exclusive transaction on an empty database, which is never
 * written, is a POSIX lock on that file. (Nothing else in this process may open the lock file: closing any
 * descriptor of it would drop the lock.)
 *
 * @throws {StorageLockedError} when another process, or another store in this one, has the directory.
 */
export async function lockDirectory(directory: string): Promise<() => void> {
  // Loaded only here: Node 22 prints a warning that it is experimental.
  const { DatabaseSync } = await import('node:sqlite');
  const holder = path.join(directory, 'lock.pid');
  const database = new DatabaseSync(path.join(directory, 'lock'), { timeout: 0 });
  try {
    database.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === BUSY) {
      throw new StorageLockedError(directory, readHolder(holder));
    }
    throw error;
  }
  try {
    fs.writeFileSync(holder, `${process.pid}\n`, { mode: 0o600 });
  } catch {
    // Only for the message of the next one; a full disk must not keep a store from being read.
  }
  return () => database.close();
}

function readHolder(file: string): string | undefined {
  try {
    return fs.readFileSync(file, 'latin1').trim();
  } catch {
    return undefined;
  }
}
