import type { Logger } from 'pino';
import { deepFreeze } from '../../objects/freeze.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { Cache, type CacheHandler, type CacheReader, type IndexFunction } from './cache.ts';
import type { Clock } from '../clock.ts';
import type { Informer } from './informer.ts';
import type { ReflectorSink } from './reflector.ts';
import { apiVersionOf, resourceName, type ResourceType } from '../resources.ts';
import { SharedParts } from './shared-parts.ts';
import type { TimeSlices } from '../slices.ts';

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

  async listed(slices: TimeSlices): Promise<void> {
    for (const key of this.#unseen ?? []) {
      if (slices.due) await slices.pause();
      this.#forget(key);
    }
    this.#unseen = undefined;
    this.#synced = true;
    this.#syncProblem = undefined;
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
  #tell(call: () => void, object: T): void {
    try {
      call();
    } catch (error) {
      this.#options.log.error(
        { resource: this.#name, key: keyOf(object), err: error },
        'a cache handler failed',
      );
    }
  }
}
