/** A file of the data directory does not hold what was written to it. */
export class DamagedStorageError extends Error {
  override readonly name = 'DamagedStorageError';
  readonly file: string;
  /** Where in the file, in bytes. */
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

/** The data directory cannot be made, read or written. */
export class UnusableDirectoryError extends Error {
  override readonly name = 'UnusableDirectoryError';
  readonly directory: string;
  constructor(directory: string, problem: string, cause: unknown) {
    super(`cannot keep the store in ${directory}: ${problem}`, { cause });
    this.directory = directory;
  }
}
