import { isRecord, deepFreeze } from '../../objects/json.ts';
import { type KubeObject, keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Logger } from 'pino';
import type { Metrics } from '../../telemetry/metrics.ts';
import { Cache, type CacheHandler, type CacheReader, type IndexFunction } from './cache.ts';
import type { Clock, Random } from '../clock.ts';
import type { Informer, InformerOptions, Informers } from './informer.ts';
import { type ReflectorSink, Reflector } from './reflector.ts';
import { apiVersionOf, resourceName, type ResourceType } from '../resources.ts';
import type { TimeSlices } from '../../telemetry/time-slice.ts';
import type { HealthCheck } from '../../telemetry/health.ts';
import type { Transport } from '../transport.ts';

/** Parts that are remembered; the least recently used are dropped. */
const maxParts = 1024;
/** Length in characters of JSON above which a part is not looked up: an equal one is unlikely. */
const maxPartLength = 4096;

/**
 * Keeps equal parts of objects in memory once. The Pods of a workload differ in name, node and addresses, but share
 * containers, volumes and tolerations, which are most of a Pod; Pods of the same second share times and conditions. For
 * objects that will be frozen.
 */
export class SharedParts {
  readonly #parts = new RecentCache<object>();
  readonly #texts = new RecentCache<string>();

  /** Replaces members of an object's spec and repeated parts of its status by equal ones seen before. */
  share(object: KubeObject): void {
    const { metadata } = object;
    const created = metadata.creationTimestamp;
    if (created !== undefined && !Object.isFrozen(metadata)) {
      metadata.creationTimestamp = this.#texts.known(created, created);
    }
    const spec: unknown = Reflect.get(object, 'spec');
    if (isRecord(spec) && !Object.isFrozen(spec)) {
      for (const name in spec) spec[name] = this.#known(spec[name]);
    }
    const status: unknown = Reflect.get(object, 'status');
    if (isRecord(status) && !Object.isFrozen(status)) {
      // Short lists such as addresses differ from object to object.
      for (const name in status) {
        if (name === 'conditions' || typeof status[name] === 'string')
          status[name] = this.#known(status[name]);
      }
    }
  }

  #known(part: unknown): unknown {
    if (typeof part === 'string') return this.#texts.known(part, part);
    if (typeof part !== 'object' || part === null) return part;
    const text = JSON.stringify(part);
    if (text.length > maxPartLength) return part;
    const known = this.#parts.known(text, part);
    if (known === part && !Object.isFrozen(part)) this.#shareMembers(part);
    return known;
  }

  /** Each Pod has a token volume with a name of its own; all but the names in volumes and mounts is alike. */
  #shareMembers(part: object): void {
    for (const item of Array.isArray(part) ? part : [part]) {
      if (!isRecord(item) || Object.isFrozen(item)) continue;
      for (const name in item) {
        const member = item[name];
        if (typeof member === 'object' && member !== null) item[name] = this.#known(member);
      }
    }
  }
}

/** Values by their texts, in two generations. */
class RecentCache<T> {
  #recent = new Map<string, T>();
  #older = new Map<string, T>();

  /** The value seen before with this text, or else this one. */
  known(text: string, value: T): T {
    const recent = this.#recent.get(text);
    if (recent !== undefined) return recent;
    const known = this.#older.get(text) ?? value;
    if (this.#recent.size >= maxParts) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(text, known);
    return known;
  }
}

export interface SharedInformerOptions<T extends KubeObject> {
  readonly resource: ResourceType<T>;
  readonly transform?: (object: T) => T;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: Metrics;
}

/** A cache, the sink that fills it, and its event handlers. */
export class SharedInformer<T extends KubeObject> implements Informer<T>, ReflectorSink<T> {
  readonly resource: ResourceType<T>;
  readonly #options: SharedInformerOptions<T>;
  readonly #cache = new Cache<T>();
  readonly #parts = new SharedParts();
  readonly #apiVersion: string;
  readonly #handlers = new Set<CacheHandler<T>>();
  readonly #waiting = new Set<() => void>();
  readonly #name: string;
  #synced = false;
  #lastEventAt: number | undefined;
  #syncProblem: string | undefined;
  /** During a list: keys in the cache that the list has not shown yet. */
  #unseen: Set<ObjectKey> | undefined;

