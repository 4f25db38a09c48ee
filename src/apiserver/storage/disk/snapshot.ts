import { randomInt } from 'node:crypto';
import { type StoreState, loadedVersion } from '../multi-version.ts';
import { treeFromSorted, treeSlice } from '../ordered-tree.ts';
import type { StoredObject } from '../storage.ts';
import { DamagedStorageError } from './directory-lock.ts';
import { snapshotFile, unfinishedFile, type FileLayer } from './files.ts';
import { FrameReader, encodeFileHeader, fileHeaderSize } from './frames.ts';
import { decodeSnapshotPart, encodeEnd, encodeObjects } from './records.ts';

/** A frame of a snapshot has about so many bytes, or one object. */
const frameBytes = 128 * 1024;
/** The file is synced after about so many bytes, so that syncs of the log do not wait long. */
const syncBytes = 2 * 1024 * 1024;
/** Objects between two turns of the event loop. */
const batchSize = 256;

/**
 * Writes a snapshot of a state to a temporary file, which is renamed when it is durable. Returns its size in bytes.
 *
 * @throws an I/O error, or the signal's reason; then there is no snapshot.
 */
export async function writeSnapshot(
  files: FileLayer,
  directory: string,
  number: number,
  state: StoreState,
  signal: AbortSignal,
): Promise<number> {
  const temporary = unfinishedFile(directory, number);
  const salt = randomInt(1, 2 ** 32);
  const file = files.create(temporary);
  let length = 0;
  let synced = 0;
  const append = async (bytes: Buffer) => {
    signal.throwIfAborted();
    await file.write(bytes, length);
    length += bytes.length;
  };
  try {
    await append(encodeFileHeader('SNETSNP1', { revision: state.revision, salt }));
    for await (const part of parts(state)) {
      await append(encodeObjects(part, salt));
      if (length - synced < syncBytes) continue;
      await file.sync();
      synced = length;
    }
    await append(encodeEnd(state.root.size, salt));
    await file.sync();
    files.rename(temporary, snapshotFile(directory, number));
    files.syncDirectory(directory);
  } catch (error) {
    file.close();
    try {
      files.remove(temporary);
    } catch {
      // It has been renamed already, or the next start removes it.
    }
    throw error;
  }
  file.close();
  return length;
}

/** The objects of a state in parts of one frame each. Other work runs in between. */
async function* parts(state: StoreState): AsyncGenerator<StoredObject[]> {
  let part: StoredObject[] = [];
  let bytes = 0;
  for (let at = 0; at < state.root.size; at += batchSize) {
    for (const version of treeSlice(state.root, at, at + batchSize)) {
      part.push(version);
      bytes += version.byteLength;
      if (bytes < frameBytes) continue;
      yield part;
      part = [];
      bytes = 0;
    }
    await new Promise(setImmediate);
  }
  if (part.length > 0) yield part;
}

/** Reads a snapshot. @throws {DamagedStorageError} */
export function readSnapshot(file: string): StoreState & { readonly bytes: number } {
  const reader = new FrameReader(file);
  try {
    const header = reader.readHeader('SNETSNP1');
    if ('kind' in header) throw new DamagedStorageError(file, 0, header.reason);
    const read: StoredObject[] = [];
    for (;;) {
      const offset = reader.offset;
      const found = reader.next();
      if (found.kind !== 'frame') {
        const reason = found.kind === 'end' ? 'the end of the snapshot is missing' : found.reason;
        throw new DamagedStorageError(file, offset, reason);
      }
      const part = decodeSnapshotPart(found.payload);
      if ('count' in part) {
        if (part.count === read.length) break;
        throw new DamagedStorageError(file, offset, `${read.length} of ${part.count} objects are there`);
      }
      for (const { key, revision, value } of part.objects) {
        read.push(loadedVersion(key, revision, value));
      }
    }
    return {
      root: treeFromSorted(read),
      revision: header.revision,
      bytes: reader.offset - fileHeaderSize,
    };
  } finally {
    reader.close();
  }
}
