import { isRecord } from '../../../objects/json.ts';
import type { MediaType } from '../../http/negotiation.ts';
import { writeProtobufEvent } from '../../schema/protobuf/write-protobuf.ts';
import type { StoredObject, StorageEvent } from '../../storage/storage.ts';
import { encodeOf, type ServedResource, storedJson, presented } from '../served-resource.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import type { StatusError } from '../../../objects/status.ts';
import type { ListOptions } from '../options.ts';
import { convertOne, type Output, type ListFilter } from '../output.ts';
import type { ServerCore } from '../server-core.ts';

/** The bytes of a watch. What many watches get alike is made once, and kept for a moment. */

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
function eventLine(
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
function line(mediaType: MediaType, type: string, json: string): Buffer {
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

/** The watched resource, and the form of its events. */
export interface WatchRequest {
  readonly resource: ServedResource;
  /** "" watches all namespaces. */
  readonly namespace: string;
  readonly options: ListOptions;
  readonly filter: ListFilter;
  readonly output: Output;
}

/** What one watch sends for stored events: by its filter, in its form. */
export class SessionLines {
  readonly #watch: WatchRequest;
  readonly #core: Pick<ServerCore, 'now'>;
  #columnsSent = false;

  /** @param core has the clock, for the ages in tables. */
  constructor(watch: WatchRequest, core: Pick<ServerCore, 'now'>) {
    this.#watch = watch;
    this.#core = core;
  }

  /** The watch event for a stored event; undefined: none. */
  of({ type, current, previous, revision }: StorageEvent): Buffer | undefined {
    const { filter } = this.#watch;
    if (filter.everything) return this.stored(type, current);
    const now = type !== 'DELETED' && filter.matches(current.object);
    const before = previous !== undefined && filter.matches(previous.object);
    if (now) return this.stored(before ? 'MODIFIED' : 'ADDED', current);
    return before ? this.#gone(previous.object, revision) : undefined;
  }

  get #mediaType(): MediaType {
    return this.#watch.output.negotiated.mediaType;
  }

  /** An event with the stored object. */
  stored(type: EventType, stored: StoredObject): Buffer {
    const { resource, output } = this.#watch;
    if (output.negotiated.as === '') return eventLine(resource, this.#mediaType, type, stored);
    return this.#converted(type, presented(resource, stored.object));
  }

  #converted(type: EventType | 'BOOKMARK', shown: KubeObject): Buffer {
    const { resource, output } = this.#watch;
    const converted = convertOne(output, resource, shown, this.#core.now(), !this.#columnsSent);
    this.#columnsSent = true;
    return line(this.#mediaType, type, JSON.stringify(converted));
  }

  /** An object that the filter no longer matches: its last matching state, with the revision of the event. */
  #gone(previous: KubeObject, revision: number): Buffer {
    const { resource, output } = this.#watch;
    const object = {
      ...previous,
      metadata: { ...previous.metadata, resourceVersion: String(revision) },
    };
    const shown = presented(resource, object);
    if (output.negotiated.as !== '') return this.#converted('DELETED', shown);
    return line(this.#mediaType, 'DELETED', encodeOf(resource, shown));
  }

  /** A bookmark: an event without an object, with the revision that the client has reached. */
  bookmark(revision: number, annotations?: Record<string, string>): Buffer {
    const { resource, output } = this.#watch;
    const empty: KubeObject = {
      kind: resource.definition.kind,
      apiVersion: resource.apiVersion,
      metadata: {
        resourceVersion: String(revision),
        ...(annotations === undefined ? {} : { annotations }),
      },
    };
    if (output.negotiated.as !== '') return this.#converted('BOOKMARK', empty);
    return line(this.#mediaType, 'BOOKMARK', encodeOf(resource, empty));
  }

  error(error: StatusError): Buffer {
    return line(this.#mediaType, 'ERROR', JSON.stringify(error.toStatus()));
  }
}