  constructor(options: SharedInformerOptions<T>) {
    this.resource = options.resource;
    this.#options = options;
    this.#name = resourceName(options.resource);
    this.#apiVersion = apiVersionOf(options.resource);
    const { metrics, clock } = options;
    metrics?.beforeScrape(() => {
      metrics.cacheObjects.set({ resource: this.#name }, this.#cache.size);
      if (this.#lastEventAt === undefined) return;
      metrics.cacheAge.set({ resource: this.#name }, (clock.monotonic() - this.#lastEventAt) / 1000);
    });
  }

  get cache(): CacheReader<T> {
    return this.#cache;
  }

  get hasSynced(): boolean {
    return this.#synced;
  }

  get syncProblem(): string | undefined {
    return this.#syncProblem;
  }

  get isListing(): boolean {
    return !this.#synced || this.#unseen !== undefined;
  }

  get lastEventAt(): number | undefined {
    return this.#lastEventAt;
  }

  synced(signal: AbortSignal): Promise<boolean> {
    if (this.#synced || signal.aborted) return Promise.resolve(this.#synced);
    return new Promise((resolve) => {
      const finish = (): void => {
        signal.removeEventListener('abort', finish);
        this.#waiting.delete(finish);
        resolve(this.#synced);
      };
      signal.addEventListener('abort', finish, { once: true });
      this.#waiting.add(finish);
    });
  }

  addHandler(handler: CacheHandler<T>): () => void {
    this.#handlers.add(handler);
    for (const object of this.#cache.values()) this.#tell(() => handler.added?.(object, true), object);
    return () => this.#handlers.delete(handler);
  }

  addIndex(name: string, indexFunction: IndexFunction<T>): void {
    this.#cache.addIndex(name, indexFunction);
  }

  listing(): void {
    this.#unseen = new Set(this.#cache.keys());
  }

  upsert(object: T, fromList: boolean): void {
    const key = keyOf(object);
    this.#unseen?.delete(key);
    const version = object.metadata.resourceVersion;
    if (version !== undefined && this.#cache.get(key)?.metadata.resourceVersion === version) return;
    const kept = this.#keep(object, key);
    if (kept === undefined) return;
    const old = this.#cache.set(kept);
    const initial = fromList && !this.#synced;
    for (const handler of this.#handlers) {
      this.#tell(() => {
        if (old === undefined) handler.added?.(kept, initial);
        else handler.updated?.(kept, old);
      }, kept);
    }
  }

  remove(object: KubeObject): void {
    this.#forget(keyOf(object));
  }

  async listed(slices: TimeSlices, revision?: string): Promise<void> {
    for (const key of this.#unseen ?? []) {
      if (slices.due) await slices.yield();
      this.#forget(key);
    }
    this.#unseen = undefined;
    this.#synced = true;
    this.#syncProblem = undefined;
    if (revision !== undefined) {
      for (const handler of this.#handlers) this.#tell(() => handler.listed?.(revision));
    }
    for (const finish of [...this.#waiting]) finish();
  }

  alive(): void {
    this.#lastEventAt = this.#options.clock.monotonic();
  }

  syncFailed(why: string): void {
    if (!this.#synced) this.#syncProblem = why;
  }

  #forget(key: ObjectKey): void {
    const old = this.#cache.delete(key);
    if (old === undefined) return;
    for (const handler of this.#handlers) this.#tell(() => handler.deleted?.(old), old);
  }

  /** The stored form of an object: transformed, without managedFields, frozen, with equal parts shared. */
  #keep(object: T, key: ObjectKey): T | undefined {
    // Not `delete`: it leaves an object in V8's dictionary mode, which takes twice the memory.
    const { managedFields: _, ...metadata } = object.metadata;
    object.metadata = metadata;
    try {
      const kept = this.#options.transform?.(object) ?? object;
      // Shares equal strings: each object came with its own copies.
      if (kept.apiVersion === this.#apiVersion) kept.apiVersion = this.#apiVersion;
      if (kept.kind === this.resource.kind) kept.kind = this.resource.kind;
      this.#parts.share(kept);
      deepFreeze(kept);
      return kept;
    } catch (error) {
      this.#options.log.error({ resource: this.#name, key, err: error }, 'left an object out of the cache');
      return undefined;
    }
  }

  /** An error in a handler is logged; the cache and the other handlers continue. */
  #tell(call: () => void, object?: T): void {
    try {
      call();
    } catch (error) {
      this.#options.log.error(
        { resource: this.#name, key: object && keyOf(object), err: error },
        'a cache handler failed',
      );
    }
  }
}

export interface InformerFactoryOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics?: Metrics;
  /** Only this namespace of namespaced resources; absent: all. */
  readonly namespace?: string;
  /** Which objects the server leaves out, by {@link resourceName}: one that ceases to match looks deleted. */
  readonly labelSelectors?: Readonly<Record<string, string>>;
  /** The same by fields. */
  readonly fieldSelectors?: Readonly<Record<string, string>>;
  /** The one namespace whose objects are read, of some resources by {@link resourceName}. */
  readonly namespaces?: Readonly<Record<string, string>>;
  /** Objects per page of a list; default 500. */
  readonly pageSize?: number;
}

/** An informer of any object type, as the factory holds it. */
interface Running {
  readonly informer: Informer<KubeObject>;
  run(signal: AbortSignal): Promise<void>;
  /** Adds a user of the same resource: whole objects are kept unless its `transform` is that of all others. */
  share(transform: unknown): void;
}

/**
 * Milliseconds without a sign of life after which a cache counts as stale: two lost bookmarks and one or two failed
 * attempts.
 */
const staleAfterMs = 300_000;

/** Creates informers, one per resource, and keeps them in sync with the server. */
export class InformerFactory implements Informers {
  readonly #options: InformerFactoryOptions;
  readonly #informers = new Map<string, Running>();
  readonly #finished: Promise<void>[] = [];
  #signal: AbortSignal | undefined;

  constructor(options: InformerFactoryOptions) {
    this.#options = options;
  }

  informer<T extends KubeObject>(resource: ResourceType<T>, options: InformerOptions<T> = {}): Informer<T> {
    const name = resourceName(resource);
    const present = this.#informers.get(name);
    if (present === undefined) return this.#make(name, resource, options);
    const { informer } = present;
    if (!isInformerOf(informer, resource)) throw new Error(`${name} is defined twice, in different ways`);
    present.share(options.transform);
    return informer;
  }

  present(name: string): Informer<KubeObject> | undefined {
    return this.#informers.get(name)?.informer;
  }

  /** Starts all informers, including those that are requested later. Call once. */
  start(signal: AbortSignal): void {
    this.#signal = signal;
    for (const running of this.#informers.values()) this.#finished.push(running.run(signal));
  }

  /** Resolves when all informers have ended, after the signal of {@link start} aborted. */
  async finished(): Promise<void> {
    await Promise.all(this.#finished);
  }

  /** Not ready before every cache has synced, nor while one had no sign of life for five minutes. */
  healthChecks(): readonly HealthCheck[] {
    const { clock } = this.#options;
    const name = (bad: (informer: Informer<KubeObject>) => boolean): string =>
      [...this.#informers]
        .flatMap(([resource, { informer }]) => {
          if (!bad(informer)) return [];
          return informer.syncProblem === undefined ? [resource] : [`${resource} (${informer.syncProblem})`];
        })
        .join(', ');
    return [
      {
        name: 'informer-sync',
        check: () => {
          const unsynced = name((informer) => !informer.hasSynced);
          return unsynced === '' ? undefined : `not synced yet: ${unsynced}`;
        },
      },
      {
        name: 'informer-age',
        check: () => {
          const oldest = clock.monotonic() - staleAfterMs;
          const stale = name(({ lastEventAt = oldest }) => lastEventAt < oldest);
          return stale === '' ? undefined : `no sign of life from the API server: ${stale}`;
        },
      },
    ];
  }

  #make<T extends KubeObject>(
    name: string,
    resource: ResourceType<T>,
    options: InformerOptions<T>,
  ): Informer<T> {
    const { transport, clock, random, log, metrics, pageSize } = this.#options;
    const { labelSelectors, fieldSelectors, namespaces } = this.#options;
    const namespace = namespaces?.[name] ?? this.#options.namespace;
    const labelSelector = labelSelectors?.[name];
    const fieldSelector = fieldSelectors?.[name];
    const measured = metrics === undefined ? {} : { metrics };
    let { transform } = options;
    const informer = new SharedInformer({
      resource,
      clock,
      log,
      ...measured,
      transform: (object) => transform?.(object) ?? object,
    });
    const reflector = new Reflector({
      transport,
      resource,
      sink: informer,
      clock,
      random,
      log,
      ...measured,
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      ...(pageSize === undefined ? {} : { pageSize }),
    });
    const running: Running = {
      informer,
      run: (signal) => reflector.run(signal),
      share: (wanted) => {
        if (transform === undefined || transform === wanted) return;
        if (this.#signal !== undefined)
          throw new Error(`the cache of ${name} keeps only a part of its objects`);
        transform = undefined;
      },
    };
    this.#informers.set(name, running);
    if (this.#signal !== undefined) this.#finished.push(running.run(this.#signal));
    return informer;
  }
}

function isInformerOf<T extends KubeObject>(
  informer: Informer<KubeObject>,
  resource: ResourceType<T>,
): informer is Informer<T> {
  return informer.resource === resource;
}
