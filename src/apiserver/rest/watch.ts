import { setImmediate as scheduleImmediate } from 'node:timers';
import { setImmediate } from 'node:timers/promises';
import { isRecord } from '../../objects/json.ts';
import { StatusError } from '../../objects/status.ts';
import { expired } from '../../objects/status-errors.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { ApiRequest, Reply, ReplyStream } from '../http/exchange.ts';
import type { MediaType } from '../http/media-types.ts';
import { encodeObject } from '../schema/encode.ts';
import { writeProtobufEvent } from '../schema/write-protobuf.ts';
import {
  CompactedError,
  type StorageEvent,
  type StoredObject,
  type Unsubscribe,
} from '../storage/storage.ts';
import { type ListOptions, parseResourceVersion } from './list-options.ts';
import { convertOne, type Output } from './output.ts';
import { waitForRevision } from './read.ts';
import type { Selection } from './selection.ts';
import { prefixOf, presented, type ServedResource, storedJson } from './served-resource.ts';
import type { ServerCore } from './server-core.ts';

/** What is watched, and how the client wants it. */
export interface WatchRequest {
  readonly resource: ServedResource;
  /** "" watches all namespaces. */
  readonly namespace: string;
  readonly options: ListOptions;
  readonly selection: Selection;
  readonly output: Output;
}

/** Milliseconds between bookmarks (`bookmarkFrequency`). */
const bookmarkEvery = 60_000;
/** A bookmark is sent so long before the end of a watch. */
const bookmarkBeforeEnd = 2_000;
/** Seconds of a watch that names no timeout: random between this and twice of it (`minRequestTimeout`). */
const minTimeout = 1_800;
/** Bytes waiting for a slow client before its watch is ended; it resumes from its last resourceVersion. */
const maxBacklog = 32 * 1024 * 1024;
/** Bytes of initial events that are made at a time: then other requests have their turn, and the client reads. */
const initialChunk = 256 * 1024;

type EventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/**
 * Serves a watch until its time is over, the client is gone or the server stops.
 *
 * @throws {StatusError} before the stream has begun. A resourceVersion that is too old, or for the initial events
 *   too new for three seconds, is told inside the stream.
 */
export async function watchObjects(
  core: ServerCore,
  request: ApiRequest,
  reply: Reply,
  watch: WatchRequest,
): Promise<void> {
  const { options, resource, namespace } = watch;
  const from = parseResourceVersion(options.resourceVersion);
  const seconds = options.timeoutSeconds ?? 0;
  const milliseconds = (seconds > 0 ? seconds : minTimeout * (1 + core.random())) * 1000;
  const { mediaType } = watch.output.negotiated;
  const contentType = mediaType === 'application/json' ? mediaType : `${mediaType};stream=watch`;
  const stream = reply.stream(200, { 'Content-Type': contentType });
  const session = new WatchSession(core, stream, watch);
  const prefix = prefixOf(resource, namespace);
  let unsubscribe: Unsubscribe | undefined;
  try {
    if (options.sendInitialEvents === true) await waitForRevision(core, from, request.signal);
    const initial =
      options.sendInitialEvents === true || (from === 0 && options.sendInitialEvents === undefined);
    const start = initial ? await session.sendInitial(prefix, request.signal) : startOf(core, from);
    if (start < core.firstRevision) throw new CompactedError(start, core.firstRevision);
    unsubscribe = core.storage.watch(prefix, start, (event) => session.onEvent(event));
  } catch (error) {
    session.sendError(toldInStream(error));
    stream.end();
    return;
  }
  await session.run(milliseconds, request.signal);
  unsubscribe();
  stream.end();
}

/** What a client learns from an ERROR event (`newErrWatcher` of the watch cache); anything else is thrown again. */
function toldInStream(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  if (!(error instanceof CompactedError)) throw error;
  return expired(`too old resource version: ${error.revision} (${error.compactedRevision})`);
}

/** Who asks for any state but not for what exists (`sendInitialEvents=false` without a version) starts at now. */
function startOf(core: ServerCore, from: number): number {
  return from === 0 ? core.storage.revision : from;
}

/** One open watch: filters events, joins those of one turn into one write, sends bookmarks, ends slow clients. */
class WatchSession {
  readonly #core: ServerCore;
  readonly #stream: ReplyStream;
  readonly #watch: WatchRequest;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #scheduled = false;
  #blocked = false;
  #columnsSent = false;
  #finish: () => void = () => undefined;
  #overflown = false;

  constructor(core: ServerCore, stream: ReplyStream, watch: WatchRequest) {
    this.#core = core;
    this.#stream = stream;
    this.#watch = watch;
  }

  /**
   * Sends what exists as ADDED events, no faster than the client reads: a big list is no reason to end its watch.
   *
   * @returns the revision from which to go on.
   */
  async sendInitial(prefix: string, signal: AbortSignal): Promise<number> {
    const { selection, options } = this.#watch;
    const { items, revision } = this.#core.storage.list(prefix);
    for (const item of items) {
      const isSelected =
        selection.everything || (selection.mayMatch(item.text()) && selection.matches(item.object));
      if (isSelected) this.#sendStored('ADDED', item);
      if (this.#pendingBytes < initialChunk) continue;
      await this.#written();
      if (signal.aborted) return revision;
    }
    if (options.sendInitialEvents === true && options.allowWatchBookmarks) {
      this.#sendBookmark(revision, { 'k8s.io/initial-events-end': 'true' });
    }
    return revision;
  }

  get #mediaType(): MediaType {
    return this.#watch.output.negotiated.mediaType;
  }

