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
