import type { KubeObject } from '../../objects/meta.ts';
import type { CacheHandler, CacheReader, IndexFunction } from './cache.ts';
import type { ResourceType } from '../resources.ts';

/** A cache of one resource that follows the server. Shared: it has the handlers and indexes of all users. */
export interface Informer<T extends KubeObject> {
  readonly resource: ResourceType<T>;
  readonly cache: CacheReader<T>;
  /** True once the first list is in the cache. Never turns false again. */
  readonly hasSynced: boolean;
  /** Why it has not synced yet, if known. */
  readonly syncProblem: string | undefined;
  /**
   * True while a new list is read: the cache is then part old, part new. Otherwise it shows the resource as it was at
   * one revision.
   */
  readonly isListing: boolean;
  /** Monotonic milliseconds of the last sign of life (event, bookmark, list); undefined before the first. */
  readonly lastEventAt: number | undefined;
  /** Resolves true when synced, false when the signal aborts first. */
  synced(signal: AbortSignal): Promise<boolean>;
  /**
   * Adds a handler. Objects that are in the cache are reported as `added(…, initial)` before this returns. The result
   * removes it.
   */
  addHandler(handler: CacheHandler<T>): () => void;
  addIndex(name: string, indexFunction: IndexFunction<T>): void;
}

/** What a user of an informer reads of each object. */
export interface InformerOptions<T extends KubeObject> {
  /**
   * Reduces an object to what this user reads, as client-go's `WithTransform`; may change it in place. The cache keeps
   * whole objects, without `managedFields`, unless every user gives the same function: the order of users does not
   * matter. Identity, owners, finalizers and the deletion timestamp must stay: the garbage collector reads them.
   */
  readonly transform?: (object: T) => T;
}

/** Provides one informer per resource. */
export interface Informers {
  informer<T extends KubeObject>(resource: ResourceType<T>, options?: InformerOptions<T>): Informer<T>;
  /** The existing informer of `plural.group`, if any. */
  present(name: string): Informer<KubeObject> | undefined;
}
