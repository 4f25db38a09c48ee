/** The bytes of a watch. What many watches get alike is made once, and kept for a moment. */
import { isRecord } from '../../../objects/json.ts';
import type { MediaType } from '../../http/media-types.ts';
import { writeProtobufEvent } from '../../schema/protobuf/write-protobuf.ts';
import type { StoredObject } from '../../storage/storage.ts';
import { type ServedResource, storedJson } from '../served-resource.ts';

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED';

interface EventLine {
  readonly resource: ServedResource;
  readonly mediaType: MediaType;
  readonly type: EventType;
  readonly line: Buffer;
}

/** Bytes of the latest lines: more than the watches of one turn send alike. */
const maxRecent = 2 ** 20;
/** The latest lines, the oldest first. */
const recent = new Map<StoredObject, EventLine>();
let recentBytes = 0;

/** The line of an event, as all watches of the resource in this form get it. */
export function eventLine(
  resource: ServedResource,
  mediaType: MediaType,
  type: EventType,
  stored: StoredObject,
): Buffer {
  const known = recent.get(stored);
  if (known?.type === type && known.mediaType === mediaType && known.resource === resource) {
    return known.line;
  }
  forget(stored);
  const made = line(mediaType, type, storedJson(resource, stored));
  for (const [oldest] of recent) {
    if (recentBytes + made.length <= maxRecent) break;
    forget(oldest);
  }
  recent.set(stored, { resource, mediaType, type, line: made });
  recentBytes += made.length;
  return made;
}

function forget(stored: StoredObject): void {
  recentBytes -= recent.get(stored)?.line.length ?? 0;
  recent.delete(stored);
}

/** One event with the JSON of its object, as a line of JSON or as a frame of protobuf. */
export function line(mediaType: MediaType, type: string, json: string): Buffer {
  if (mediaType === 'application/json') return Buffer.from(`{"type":"${type}","object":${json}}\n`);
  const object: unknown = JSON.parse(json);
  return writeProtobufEvent(type, isRecord(object) ? object : {});
}

/** Lines in one piece. The last piece is kept: watches of one resource that keep up wait for the same lines. */
export function joinLines(lines: readonly Buffer[]): Buffer {
  const [first] = lines;
  if (lines.length === 1 && first !== undefined) return first;
  if (lines.length === lastJoin.lines.length && lines.every((line, i) => line === lastJoin.lines[i])) {
    return lastJoin.piece;
  }
  const piece = Buffer.concat(lines);
  if (piece.length <= maxJoined) lastJoin = { lines, piece };
  return piece;
}

const maxJoined = 256 * 1024;
let lastJoin: { readonly lines: readonly Buffer[]; readonly piece: Buffer } = {
  lines: [],
  piece: Buffer.alloc(0),
};
