import type { Logger } from 'pino';
import { isRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { compareResourceVersions } from '../../objects/resource-version.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { isAborted } from '../abort.ts';
import type { Clock, Random } from '../clock.ts';
import { errorFromStatus, errorWord, isExpired, isFutureRevision, isNotFound } from '../errors.ts';
import { ResourceClient } from '../resource-client.ts';
import { apiVersionOf, isKubeObject, resourceName, type ResourceType } from '../resources.ts';
import { TimeSlices } from '../slices.ts';
import { ReflectorRetries } from './reflector-retries.ts';
import { EndlessList, endsInitialEvents, streamedList, streamedListVerdict } from './streamed-list.ts';
import {
  type ApiStream,
  ConnectionError,
  type QueryParameters,
  type Transport,
  UnexpectedAnswer,
} from '../transport.ts';
import { WatchDecoder, type WatchEvent } from './watch-decoder.ts';
import { Watchdog } from './watchdog.ts';

/** Receives what a reflector reads. Calls come one at a time, in the server's order. Must not throw. */
export interface ReflectorSink<T extends KubeObject> {
  /** A list begins: objects that are not upserted before {@link listed} are removed. */
  listing(): void;
  /** The present version of an object, from a list, or from an event (`fromList` false). */
  upsert(object: T, fromList: boolean): void;
  remove(object: KubeObject): void;
  /** The list is complete. */
  listed(slices: TimeSlices): Promise<void>;
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
const inactivityLimit = 150_000;
/** A watch that ends sooner than this, in milliseconds, counts as a failure, and is opened again after a pause. */
const shortWatch = 1000;
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
          if (this.#slices.due) await this.#slices.pause();
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
    await sink.listed(this.#slices);
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
      watchdog.feed(revision === undefined ? streamedList.silence : inactivityLimit);
      for await (const chunk of stream.chunks) {
        sink.alive();
        let added = false;
        for (const event of decoder.decode(chunk)) {
          if (this.#slices.due) await this.#slices.pause();
          if (signal.aborted) return;
          await this.#apply(event);
          added ||= event.type === 'ADDED';
        }
        if (this.#revision !== undefined) watchdog.feed(inactivityLimit);
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
    if (clock.monotonic() - opened < shortWatch) {
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
        await this.#options.sink.listed(this.#slices);
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
