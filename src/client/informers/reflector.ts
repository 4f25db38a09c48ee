import { isRecord } from '../../objects/json.ts';
import { StatusError } from '../../objects/status.ts';
import { isFutureRevision, errorFromStatus, errorWord, isExpired, isNotFound } from '../errors.ts';
import {
  ConnectionError,
  UnexpectedAnswer,
  type ApiStream,
  type QueryParameters,
  type Transport,
} from '../transport.ts';
import type { Logger } from 'pino';
import { type KubeObject, compareResourceVersions, isKubeObject } from '../../objects/meta.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { isAborted, type Clock, type Random } from '../clock.ts';
import { ResourceClient } from '../resource-client.ts';
import { apiVersionOf, resourceName, type ResourceType } from '../resources.ts';
import { TimeSlices } from '../../telemetry/time-slice.ts';
import { ReflectorRetries, Watchdog } from './reflector-retries.ts';

/** Lists that come as a watch (`sendInitialEvents`, KEP-3157): how they end, and the fallback when they do not. */

const initialEventsEnd = 'k8s.io/initial-events-end';

/**
 * A server without `sendInitialEvents` answers with a plain watch: its objects come without the bookmark that ends
 * them. Milliseconds from the last object that was added, and from the beginning, after which paged lists are used
 * instead. Servers that support it send the bookmark within about 1.3 s.
 */
const streamedList = { silence: 5000, longest: 60_000 };

/** A streamed list that does not end: the server treated it as a plain watch. */
class EndlessList extends Error {
  override readonly name = 'EndlessList';
}

/** Statuses of servers that do not support or do not allow `sendInitialEvents`. */
const refusals = new Set([400, 405, 406, 415, 422, 501]);
/** Statuses for which a list would fail as well, or that ask the client to wait. */
const retriable = new Set([401, 403, 404, 410, 429, 500, 503]);

/**
 * The action after a failed streamed list: client-go's reflector falls back to a list for every error that is not
 * worth a retry (`watchList` and its caller).
 */
function streamedListVerdict(error: unknown): 'pages' | 'pages this time' | 'retry' {
  if (error instanceof EndlessList) return 'pages';
  if (error instanceof ConnectionError) return error.code === 'TIMEOUT' ? 'pages this time' : 'retry';
  if (!(error instanceof StatusError)) return 'retry';
  if (refusals.has(error.code)) return 'pages';
  return retriable.has(error.code) || isFutureRevision(error) ? 'retry' : 'pages this time';
}

/** True for the bookmark after the last of the initial objects. */
function endsInitialEvents(object: unknown): boolean {
  const metadata = isRecord(object) ? object['metadata'] : undefined;
  const annotations = isRecord(metadata) ? metadata['annotations'] : undefined;
  return isRecord(annotations) && annotations[initialEventsEnd] === 'true';
}

/** One line of a watch. `object` is not validated yet. */
export interface WatchEvent {
  readonly type: string;
  readonly object: unknown;
}

/** Limit of one event in bytes. etcd's limit for an object is 1.5 MiB; this leaves room for more. */
const largestEvent = 64 * 1024 * 1024;
const newline = 0x0a;

/** Cuts the chunks of a watch into JSON lines. Parts of a line are kept until it is complete. */
export class WatchDecoder {
  #pieces: Buffer[] = [];
  #waiting = 0;

  /** The events that the chunk completes. @throws {UnexpectedAnswer} for a line that is not an event. */
  *decode(chunk: Buffer): Generator<WatchEvent> {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      const line = this.#complete(chunk.subarray(start, end));
      start = end + 1;
      if (line.length > 0) yield parseEvent(line);
    }
    if (start === chunk.length) return;
    const rest = chunk.subarray(start);
    this.#waiting += rest.length;
    if (this.#waiting > largestEvent) throw new UnexpectedAnswer('a watch event is larger than 64 MiB');
    this.#pieces.push(rest);
  }