  onEvent(event: StorageEvent): void {
    const { selection } = this.#watch;
    if (selection.everything) {
      this.#sendStored(event.type, event.current);
      return;
    }
    const now = event.type !== 'DELETED' && selection.matches(event.current.object);
    const { previous } = event;
    const before = previous !== undefined && selection.matches(previous.object);
    if (now) this.#sendStored(before ? 'MODIFIED' : 'ADDED', event.current);
    else if (before) this.#sendGone(event, previous);
  }

  sendError(error: StatusError): void {
    this.#push(line(this.#mediaType, 'ERROR', JSON.stringify(error.toStatus())));
    this.#flush();
  }

  /** Resolves when the watch is over. */
  async run(milliseconds: number, signal: AbortSignal): Promise<void> {
    const timers: NodeJS.Timeout[] = [];
    await new Promise<void>((resolve) => {
      this.#finish = resolve;
      if (signal.aborted || this.#overflown) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
      timers.push(setTimeout(resolve, milliseconds));
      if (!this.#watch.options.allowWatchBookmarks) return;
      timers.push(setInterval(() => this.#sendBookmark(this.#core.storage.revision), bookmarkEvery));
      const last = milliseconds - bookmarkBeforeEnd;
      if (last > 0) timers.push(setTimeout(() => this.#sendBookmark(this.#core.storage.revision), last));
    });
    for (const timer of timers) clearTimeout(timer);
    if (!signal.aborted) this.#flush();
  }

  #sendStored(type: EventType, stored: StoredObject): void {
    const { resource, output } = this.#watch;
    if (output.negotiated.as === '') this.#push(frame(resource, this.#mediaType, type, stored));
    else this.#sendConverted(type, stored.object);
  }

  #sendConverted(type: EventType, object: KubeObject): void {
    const { resource, output } = this.#watch;
    const shown = presented(resource, object);
    const converted = convertOne(output, resource, shown, this.#core.now(), !this.#columnsSent);
    this.#columnsSent = true;
    this.#push(line(this.#mediaType, type, JSON.stringify(converted)));
  }

  /** An object that left the selection: its last matching state, with the revision of the event. */
  #sendGone(event: StorageEvent, previous: StoredObject): void {
    const { resource, output } = this.#watch;
    const object: KubeObject = {
      ...previous.object,
      metadata: { ...previous.object.metadata, resourceVersion: String(event.revision) },
    };
    if (output.negotiated.as !== '') {
      this.#sendConverted('DELETED', object);
      return;
    }
    const json = encodeObject(resource.schema, presented(resource, object));
    this.#push(line(this.#mediaType, 'DELETED', json));
  }

  #sendBookmark(revision: number, annotations?: Record<string, string>): void {
    const { resource, output } = this.#watch;
    const empty: KubeObject = {
      kind: resource.definition.kind,
      apiVersion: resource.apiVersion,
      metadata: {
        resourceVersion: String(revision),
        ...(annotations === undefined ? {} : { annotations }),
      },
    };
    if (output.negotiated.as === '') {
      this.#push(line(this.#mediaType, 'BOOKMARK', encodeObject(resource.schema, empty)));
      return;
    }
    const converted = convertOne(output, resource, empty, this.#core.now(), !this.#columnsSent);
    this.#columnsSent = true;
    this.#push(line(this.#mediaType, 'BOOKMARK', JSON.stringify(converted)));
  }

  #push(chunk: Buffer): void {
    if (this.#overflown) return;
    this.#pending.push(chunk);
    this.#pendingBytes += chunk.length;
    if (this.#pendingBytes > maxBacklog) {
      this.#overflown = true;
      // one that resumes from far behind gets what fits, so that each try brings it on
      if (this.#blocked) this.#pending = [];
      this.#core.log.warn(
        {
          resource: this.#watch.resource.definition.plural,
          namespace: this.#watch.namespace,
          reason: 'SlowWatcher',
        },
        'ending a watch whose client does not read; it can resume from its last resourceVersion',
      );
      this.#finish();
      return;
    }
    if (this.#scheduled || this.#blocked) return;
    this.#scheduled = true;
    scheduleImmediate(() => this.#flush());
  }

  /** Hands on what waits and lets other work have its turn; resolves when the client has read, or is gone. */
  async #written(): Promise<void> {
    this.#flush();
    if (this.#blocked) await this.#stream.drained();
    await setImmediate();
  }

  #flush(): void {
    this.#scheduled = false;
    if (this.#pending.length === 0 || this.#blocked) return;
    const lines = this.#pending;
    this.#pending = [];
    this.#pendingBytes = 0;
    if (this.#stream.write(join(lines))) return;
    this.#blocked = true;
    void this.#stream.drained().then(
      () => {
        this.#blocked = false;
        this.#flush();
      },
      () => this.#finish(),
    );
  }
}

/**
 * The line of an event. An event goes to all watches of a resource one after the other, so remembering the last
 * line is enough to make each only once, and holds on to nothing.
 */
function frame(
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
function line(mediaType: MediaType, type: string, json: string): Buffer {
  if (mediaType === 'application/json') return Buffer.from(`{"type":"${type}","object":${json}}\n`);
  const object: unknown = JSON.parse(json);
  return writeProtobufEvent(type, isRecord(object) ? object : {});
}

/** Lines in one piece. The last piece is kept: watches of one resource that keep up wait for the same lines. */
function join(lines: readonly Buffer[]): Buffer {
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
