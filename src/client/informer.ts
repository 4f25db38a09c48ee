import type { KubeObject } from '../objects/meta.ts';
import type { CacheHandler, CacheReader, IndexFunction } from './cache.ts';
import type { ResourceType } from './resources.ts';

/** A cache of one resource that follows the server. Shared: handlers and indexes of all users live side by side. */
export interface Informer<T extends KubeObject> {
  readonly resource: ResourceType<T>;
  readonly cache: CacheReader<T>;
  /** True once the first list is in the cache. Never turns false again. */
  readonly hasSynced: boolean;
  /** Why it has not synced yet, where that is known. */
  readonly hindrance: string | undefined;
  /**
   * True while a new list is read: the cache is then part old, part new. Otherwise it shows the resource as it was at
   * one revision.
   */
  readonly isListing: boolean;
  /** Monotonic milliseconds of the last sign of life (event, bookmark, list); undefined before the first. */
  readonly lastEventAt: number | undefined;
  /** Resolves true when synced, false when the signal aborts first. */
  synced(signal: AbortSignal): Promise<boolean>;
  /** What the cache holds already comes as `added(…, initial)` before this returns. The result removes it. */
  addHandler(handler: CacheHandler<T>): () => void;
  addIndex(name: string, indexFunction: IndexFunction<T>): void;
}

/** What a user of an informer reads of each object. */
export interface InformerOptions<T extends KubeObject> {
  /**
   * Reduces an object to what this user reads, as client-go's `WithTransform`; may change it in place. The cache keeps
   * whole objects, without `managedFields`, unless every user gives the same function: the order of users is no matter.
   * Identity, owners, finalizers and the time of deletion are to stay: the garbage collector reads them.
   */
  readonly transform?: (object: T) => T;
}

/** Hands out one informer per resource. */
export interface Informers {
  informer<T extends KubeObject>(resource: ResourceType<T>, options?: InformerOptions<T>): Informer<T>;
  /** The informer that somebody asked for already, by `plural.group`. */
  present(name: string): Informer<KubeObject> | undefined;
}