  #complete(tail: Buffer): Buffer {
    if (this.#pieces.length === 0) return tail;
    const line = Buffer.concat([...this.#pieces, tail]);
    this.#pieces = [];
    this.#waiting = 0;
    return line;
  }
}

function parseEvent(line: Buffer): WatchEvent {
  let value: unknown;
  try {
    value = JSON.parse(line.toString('utf8'));
  } catch (error) {
    throw new UnexpectedAnswer('a watch event is not JSON', { cause: error });
  }
  if (!isRecord(value) || typeof value['type'] !== 'string') {
    throw new UnexpectedAnswer('a line of a watch is no event');
  }
  return { type: value['type'], object: value['object'] };
}

/** Receives what a reflector reads. Calls come one at a time, in the server's order. Must not throw. */
export interface ReflectorSink<T extends KubeObject> {
  /** A list begins: objects that are not upserted before {@link listed} are removed. */
  listing(): void;
  /** The present version of an object, from a list, or from an event (`fromList` false). */
  upsert(object: T, fromList: boolean): void;
  remove(object: KubeObject): void;
  /** The list is complete. Without a revision it is empty, as the server does not serve the resource. */
  listed(slices: TimeSlices, revision?: string): Promise<void>;
  /** A sign of life. */
  alive(): void;
  /** The first list cannot be read yet, and why, as a message for the operator. */
  syncFailed?(why: string): void;
}

export interface ReflectorOptions<T extends KubeObject> {
  readonly transport: Transport;
  readonly resource: ResourceType<T>;
  readonly sink: ReflectorSink<T>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics?: Metrics;
  /** Absent: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Objects per page of a list; default 500, about 20 ms of parsing. */
  readonly pageSize?: number;
  /** Request the initial objects as a watch (KEP-3157), with paged lists as the fallback. Default true. */
  readonly watchList?: boolean;
}

/** Range in seconds of the random `timeoutSeconds` of watches, so that watches do not all end at once. */
const watchSeconds = { min: 300, max: 600 };
/**
 * Milliseconds without any byte after which a watch is opened again from its last revision. Servers send a bookmark a
 * minute; two may get lost. A half-open connection would otherwise stay silent for ever.
 */
const inactivityLimitMs = 150_000;
/** A watch that ends sooner than this, in milliseconds, counts as a failure, and is opened again after a pause. */
const shortWatchMs = 1000;
/**
 * Keeps a sink equal to a resource of the server: list, then watch from the list's revision, for ever. It ends only
 * when its signal aborts. The counterpart of client-go's `tools/cache/reflector.go`.
 *
 * No gaps and no repeats: the revision from which a watch resumes is that of the last event given to the sink. When the
 * server no longer has it (410, as an answer or as an ERROR event), everything is listed again.
 */
export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #client: ResourceClient<T>;
  readonly #retries: ReflectorRetries;
  readonly #name: string;
  readonly #slices = new TimeSlices();
  /** The revision that the sink shows; undefined when it must be listed (again). */
  #revision: string | undefined;
  #watchList: boolean;
  /** True when the continue token of a page expired: the next list is read without pages. */
  #unpaged = false;
  #dropped = 0;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#client = new ResourceClient(options.transport, options.resource);
    this.#name = resourceName(options.resource);
    this.#retries = new ReflectorRetries(this.#name, options);
    this.#watchList = options.watchList ?? true;
  }

