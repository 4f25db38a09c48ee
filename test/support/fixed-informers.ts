import { Cache, type CacheHandler, type IndexFunction } from '../../src/client/informers/cache.ts';
import type { Informer, InformerOptions, Informers } from '../../src/client/informers/informer.ts';
import type { ResourceType } from '../../src/client/resources.ts';
import { deepFreeze } from '../../src/objects/json.ts';
import { keyOf, type KubeObject } from '../../src/objects/meta.ts';

/** Informers of objects that a test has made: without a server, and always in sync. */
export class FixedInformers implements Informers {
  readonly #objects = new Map<string, KubeObject>();
  readonly #informers: Pick<FixedInformer<KubeObject>, 'set' | 'delete'>[] = [];

  /** Each call makes an informer of its own. */
  informer<T extends KubeObject>(resource: ResourceType<T>, options: InformerOptions<T> = {}): Informer<T> {
    const informer = new FixedInformer(resource, options);
    for (const object of this.#objects.values()) informer.set(object);
    this.#informers.push(informer);
    return informer;
  }

  present(): undefined {
    return undefined;
  }

  /** Adds objects, or replaces those of their names. */
  set(objects: readonly KubeObject[]): void {
    for (const object of objects) {
      this.#objects.set(`${object.kind} ${keyOf(object)}`, object);
      for (const informer of this.#informers) informer.set(object);
    }
  }

  /** Takes the object of this kind and name away. */
  delete(object: KubeObject): void {
    this.#objects.delete(`${object.kind} ${keyOf(object)}`);
    for (const informer of this.#informers) informer.delete(object);
  }
}

class FixedInformer<T extends KubeObject> implements Informer<T> {
  readonly resource: ResourceType<T>;
  readonly cache = new Cache<T>();
  readonly hasSynced = true;
  readonly isListing = false;
  readonly syncProblem = undefined;
  readonly lastEventAt = undefined;
  readonly #options: InformerOptions<T>;
  readonly #handlers = new Set<CacheHandler<T>>();

  constructor(resource: ResourceType<T>, options: InformerOptions<T>) {
    this.resource = resource;
    this.#options = options;
  }

  synced(signal: AbortSignal): Promise<boolean> {
    return Promise.resolve(!signal.aborted);
  }

  addHandler(handler: CacheHandler<T>): () => void {
    this.#handlers.add(handler);
    for (const object of this.cache.values()) handler.added?.(object, true);
    return () => this.#handlers.delete(handler);
  }

  addIndex(name: string, indexFunction: IndexFunction<T>): void {
    this.cache.addIndex(name, indexFunction);
  }

  /** Does nothing with objects of other resources. */
  set(object: KubeObject): void {
    const { kind, complete, isObject } = this.resource;
    if (!this.#has(object)) return;
    const copy = structuredClone(object);
    complete?.(copy);
    if (!isObject(copy)) throw new Error(`not a ${kind}: ${JSON.stringify(object)}`);
    const kept = this.#options.transform?.(copy) ?? copy;
    deepFreeze(kept);
    const old = this.cache.set(kept);
    for (const handler of this.#handlers) {
      if (old === undefined) handler.added?.(kept, false);
      else handler.updated?.(kept, old);
    }
  }

  /** Does nothing with objects of other resources. */
  delete(object: KubeObject): void {
    const old = this.#has(object) ? this.cache.delete(keyOf(object)) : undefined;
    if (old === undefined) return;
    for (const handler of this.#handlers) handler.deleted?.(old);
  }

  #has({ apiVersion, kind }: KubeObject): boolean {
    const { group, version } = this.resource;
    return kind === this.resource.kind && apiVersion === (group === '' ? version : `${group}/${version}`);
  }
}
