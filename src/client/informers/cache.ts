import { keyOf, type ObjectKey, type KubeObject } from '../../objects/meta.ts';
import { isRecord } from '../../objects/json.ts';

/** The values under which an index files an object; none: the object is not in the index. Must not throw. */
export type IndexFunction<T extends KubeObject> = (object: T) => readonly string[];

/** Receives the changes of a cache. Handlers only enqueue keys: they run inside the read loop. Objects are frozen. */
export interface CacheHandler<T extends KubeObject> {
  /** `initial`: it existed before the cache was filled or before the handler was added. */
  added?(object: T, initial: boolean): void;
  /** `old` may have another uid: the object was deleted and created again between two reads. */
  updated?(object: T, old: T): void;
  /** The last state that was seen; later changes may have been missed. */
  deleted?(object: T): void;
  /** The cache shows a list of this revision. Of what came and went before it there may have been no event. */
  listed?(revision: string): void;
}

/** A handler that does the same for added, updated and deleted objects. */
export function onEach<T extends KubeObject>(each: (object: T) => void): CacheHandler<T> {
  return { added: each, updated: each, deleted: each };
}

/** The cache as controllers see it: frozen objects, in no order. */
export interface CacheReader<T extends KubeObject> {
  readonly size: number;
  get(key: ObjectKey): T | undefined;
  has(key: ObjectKey): boolean;
  keys(): IterableIterator<ObjectKey>;
  values(): IterableIterator<T>;
  /** The objects in an index under a value. @throws {Error} for an unknown index. */
  byIndex(index: string, value: string): readonly T[];
  /** The number of objects that {@link byIndex} would return, without collecting them. @throws {Error} as byIndex. */
  countByIndex(index: string, value: string): number;
}

/** A keyed store with indexes; one writer (the reflector), any number of readers. */
export class Cache<T extends KubeObject> implements CacheReader<T> {
  readonly #objects = new Map<ObjectKey, T>();
  readonly #indexes = new Map<string, Index<T>>();

  get size(): number {
    return this.#objects.size;
  }

  get(key: ObjectKey): T | undefined {
    return this.#objects.get(key);
  }

  has(key: ObjectKey): boolean {
    return this.#objects.has(key);
  }

  keys(): IterableIterator<ObjectKey> {
    return this.#objects.keys();
  }

  values(): IterableIterator<T> {
    return this.#objects.values();
  }

  byIndex(index: string, value: string): readonly T[] {
    const found = this.#indexes.get(index);
    if (found === undefined) throw new Error(`the cache has no index "${index}"`);
    const keys = found.filed.get(value);
    if (keys === undefined) return [];
    const objects: T[] = [];
    for (const key of keys) {
      const object = this.#objects.get(key);
      if (object !== undefined) objects.push(object);
    }
    return objects;
  }

  countByIndex(index: string, value: string): number {
    const found = this.#indexes.get(index);
    if (found === undefined) throw new Error(`the cache has no index "${index}"`);
    return found.filed.get(value)?.size ?? 0;
  }

  /** Adds an index over present and future objects. Adding the same function again does nothing. */
  addIndex(name: string, indexFunction: IndexFunction<T>): void {
    const present = this.#indexes.get(name);
    if (present?.indexFunction === indexFunction) return;
    if (present !== undefined) throw new Error(`the cache has another index "${name}"`);
    const index: Index<T> = { indexFunction, filed: new Map() };
    this.#indexes.set(name, index);
    for (const [key, object] of this.#objects) file(index, key, object);
  }

  /** Stores an object and returns the previous one. The caller has frozen it (`deepFreeze`). */
  set(object: T): T | undefined {
    const key = keyOf(object);
    const old = this.#objects.get(key);
    this.#objects.set(key, object);
    for (const index of this.#indexes.values()) {
      if (old !== undefined) unfile(index, key, old);
      file(index, key, object);
    }
    return old;
  }

  /** Removes an object and returns it. */
  delete(key: ObjectKey): T | undefined {
    const old = this.#objects.get(key);
    if (old === undefined) return undefined;
    this.#objects.delete(key);
    for (const index of this.#indexes.values()) unfile(index, key, old);
    return old;
  }
}

interface Index<T extends KubeObject> {
  readonly indexFunction: IndexFunction<T>;
  /** value → keys */
  readonly filed: Map<string, Set<ObjectKey>>;
}

function file<T extends KubeObject>(index: Index<T>, key: ObjectKey, object: T): void {
  for (const value of index.indexFunction(object)) {
    const keys = index.filed.get(value);
    if (keys === undefined) index.filed.set(value, new Set([key]));
    else keys.add(key);
  }
}

function unfile<T extends KubeObject>(index: Index<T>, key: ObjectKey, object: T): void {
  for (const value of index.indexFunction(object)) {
    const keys = index.filed.get(value);
    keys?.delete(key);
    if (keys?.size === 0) index.filed.delete(value);
  }
}

/** The names of the indexes that several controllers use; their functions are below. */
export const byNamespace = 'namespace';
export const byOwner = 'owner';
export const byNode = 'node';

/** Files an object under its namespace. */
export function indexByNamespace(object: KubeObject): readonly string[] {
  const namespace = object.metadata.namespace;
  return namespace === undefined ? [] : [namespace];
}

/** Files an object under the uid of each owner. */
export function indexByOwner(object: KubeObject): readonly string[] {
  const owners: unknown = object.metadata.ownerReferences;
  if (!Array.isArray(owners)) return [];
  return owners.flatMap((owner: unknown) =>
    isRecord(owner) && typeof owner['uid'] === 'string' ? [owner['uid']] : [],
  );
}

/** Files a Pod under its node. */
export function indexByNode(object: KubeObject): readonly string[] {
  const spec: unknown = Reflect.get(object, 'spec');
  const node = isRecord(spec) ? spec['nodeName'] : undefined;
  return typeof node === 'string' && node !== '' ? [node] : [];
}

const labelIndexes = new Map<string, IndexFunction<KubeObject>>();

/**
 * The index that files an object under `namespace/value` of one label, e.g. EndpointSlices by
 * `kubernetes.io/service-name`. Repeated calls return the same function, so that informers can share it.
 */
export function indexByLabel(label: string): IndexFunction<KubeObject> {
  const known = labelIndexes.get(label);
  if (known !== undefined) return known;
  const made: IndexFunction<KubeObject> = (object) => {
    const labels: unknown = object.metadata.labels;
    const value = isRecord(labels) && Object.hasOwn(labels, label) ? labels[label] : undefined;
    return typeof value === 'string' ? [`${object.metadata.namespace ?? ''}/${value}`] : [];
  };
  labelIndexes.set(label, made);
  return made;
}
