import {
  type MultiVersionStore,
  type StagedCommit,
  type MultiVersionOptions,
  storageOf,
} from '../multi-version.ts';
import type { StorageEvent, StoredObject, Write, Storage } from '../storage.ts';
import fs from 'node:fs';
import path from 'node:path';
import { makeDirectories, type FileLayer, fileSystem } from './files.ts';
import { DataDirectory } from './data-directory.ts';
import { lockDirectory } from './directory-lock.ts';
import { type OperatorLog, recover } from './recovery.ts';

/** Makes the events of one group durable, all or none; rejects for none. */
export type Persist = (events: readonly StorageEvent[], time: number) => Promise<void>;

interface Pending {
  readonly commit: StagedCommit;
  readonly resolve: (stored: readonly StoredObject[]) => void;
  readonly reject: (error: unknown) => void;
}

/** A group ends at this size, so that no write waits long for others. */
const groupBytes = 4 * 1024 * 1024;

/**
 * Group commit: the commits of one turn of the event loop, or of the time of a sync, are made durable with one sync, and
 * published then. When that fails, the group and all commits that were staged after it are rolled back.
 */
class GroupCommitter {
  readonly #store: MultiVersionStore;
  readonly #persist: Persist;
  readonly #clock: () => number;
  #pending: Pending[] = [];
  #running: Promise<void> | undefined;

  constructor(store: MultiVersionStore, clock: () => number, persist: Persist) {
    this.#store = store;
    this.#clock = clock;
    this.#persist = persist;
  }

  /** See {@link Storage.commit}. */
  commit(writes: readonly Write[]): Promise<readonly StoredObject[]> {
    return new Promise((resolve, reject) => {
      const commit = this.#store.stage(writes);
      if (commit.events.length === 0) {
        resolve([]);
        return;
      }
      this.#pending.push({ commit, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Resolves when no commit is pending. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  async #run(): Promise<void> {
    // The rest of this turn joins the first group.
    await new Promise(setImmediate);
    while (this.#pending.length > 0) {
      const group = this.#nextGroup();
      const time = this.#clock();
      try {
        await this.#persist(
          group.flatMap(({ commit }) => commit.events),
          time,
        );
      } catch (error) {
        const lost = [...group, ...this.#pending.splice(0)];
        this.#store.rollback();
        for (const { reject } of lost) reject(error);
        continue;
      }
      for (const { commit, resolve } of group) {
        this.#store.publish(commit, time);
        resolve(commit.events.map((event) => event.current));
      }
    }
    this.#running = undefined;
  }

  #nextGroup(): Pending[] {
    let bytes = 0;
    let count = 0;
    for (const { commit } of this.#pending) {
      for (const event of commit.events) bytes += event.type === 'DELETED' ? 0 : event.current.byteLength;
      count++;
      if (bytes >= groupBytes) break;
    }
    return this.#pending.splice(0, count);
  }
}

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
