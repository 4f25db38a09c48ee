import type { StorageEvent, StoredObject } from '../storage.ts';
import { allocateFrame, frameHeaderSize, sealFrame } from './frames.ts';

/**
 * The payloads of frames.
 *
 *     log group      kind 1 | time 8 (float64) | revision before 6 | count 4 | count × (key length 4 | value length 4 | key | value)
 *     objects        kind 2 | count 4 | count × (revision 6 | key length 4 | value length 4 | key | value)
 *     snapshot end   kind 3 | number of objects 6
 *
 * Values are the JSON of objects; the value length 0xffffffff is a delete.
 */
const groupRecord = 1;
const objectsRecord = 2;
const endRecord = 3;
const groupHeadSize = 1 + 8 + 6 + 4;
const objectsHeadSize = 1 + 4;
const entryHeadSize = 4 + 4;
const deletedLength = 0xffffffff;

/** Writes that became durable together. */
export interface Group {
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  /** The revision before the first write; each write has the next revision. */
  readonly revision: number;
  readonly writes: readonly { readonly key: string; readonly value: Buffer | undefined }[];
}

/** The frame of a group of consecutive events. */
export function encodeGroup(events: readonly StorageEvent[], time: number, salt: number): Buffer {
  let length = groupHeadSize;
  for (const { type, current } of events) {
    length += entryHeadSize + Buffer.byteLength(current.key) + (type === 'DELETED' ? 0 : current.byteLength);
  }
  const frame = allocateFrame(length);
  let at = frame.writeUInt8(groupRecord, frameHeaderSize);
  at = frame.writeDoubleLE(time, at);
  at = frame.writeUIntLE((events[0]?.revision ?? 1) - 1, at, 6);
  at = frame.writeUInt32LE(events.length, at);
  for (const { type, current } of events) {
    at = writeEntry(frame, at, current.key, type === 'DELETED' ? undefined : current);
  }
  sealFrame(frame, length, salt);
  return frame;
}

/** The frame of a part of a snapshot. */
export function encodeObjects(versions: readonly StoredObject[], salt: number): Buffer {
  let length = objectsHeadSize;
  for (const version of versions) {
    length += 6 + entryHeadSize + Buffer.byteLength(version.key) + version.byteLength;
  }
  const frame = allocateFrame(length);
  let at = frame.writeUInt8(objectsRecord, frameHeaderSize);
  at = frame.writeUInt32LE(versions.length, at);
  for (const version of versions) {
    at = frame.writeUIntLE(version.revision, at, 6);
    at = writeEntry(frame, at, version.key, version);
  }
  sealFrame(frame, length, salt);
  return frame;
}

/** The last frame of a snapshot, without which it is incomplete. */
export function encodeEnd(count: number, salt: number): Buffer {
  const frame = allocateFrame(7);
  frame.writeUInt8(endRecord, frameHeaderSize);
  frame.writeUIntLE(count, frameHeaderSize + 1, 6);
  sealFrame(frame, 7, salt);
  return frame;
}

/** The group in a payload. @throws {RangeError} when it has none. */
export function decodeGroup(payload: Buffer): Group {
  if (payload[0] !== groupRecord) throw new RangeError('no log group');
  const count = payload.readUInt32LE(15);
  const writes: Group['writes'][number][] = [];
  let at = groupHeadSize;
  for (let i = 0; i < count; i++) {
    const entry = readEntry(payload, at);
    writes.push(entry);
    at = entry.end;
  }
  return { timeMs: payload.readDoubleLE(1), revision: payload.readUIntLE(9, 6), writes };
}

/** A part of a snapshot, or from its last frame the number of its objects. @throws {RangeError} when it is neither. */
export function decodeSnapshotPart(
  payload: Buffer,
): { objects: { key: string; revision: number; value: Buffer }[] } | { count: number } {
  if (payload[0] === endRecord) return { count: payload.readUIntLE(1, 6) };
  if (payload[0] !== objectsRecord) throw new RangeError('no part of a snapshot');
  const count = payload.readUInt32LE(1);
  const objects: { key: string; revision: number; value: Buffer }[] = [];
  let at = objectsHeadSize;
  for (let i = 0; i < count; i++) {
    const { key, value, end } = readEntry(payload, at + 6);
    if (value === undefined) throw new RangeError('a deleted object in a snapshot');
    objects.push({ key, revision: payload.readUIntLE(at, 6), value });
    at = end;
  }
  return { objects };
}

function writeEntry(frame: Buffer, start: number, key: string, value: StoredObject | undefined): number {
  const keyLength = frame.write(key, start + entryHeadSize);
  frame.writeUInt32LE(keyLength, start);
  const keyEnd = start + entryHeadSize + keyLength;
  const end = value?.writeTo(frame, keyEnd) ?? keyEnd;
  frame.writeUInt32LE(value === undefined ? deletedLength : end - keyEnd, start + 4);
  return end;
}

function readEntry(payload: Buffer, start: number): { key: string; value: Buffer | undefined; end: number } {
  const keyEnd = start + entryHeadSize + payload.readUInt32LE(start);
  const length = payload.readUInt32LE(start + 4);
  const key = payload.toString('utf8', start + entryHeadSize, keyEnd);
  if (length === deletedLength) return { key, value: undefined, end: keyEnd };
  const end = keyEnd + length;
  if (end > payload.length) throw new RangeError('an entry reaches beyond its frame');
  return { key, value: payload.subarray(keyEnd, end), end };
}
