import { setImmediate as scheduleImmediate } from 'node:timers';
import { setImmediate } from 'node:timers/promises';
import { StatusError } from '../../objects/status.ts';
import { expired, internalError } from '../../objects/status-errors.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { ApiRequest, Reply, ReplyStream } from '../http/exchange.ts';
import type { MediaType } from '../http/media-types.ts';
import { encodeObject } from '../schema/encode.ts';
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
import { prefixOf, presented, type ServedResource } from './served-resource.ts';
import type { ServerCore } from './server-core.ts';
import { ConvertedEvents } from './watch-conversion.ts';
import { eventLine, type EventType, joinLines, line } from './watch-lines.ts';

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
/** `setTimeout`'s limit, 24 days: with a longer time it would call at once. */
const longestTimer = 2 ** 31 - 1;
/** Bytes of initial events that are made at a time: then other requests have their turn, and the client reads. */
const initialChunk = 256 * 1024;

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
  const session = new WatchSession(core, stream, watch, milliseconds, request.signal);
  const prefix = prefixOf(resource, namespace);
  const uncached = resource.definition.uncached === true;
  let unsubscribe: Unsubscribe | undefined;
  try {
    if (options.sendInitialEvents === true && !uncached) {
      await waitForRevision(core, resource, from, request.signal);
    }
    const initial =
      options.sendInitialEvents === true || (from === 0n && options.sendInitialEvents === undefined);
    const start = initial ? await session.sendInitial(prefix) : startOf(core, from);
    if (start < core.firstRevision) throw new CompactedError(start, core.firstRevision);
    unsubscribe = core.storage.watch(prefix, start, (event) => session.onEvent(event));
    await session.run();
  } catch (error) {
    session.sendError(toldInStream(error, uncached));
  } finally {
    unsubscribe?.();
    session.end();
  }
  stream.end();
}

/** What a client learns from an ERROR event (`newErrWatcher` of the watch cache); anything else is thrown again. */
function toldInStream(error: unknown, uncached: boolean): StatusError {
  if (error instanceof StatusError) return error;
  if (!(error instanceof CompactedError)) throw error;
  if (uncached) return expired('The resourceVersion for the provided watch is too old.');
  return expired(`too old resource version: ${error.revision} (${error.compactedRevision})`);
}

/** Why the objects of a watch cannot be had (`etcd3` transformErrorToEvent). */
function conversionFailure(error: unknown): StatusError {
  return internalError(error instanceof Error ? error.message : String(error));
}

