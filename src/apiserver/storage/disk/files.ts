import fs from 'node:fs';
import { promisify } from 'node:util';

/**
 * The few file operations through which everything on disk is changed. A layer of its own, so that tests can fill
 * the disk, break a sync or cut the power between any two of them.
 */
export interface FileLayer {
  /** Makes an empty file. */
  create(path: string): WritableFile;
  /** Opens a file to go on writing. */
  open(path: string): WritableFile;
  rename(from: string, to: string): void;
  remove(path: string): void;
  /** Makes creations, renames and removals in a directory durable. */
  syncDirectory(path: string): void;
}

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

/** Up to here a copy into the page cache is cheaper than a trip through the thread pool. */
const synchronousBytes = 256 * 1024;

/** The file system. Files hold Secrets, so only their owner may read them. */
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
      // A short write is no error: the next one reports the cause.
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
