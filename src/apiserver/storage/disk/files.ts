import fs from 'node:fs';
import { promisify } from 'node:util';

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
