/** The bytes of a watch. What many watches get alike is made once: of each of these, the last is remembered. */
import { isRecord } from '../../objects/json.ts';
import type { MediaType } from '../http/media-types.ts';
import { writeProtobufEvent } from '../schema/write-protobuf.ts';
import type { StoredObject } from '../storage/storage.ts';
import { type ServedResource, storedJson } from './served-resource.ts';

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/**
 * The line of an event. An event goes to all watches of a resource one after the other, so remembering the last
 * line is enough to make each only once, and holds on to nothing.
 */
export function eventLine(
  resource: ServedResource,
  mediaType: MediaType,
  type: EventType,
  stored: StoredObject,
): Buffer {
  if (
    lastFrame?.stored === stored &&
    lastFrame.type === type &&
    lastFrame.mediaType === mediaType &&
    lastFrame.resource === resource
  ) {
    return lastFrame.line;
  }
  lastFrame = {
    resource,
    mediaType,
    type,
    stored,
    line: line(mediaType, type, storedJson(resource, stored)),
  };
  return lastFrame.line;
}

/** One event with the JSON of its object, as a line of JSON or as a frame of protobuf. */
export function line(mediaType: MediaType, type: string, json: string): Buffer {
  if (mediaType === 'application/json') return Buffer.from(`{"type":"${type}","object":${json}}\n`);
  const object: unknown = JSON.parse(json);
  return writeProtobufEvent(type, isRecord(object) ? object : {});
}

/** Lines in one piece. The last piece is kept: watches of one resource that keep up wait for the same lines. */
export function joinLines(lines: readonly Buffer[]): Buffer {
  if (lines.length === lastJoin.lines.length && lines.every((line, i) => line === lastJoin.lines[i])) {
    return lastJoin.piece;
  }
  const [first] = lines;
  const piece = lines.length === 1 && first !== undefined ? first : Buffer.concat(lines);
  if (piece.length <= largestKept) lastJoin = { lines, piece };
  return piece;
}

const largestKept = 256 * 1024;
let lastJoin: { readonly lines: readonly Buffer[]; readonly piece: Buffer } = {
  lines: [],
  piece: Buffer.alloc(0),
};

interface Frame {
  readonly resource: ServedResource;
  readonly mediaType: MediaType;
  readonly type: EventType;
  readonly stored: StoredObject;
  readonly line: Buffer;
}

let lastFrame: Frame | undefined;
