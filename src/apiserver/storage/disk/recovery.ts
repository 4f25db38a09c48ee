import path from 'node:path';
import { MultiVersionStore, type MultiVersionOptions, loadedVersion } from '../multi-version.ts';
import { DamagedStorageError } from './directory-lock.ts';
import { listDirectory, logFile, removeBefore, snapshotFile, type FileLayer } from './files.ts';
import { FrameReader } from './frames.ts';
import { createLogFile, LogWriter } from './log-writer.ts';
import { decodeGroup } from './records.ts';
import { readSnapshot } from './snapshot.ts';

/** Takes messages to operators. */
export interface OperatorLog {
  warn(details: object, message: string): void;
}

/** A store that was read from its directory. */
export interface Recovered {
  readonly store: MultiVersionStore;
  readonly writer: LogWriter;
  /** The size of the snapshot from which logs were replayed. */
  readonly snapshotBytes: number;
  /** The snapshots after that one, which is kept for lists and watches of older revisions. */
  readonly laterSnapshots: readonly { number: number; revision: number }[];
  /** Bytes in logs since the newest snapshot. */
  readonly logBytes: number;
}

/**
 * Reads a store from its directory: the oldest snapshot, and all logs after it, which are replayed. An incomplete frame
 * at the end of the last log is cut off.
 *
 * @throws {DamagedStorageError} when anything else is not as it was written.
 */
export async function recover(
  files: FileLayer,
  directory: string,
  options: MultiVersionOptions,
  log: OperatorLog,
): Promise<Recovered> {
  const { logs, snapshots, unfinished } = listDirectory(directory);
  for (const name of unfinished) files.remove(path.join(directory, name));
  const last = logs.at(-1) ?? 0;
  // The log of a snapshot is created before it.
  const orphan = snapshots.find((number) => number > last);
  if (orphan !== undefined) throw missing(directory, orphan);
  if (last === 0) {
    const store = new MultiVersionStore(options);
    const writer = await createLogFile(files, directory, 1, store.revision);
    return { store, writer, snapshotBytes: 0, laterSnapshots: [], logBytes: 0 };
  }
  // The logs after the last gap. Those before it were being removed when the process ended.
  let first = last;
  while (logs.includes(first - 1)) first--;
  const base = first === 1 ? 1 : snapshots.find((number) => number >= first);
  if (base === undefined) throw missing(directory, first - 1);
  removeBefore(files, directory, base);

  const snapshot = snapshots.includes(base) ? readSnapshot(snapshotFile(directory, base)) : undefined;
  const store = new MultiVersionStore(options, snapshot);
  const laterSnapshots: { number: number; revision: number }[] = [];
  let logBytes = 0;
  for (let number = base; number < last; number++) {
    if (number > base && snapshots.includes(number)) {
      laterSnapshots.push({ number, revision: store.revision });
      logBytes = 0;
    }
    const file = logFile(directory, number);
    const { stopped, length } = replayLog(file, store);
    if (stopped !== undefined) throw new DamagedStorageError(file, length, stopped.reason);
    logBytes += length;
  }
  if (last > base && snapshots.includes(last)) {
    laterSnapshots.push({ number: last, revision: store.revision });
    logBytes = 0;
  }
  const writer = await openLastLog(files, directory, last, store, log);
  logBytes += writer.length;
  return { store, writer, snapshotBytes: snapshot?.bytes ?? 0, laterSnapshots, logBytes };
}

interface Replayed {
  /** Why the log ends before the end of the file. */
  readonly stopped: { readonly kind: 'torn'; readonly reason: string } | undefined;
  readonly salt: number | undefined;
  /** The end of the last complete frame. */
  readonly length: number;
}

/** Replays a log. @throws {DamagedStorageError} */
function replayLog(file: string, store: MultiVersionStore): Replayed {
  const reader = new FrameReader(file);
  const damaged = (offset: number, reason: string) => new DamagedStorageError(file, offset, reason);
  try {
    const header = reader.readHeader('SNETLOG1');
    if ('kind' in header) {
      if (header.kind === 'damaged') throw damaged(0, header.reason);
      return { stopped: { kind: 'torn', reason: header.reason }, salt: undefined, length: 0 };
    }
    checkRevision(store, header.revision, () => damaged(0, gap(store, header.revision)));
    for (;;) {
      const offset = reader.offset;
      const found = reader.next();
      if (found.kind === 'damaged') throw damaged(offset, found.reason);
      if (found.kind !== 'frame') {
        return { stopped: found.kind === 'torn' ? found : undefined, salt: header.salt, length: offset };
      }
      const group = decodeGroup(found.payload);
      checkRevision(store, group.revision, () => damaged(offset, gap(store, group.revision)));
      for (const { key, value } of group.writes) {
        const revision = store.revision + 1;
        const version = value === undefined ? undefined : loadedVersion(key, revision, value);
        if (!store.replay(key, version, group.timeMs)) {
          throw damaged(offset, `revision ${revision} deletes ${key}, which is not there`);
        }
      }
    }
  } finally {
    reader.close();
  }
}

async function openLastLog(
  files: FileLayer,
  directory: string,
  number: number,
  store: MultiVersionStore,
  log: OperatorLog,
): Promise<LogWriter> {
  const file = logFile(directory, number);
  const { stopped, salt, length } = replayLog(file, store);
  if (stopped !== undefined) {
    log.warn(
      { file, offset: length, reason: stopped.reason, revision: store.revision },
      salt === undefined
        ? 'the last log was begun but nothing was written to it'
        : 'cut an incomplete end off the log: the last write did not finish, or the disk lost it; all up to this revision is there',
    );
  }
  if (salt === undefined) {
    files.remove(file);
    return createLogFile(files, directory, number, store.revision);
  }
  const handle = files.open(file);
  // Synced, so that a power cut cannot restore what is cut off.
  handle.truncate(length);
  await handle.sync();
  return new LogWriter(handle, { number, salt, length });
}

function checkRevision(store: MultiVersionStore, revision: number, error: () => Error): void {
  if (store.revision !== revision) throw error();
}

function gap(store: MultiVersionStore, revision: number): string {
  return `it goes on from revision ${revision}, but the writes before end at ${store.revision}`;
}

function missing(directory: string, number: number): DamagedStorageError {
  return new DamagedStorageError(logFile(directory, number), 0, 'the file is missing');
}
