import fs from 'node:fs';
import type { StorageEvent } from '../storage.ts';
import type { MultiVersionStore } from '../multi-version.ts';
import { logFile, removeBefore } from './files.ts';
import type { FileLayer } from './files.ts';
import { createLogFile, type LogWriter } from './log-writer.ts';
import { encodeGroup } from './records.ts';
import type { OperatorLog, Recovered } from './recovery.ts';
import { writeSnapshot } from './snapshot.ts';

/**
 * The files of a running store. Appends groups to the newest log; when the logs have grown, starts a new log and writes
 * a snapshot of the state before it; removes logs and snapshots from before the oldest revision that is kept.
 */
export class DataDirectory {
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