  /** Resolves after the signal aborted; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (this.#revision === undefined) await this.#fill(signal);
        else await this.#watch(this.#revision, signal);
      } catch (error) {
        if (isAborted(signal)) return;
        await this.#recover(error, signal);
      }
    }
  }

  async #recover(error: unknown, signal: AbortSignal): Promise<void> {
    const { metrics, sink } = this.#options;
    metrics?.watchFailures.inc({ resource: this.#name, reason: errorWord(error) });
    if (isExpired(error) || isFutureRevision(error)) this.#revision = undefined;
    if (isNotFound(error)) {
      await this.#awaitDefinition(signal);
      return;
    }
    if (this.#revision === undefined) sink.syncFailed?.(errorWord(error));
    await this.#retries.afterFailure(error, signal);
  }

  async #awaitDefinition(signal: AbortSignal): Promise<void> {
    const { resource, sink } = this.#options;
    sink.alive();
    if (resource.isOptional === true && this.#revision === undefined) {
      sink.listing();
      await sink.listed(this.#slices);
      await this.#retries.forOptional(signal);
      return;
    }
    const advice = resource.definedBy === undefined ? '' : `: ${resource.definedBy}`;
    sink.syncFailed?.(`the server does not serve it${advice}`);
    await this.#retries.forDefinition(advice, signal);
  }

  async #fill(signal: AbortSignal): Promise<void> {
    if (this.#watchList) {
      try {
        await this.#watch(undefined, signal);
        return;
      } catch (error) {
        const verdict = isAborted(signal) ? 'retry' : streamedListVerdict(error);
        if (verdict === 'retry') throw error;
        this.#watchList = verdict === 'pages this time';
        this.#options.log.debug({ resource: this.#name, err: error }, 'no streamed list, using pages');
      }
    }
    await this.#list(signal);
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { sink, metrics, pageSize = 500 } = this.#options;
    metrics?.lists.inc({ resource: this.#name });
    sink.listing();
    let revision = '';
    let pages = 0;
    try {
      const limit = this.#unpaged ? 0 : pageSize;
      for await (const page of this.#client.pages({ ...this.#selection(), limit, signal })) {
        pages++;
        revision = page.metadata.resourceVersion ?? '';
        sink.alive();
        if (page.dropped > 0) this.#drop(page.dropped);
        for (const object of page.items) {
          if (this.#slices.due) await this.#slices.yield();
          sink.upsert(object, true);
        }
        if (signal.aborted) return;
      }
    } catch (error) {
      this.#unpaged = isExpired(error) && pages > 0;
      throw error;
    }
    this.#unpaged = false;
    if (revision === '') throw new Error(`a list of ${this.#name} carries no resourceVersion`);
    await sink.listed(this.#slices, revision);
    this.#revision = revision;
  }

  /** Reads one watch until it ends. Without a revision it begins with the initial objects (WatchList). */
  async #watch(revision: string | undefined, signal: AbortSignal): Promise<void> {
    const { clock, sink, metrics } = this.#options;
    const opened = clock.monotonic();
    const watchdog = new Watchdog(clock, signal);
    try {
      const seconds = this.#watchDuration();
      metrics?.watches.inc({ resource: this.#name });
      const stream = await this.#open(revision, seconds, watchdog.signal);
      this.#retries.served();
      sink.alive();
      if (revision === undefined) sink.listing();
      const decoder = new WatchDecoder();
      watchdog.feed(revision === undefined ? streamedList.silence : inactivityLimitMs);
      for await (const chunk of stream.chunks) {
        sink.alive();
        let added = false;
        for (const event of decoder.decode(chunk)) {
          if (this.#slices.due) await this.#slices.yield();
          if (signal.aborted) return;
          await this.#apply(event);
          added ||= event.type === 'ADDED';
        }
        if (this.#revision !== undefined) watchdog.feed(inactivityLimitMs);
        else if (clock.monotonic() - opened > streamedList.longest) throw new EndlessList();
        else if (added) watchdog.feed(streamedList.silence);
      }
    } catch (error) {
      if (!watchdog.starved) throw error;
      if (this.#revision === undefined) throw new EndlessList();
      metrics?.watchFailures.inc({ resource: this.#name, reason: 'Inactive' });
      this.#options.log.info({ resource: this.#name }, 'the watch was silent for too long, opening it again');
      return;
    } finally {
      watchdog.end();
    }
    if (signal.aborted) return;
    if (this.#revision === undefined) {
      throw new ConnectionError('SHORT_LIST', `the streamed list of ${this.#name} ended before it was whole`);
    }
    if (clock.monotonic() - opened < shortWatchMs) {
      throw new ConnectionError('SHORT_WATCH', `the watch of ${this.#name} ended at once`);
    }
    this.#retries.watched();
  }

  #open(revision: string | undefined, timeoutSeconds: number, signal: AbortSignal): Promise<ApiStream> {
    const { transport, namespace = '' } = this.#options;
    const { labelSelector, fieldSelector } = this.#selection();
    const start: QueryParameters =
      revision === undefined
        ? { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' }
        : { resourceVersion: revision };
    return transport.stream(this.#client.path(namespace), {
      query: {
        watch: true,
        allowWatchBookmarks: true,
        timeoutSeconds,
        ...start,
        labelSelector,
        fieldSelector,
      },
      signal,
    });
  }

  async #apply({ type, object }: WatchEvent): Promise<void> {
    if (type === 'ERROR') throw errorFromStatus(object);
    const version = revisionOf(object);
    if (type === 'BOOKMARK') {
      if (version === undefined) return;
      if (this.#revision !== undefined) this.#advance(this.#revision, version);
      else if (endsInitialEvents(object)) {
        await this.#options.sink.listed(this.#slices, version);
        this.#revision = version;
      } else throw new EndlessList();
      return;
    }
    if (type === 'DELETED' && isKubeObject(object)) this.#options.sink.remove(object);
    else {
      const known = type === 'ADDED' || type === 'MODIFIED' ? this.#recognise(object) : undefined;
      if (known === undefined) this.#drop(1);
      else this.#options.sink.upsert(known, this.#revision === undefined);
    }
    if (version !== undefined && this.#revision !== undefined) this.#revision = version;
  }

  /**
   * Continues from the revision of a bookmark. One that is older than ours comes from a server that started anew: a
   * watch from our revision would be silent until its revisions have caught up.
   */
  #advance(from: string, to: string): void {
    this.#revision = compareResourceVersions(to, from) < 0 ? undefined : to;
    if (this.#revision !== undefined) return;
    throw new UnexpectedAnswer(`${this.#name}: the server is at revision ${to}, it was at ${from} before`);
  }

  #recognise(object: unknown): T | undefined {
    const { resource } = this.#options;
    if (!isKubeObject(object)) return undefined;
    resource.complete?.(object);
    if (!resource.isObject(object)) return undefined;
    object.apiVersion ??= apiVersionOf(resource);
    object.kind ??= resource.kind;
    return object;
  }

  #drop(count: number): void {
    const { log, metrics } = this.#options;
    metrics?.dropped.inc({ resource: this.#name }, count);
    // Only the first is logged: a server may send many.
    if (this.#dropped === 0) log.warn({ resource: this.#name }, 'dropped an object that no schema allows');
    this.#dropped += count;
  }

  #selection(): { namespace?: string; labelSelector?: string; fieldSelector?: string } {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    return {
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
    };
  }

  #watchDuration(): number {
    const { min, max } = watchSeconds;
    return Math.floor(min + (max - min) * this.#options.random());
  }
}

function revisionOf(object: unknown): string | undefined {
  const metadata = isRecord(object) ? object['metadata'] : undefined;
  const version = isRecord(metadata) ? metadata['resourceVersion'] : undefined;
  return typeof version === 'string' && version !== '' ? version : undefined;
}