/** Who asks for any state but not for what exists (`sendInitialEvents=false` without a version) starts at now. */
function startOf(core: ServerCore, from: bigint): number {
  return from === 0n ? core.storage.revision : Number(from);
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
  #overflown = false;
  readonly #signal: AbortSignal;
  readonly #timers: NodeJS.Timeout[] = [];
  /** By `performance.now()`. */
  readonly #deadline: number;
  readonly #over = Promise.withResolvers<undefined>();
  #isOver = false;
  /** Where a webhook is asked for the objects. */
  readonly #converted: ConvertedEvents | undefined;
  /** Ends the watch with its definition. */
  readonly #onReplaced = (): void =>
    void (this.#converted?.settled() ?? Promise.resolve()).then(() => this.end());

  /** @param milliseconds that the watch lasts at most, from now on. */
  constructor(
    core: ServerCore,
    stream: ReplyStream,
    watch: WatchRequest,
    milliseconds: number,
    signal: AbortSignal,
  ) {
    this.#core = core;
    this.#stream = stream;
    this.#watch = watch;
    this.#signal = signal;
    this.#deadline = performance.now() + milliseconds;
    if (signal.aborted) this.end();
    signal.addEventListener('abort', () => this.end(), { once: true });
    this.#timers.push(setTimeout(() => this.end(), Math.min(milliseconds, longestTimer)));
    const { conversion } = watch.resource;
    if (conversion === undefined) return;
    this.#converted = new ConvertedEvents(conversion, !watch.selection.everything, {
      take: (event) => this.#take(event),
      fail: (error) => {
        this.sendError(conversionFailure(error));
        this.end();
      },
    });
  }

  /** Ends the watch: {@link run} resolves. */
  end(): void {
    this.#isOver = true;
    for (const timer of this.#timers.splice(0)) clearTimeout(timer);
    this.#watch.resource.replaced?.removeEventListener('abort', this.#onReplaced);
    this.#converted?.stop();
    this.#over.resolve(undefined);
  }

  /**
   * Sends what exists as ADDED events, no faster than the client reads: a big list is no reason to end its watch.
   *
   * @returns the revision from which to go on.
   */
  async sendInitial(prefix: string): Promise<number> {
    const { selection, options } = this.#watch;
    const { items, revision } = this.#core.storage.list(prefix);
    for (const item of await this.#served(items)) {
      const isSelected =
        selection.everything || (selection.mayMatch(item.text()) && selection.matches(item.object));
      if (isSelected) this.#sendStored('ADDED', item);
      if (this.#pendingBytes < initialChunk) continue;
      await this.#written();
      if (this.#isOver) return revision;
    }
    if (options.sendInitialEvents === true && options.allowWatchBookmarks) {
      this.#sendBookmark(revision, { 'k8s.io/initial-events-end': 'true' });
    }
    return revision;
  }

  /** Objects as the resource serves them. @throws {StatusError} 500 */
  async #served(items: readonly StoredObject[]): Promise<readonly StoredObject[]> {
    const { conversion } = this.#watch.resource;
    try {
      return conversion === undefined ? items : await conversion.read(items);
    } catch (error) {
      throw conversionFailure(error);
    }
  }

  get #mediaType(): MediaType {
    return this.#watch.output.negotiated.mediaType;
  }

  onEvent(event: StorageEvent): void {
    if (this.#converted === undefined) {
      this.#take(event);
      return;
    }
    this.#converted.push(event);
    if (this.#converted.bytes > maxBacklog)
      this.#overflow('ending a watch whose objects take too long to be converted');
  }

  #take(event: StorageEvent): void {
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

  /** Sends what comes, and bookmarks; resolves when the watch is over. */
  async run(): Promise<void> {
    const { options, resource } = this.#watch;
    if (!this.#isOver && options.allowWatchBookmarks && resource.definition.uncached !== true) {
      // Not while events wait for their objects.
      const send = (): void => {
        if (this.#converted?.isIdle !== false) this.#sendBookmark(this.#core.storage.revision);
      };
      this.#timers.push(setInterval(send, bookmarkEvery));
      const last = this.#deadline - performance.now() - bookmarkBeforeEnd;
      if (last > 0 && last <= longestTimer) this.#timers.push(setTimeout(send, last));
    }
    const { replaced } = resource;
    if (replaced?.aborted === true) this.#onReplaced();
    else if (!this.#isOver) replaced?.addEventListener('abort', this.#onReplaced);
    await this.#over.promise;
    if (!this.#signal.aborted) this.#flush();
  }

  #sendStored(type: EventType, stored: StoredObject): void {
    const { resource, output } = this.#watch;
    if (output.negotiated.as === '') this.#push(eventLine(resource, this.#mediaType, type, stored));
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
      this.#overflow(
        'ending a watch whose client does not read; it can resume from its last resourceVersion',
      );
      return;
    }
    if (this.#scheduled || this.#blocked) return;
    this.#scheduled = true;
    scheduleImmediate(() => this.#flush());
  }

  #overflow(why: string): void {
    this.#overflown = true;
    // one that resumes from far behind gets what fits, so that each try brings it on
    if (this.#blocked) this.#pending = [];
    const { definition } = this.#watch.resource;
    this.#core.log.warn(
      { resource: definition.plural, namespace: this.#watch.namespace, reason: 'SlowWatcher' },
      why,
    );
    this.end();
  }

  /** Hands on what waits and lets other work have its turn; resolves when the client has read, or the watch is over. */
  async #written(): Promise<void> {
    this.#flush();
    if (this.#blocked) await Promise.race([this.#stream.drained(), this.#over.promise]);
    await setImmediate();
  }

  #flush(): void {
    this.#scheduled = false;
    if (this.#pending.length === 0 || this.#blocked) return;
    const lines = this.#pending;
    this.#pending = [];
    this.#pendingBytes = 0;
    if (this.#stream.write(joinLines(lines))) return;
    this.#blocked = true;
    void this.#stream.drained().then(
      () => {
        this.#blocked = false;
        this.#flush();
      },
      () => this.end(),
    );
  }
}
