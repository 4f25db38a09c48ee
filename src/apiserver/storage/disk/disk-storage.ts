import fs from 'node:fs';
import path from 'node:path';
import { makeDirectories } from './make-directories.ts';
import { type MultiVersionOptions, storageOf } from '../multi-version.ts';
import type { Storage } from '../storage.ts';
import { DataDirectory } from './data-directory.ts';
import { lockDirectory } from './directory-lock.ts';
import { type FileLayer, fileSystem } from './files.ts';
import { GroupCommitter } from './group-committer.ts';
import { type OperatorLog, recover } from './recovery.ts';

export interface DiskStorageOptions extends MultiVersionOptions {
  /** Takes the lines that an operator should see: what was cut off at the start, snapshots that failed. */
  readonly log: OperatorLog;
  /** A snapshot is written when the logs since the last one are this large, or as large as it. Bytes. */
  readonly snapshotAfter?: number;
  /** Changes files; absent: the file system. */
  readonly files?: FileLayer;
}

const snapshotAfterBytes = 32 * 1024 * 1024;

/**
 * Opens the store in a directory, which is made if it does not exist. In memory it is the store of {@link
 * createMemoryStorage}; each write goes to a log first and is seen, and acknowledged, when it is durable there. When
 * the disk is full, writes reject and reads go on; writing works again as soon as there is space.
 *
 * @throws {StorageLockedError} when another process uses the directory.
 * @throws {DamagedStorageError} when a file does not hold what was written to it.
 * @throws {Error} the system's, when the directory cannot be made, read or written.
 */
export async function openDiskStorage(directory: string, options: DiskStorageOptions): Promise<Storage> {
  const files = options.files ?? fileSystem;
  makeDirectory(files, directory);
  // Otherwise the error would only be that the lock cannot be taken.
  fs.accessSync(directory, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK);
  const unlock = await lockDirectory(directory);
  try {
    const recovered = await recover(files, directory, options, options.log);
    const data = new DataDirectory(
      files,
      directory,
      recovered,
      options.log,
      options.snapshotAfter ?? snapshotAfterBytes,
    );
    const committer = new GroupCommitter(data.store, options.clock, (events, time) =>
      data.append(events, time),
    );
    return storageOf(
      data.store,
      (writes) => committer.commit(writes),
      async () => {
        await committer.idle();
        await data.close();
        unlock();
      },
    );
  } catch (error) {
    unlock();
    throw error;
  }
}

/** Makes the directory and those above it, durably. */
function makeDirectory(files: FileLayer, directory: string): void {
  const absolute = path.resolve(directory);
  const made = makeDirectories(absolute);
  if (made === undefined) return;
  for (let parent = path.dirname(absolute); parent.length >= path.dirname(made).length;) {
    files.syncDirectory(parent);
    if (parent === path.dirname(parent)) return;
    parent = path.dirname(parent);
  }
}
