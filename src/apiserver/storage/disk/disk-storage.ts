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

/** The options of {@link openDiskStorage}. */
export interface DiskStorageOptions extends MultiVersionOptions {
  /** For messages to operators: what was cut off at the start, snapshots that failed. */
  readonly log: OperatorLog;
  /** A snapshot is written when the logs since the last one have so many bytes, and at least as many as it has. */
  readonly snapshotAfter?: number;
  /** Default: the file system. */
  readonly files?: FileLayer;
}

const snapshotAfterBytes = 32 * 1024 * 1024;

/**
 * Opens the store in a directory, which is created if it does not exist. The state is in memory; a write is published
 * and acknowledged when it is durable in a log. While the disk is full, writes reject and reads work.
 *
 * @throws {StorageLockedError} when another process uses the directory.
 * @throws {DamagedStorageError} when a file is not as it was written.
 * @throws {Error} of the system, when the directory cannot be created, read or written.
 */
export async function openDiskStorage(directory: string, options: DiskStorageOptions): Promise<Storage> {
  const files = options.files ?? fileSystem;
  makeDirectory(files, directory);
  // For a clearer error than that of the lock.
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

/** Creates the directory and missing ones above it, durably. */
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
