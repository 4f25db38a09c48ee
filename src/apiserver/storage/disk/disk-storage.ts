import fs from 'node:fs';
import type { StorageEvent, StoredObject, Write, Storage } from '../storage.ts';
import {
  type MultiVersionStore,
  type StagedCommit,
  type MultiVersionOptions,
  storageOf,
} from '../multi-version.ts';
import { logFile, removeBefore, type FileLayer, makeDirectories, fileSystem } from './files.ts';
import { createLogFile, type LogWriter } from './log-writer.ts';
import { encodeGroup } from './records.ts';
import { type OperatorLog, type Recovered, recover } from './recovery.ts';
import { writeSnapshot } from './snapshot.ts';
import path from 'node:path';
import { lockDirectory } from './directory-lock.ts';

/**
 * The files of a running store. Appends groups to the newest log; when the logs have grown, starts a new log and writes
 * a snapshot of the state before it; removes logs and snapshots from before the oldest revision that is kept.
 */
class DataDirectory {
  readonly store: MultiVersionStore;
  readonly #files: FileLayer;
  readonly #directory: string;
  readonly #log: OperatorLog;
  readonly #snapshotAfter: number;
  #writer: LogWriter;
  /** Whether the present log takes no more frames, since the next one may exist already. */
  #mustStartLog = false;
  /** Snapshots after the one from which the next start replays logs; ascending. */
  #laterSnapshots: readonly { readonly number: number; readonly revision: number }[];
  #snapshotBytes: number;
  /** Bytes in logs since the newest snapshot was begun. */
  #logBytes: number;
  #snapshotting: Promise<void> | undefined;
  readonly #stop = new AbortController();

  constructor(
    files: FileLayer,
    directory: string,
    recovered: Recovered,
    log: OperatorLog,
    snapshotAfter: number,
  ) {
    this.#files = files;
    this.#directory = directory;
    this.#log = log;
    this.#snapshotAfter = snapshotAfter;
    this.store = recovered.store;
    this.#writer = recovered.writer;
    this.#laterSnapshots = recovered.laterSnapshots;
    this.#snapshotBytes = recovered.snapshotBytes;
    this.#logBytes = recovered.logBytes;
    this.#removeObsolete();
  }

  /**
   * Makes events durable, all or none, before they are published. Calls do not overlap.
   *
   * @throws an I/O error
   */
  async append(events: readonly StorageEvent[], time: number): Promise<void> {
    if (this.#mustStartLog || this.#writer.finished) await this.#startLog();
    else if (this.#logBytes >= Math.max(this.#snapshotAfter, this.#snapshotBytes))
      await this.#startSnapshot();
    const frame = encodeGroup(events, time, this.#writer.salt);
    await this.#writer.append(frame);
    this.#logBytes += frame.length;
    this.#removeObsolete();
  }

  /** Abandons an unfinished snapshot, and closes the log. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the storage is closed'));
    await this.#snapshotting;
    this.#writer.close();
  }

  /** Starts a new log. @throws an I/O error */
  async #startLog(): Promise<void> {
    await this.#writer.repair();
    const number = this.#writer.number + 1;
    let next: LogWriter;
    try {
      next = await createLogFile(this.#files, this.#directory, number, this.store.revision);
    } catch (error) {
      this.#discardLog(number);
      throw error;
    }
    this.#writer.close();
    this.#writer = next;
    this.#mustStartLog = false;
  }

  /**
   * A new log whose creation failed must be removed before the present one grows: its header says that it follows the
   * present state. If that fails too, the present log ends here.
   */
  #discardLog(number: number): void {
    const file = logFile(this.#directory, number);
    if (!fs.existsSync(file)) return;
    this.#mustStartLog = true;
    try {
      this.#files.remove(file);
      this.#files.syncDirectory(this.#directory);
      this.#mustStartLog = false;
    } catch (error) {
      this.#log.warn({ file, err: error }, 'cannot remove a log that was begun; writes wait for a new one');
    }
  }

  /** Starts a new log, and a snapshot of the state before it in the background. */
  async #startSnapshot(): Promise<void> {
    if (this.#snapshotting !== undefined) return;
    this.#logBytes = 0;
    try {
      await this.#startLog();
    } catch (error) {
      if (this.#mustStartLog) throw error;
      this.#log.warn(
        { directory: this.#directory, err: error },
        'cannot start a new log; going on in the old one',
      );
      return;
    }
    this.#snapshotting = this.#snapshot(this.#writer.number).finally(() => (this.#snapshotting = undefined));
  }

  async #snapshot(number: number): Promise<void> {
    const state = this.store.snapshot;
    try {
      this.#snapshotBytes = await writeSnapshot(
        this.#files,
        this.#directory,
        number,
        state,
        this.#stop.signal,
      );
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      this.#log.warn(
        { directory: this.#directory, err: error },
        'cannot write a snapshot; the logs are kept instead',
      );
      return;
    }
    this.#laterSnapshots = [...this.#laterSnapshots, { number, revision: state.revision }];
    this.#removeObsolete();
  }

  /** Removes the files from before the newest snapshot that is not newer than the oldest kept revision. */
  #removeObsolete(): void {
    const [oldest] = this.#laterSnapshots;
    if (oldest === undefined) return;
    const { compactedRevision } = this.store;
    if (oldest.revision > compactedRevision) return;
    const base = this.#laterSnapshots.findLast(({ revision }) => revision <= compactedRevision) ?? oldest;
    this.#laterSnapshots = this.#laterSnapshots.filter(({ revision }) => revision > compactedRevision);
    try {
      removeBefore(this.#files, this.#directory, base.number);
    } catch (error) {
      this.#log.warn({ directory: this.#directory, err: error }, 'cannot remove old logs and snapshots');
    }
  }
}

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
