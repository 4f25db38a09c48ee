import type { KubeObject } from '../../objects/meta.ts';

/**
 * A multi-version store with one global revision, as etcd is to kube-apiserver. Keys are
 * `<group>/<plural>/<namespace>/<name>`, the group "core" for "", the namespace "" (so `//`) for cluster-scoped
 * kinds; a prefix ends in "/" and names a resource or a namespace of one. Keys sort by UTF-16 code unit.
 *
 * A write is visible to readers and watchers only when it is durable. Every implementation passes
 * test/contract/storage.contract.ts.
 */
export interface Storage {
  /** The newest durable revision; the first is 1 (an empty store). */
  readonly revision: number;
  /** The oldest revision that can still be listed, and after which a watch can start. */
  readonly compactedRevision: number;

  /** The newest version, or undefined. */
  get(key: string): StoredObject | undefined;
  /**
   * The newest version including writes that are not durable yet: what a read-modify-write must start from.
   */
  getForUpdate(key: string): StoredObject | undefined;
  /** Objects below a prefix, in key order. @throws {CompactedError} @throws {FutureRevisionError} */
  list(prefix: string, options?: StorageListOptions): ListResult;
  /** How many objects are below a prefix now. */
  count(prefix: string): number;
  /**
   * Stores all writes or none. Each gets a revision of its own, in order, written into its
   * `metadata.resourceVersion`. Preconditions are checked and later writes see this one before the call returns;
   * the promise resolves when the writes are durable. Rejects with {@link PreconditionError} (nothing stored) or
   * an I/O error (nothing stored).
   */
  commit(writes: readonly Write[]): Promise<readonly StoredObject[]>;
  /**
   * Calls `listener` for every event below a prefix with a revision greater than `after`, in order: first those
   * that happened already, synchronously, then each new one. @throws {CompactedError} when `after` is too old.
   */
  watch(prefix: string, after: number, listener: (event: StorageEvent) => void): Unsubscribe;
  /**
   * The first `limit` events below a prefix with a revision greater than `after`, in order: a watcher reads at its
   * own pace.
   *
   * @throws {CompactedError} when `after` is too old.
   */
  events(prefix: string, after: number, limit: number): readonly StorageEvent[];
  /** Flushes and releases everything; later commits reject. */
  close(): Promise<void>;
}

export type Unsubscribe = () => void;

/** One stored version of an object. Never changes. */
export interface StoredObject {
  readonly key: string;
  /** The revision of the write that made this version. */
  readonly revision: number;
  /**
   * Frozen; carries apiVersion, kind and metadata.resourceVersion. Parsed from the text at each use, so it is not
   * always the same object.
   */
  readonly object: KubeObject;
  /** The JSON of `object`, without a newline. */
  text(): string;
  /** Bytes of the JSON in UTF-8. */
  readonly byteLength: number;
  /** For the strategy of its kind, which notes here that the text was found to be what readers see, once and for all. */
  isDecorated: boolean;
  /** Writes the JSON but its first `skip` bytes to `target`, where there is room for it; returns where that ends. */
  writeTo(target: Buffer, at: number, skip?: number): number;
}

export interface Write {
  readonly key: string;
  /** `absent`: must not exist. A number: the revision of the present version. `any`: no condition. */
  readonly expect: 'absent' | 'any' | number;
  /**
   * The next version: the store sets its `metadata.resourceVersion` and keeps its text. Undefined deletes; to delete
   * what is absent is a {@link PreconditionError}.
   */
  readonly object: KubeObject | undefined;
}

export interface StorageListOptions {
  /** List as of this revision; absent: the newest. */
  readonly revision?: number;
  /** Only this full key and greater ones. What follows a key begins at the key and a NUL. */
  readonly from?: string;
  /** At most so many; absent: all. */
  readonly limit?: number;
}

export interface ListResult {
  readonly items: readonly StoredObject[];
  /** The revision that the list shows. */
  readonly revision: number;
  /** How many objects follow below the prefix behind the last item. */
  readonly remaining: number;
}

/** A change. `object` is the new version; for a delete the last one, with the revision of the delete. */
export interface StorageEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly revision: number;
  readonly current: StoredObject;
  /** The version before; absent for ADDED. */
  readonly previous: StoredObject | undefined;
}

/** The revision is compacted: clients get 410. */
export class CompactedError extends Error {
  override readonly name = 'CompactedError';
  readonly revision: number;
  readonly compactedRevision: number;
  constructor(revision: number, compactedRevision: number) {
    super(`revision ${revision} is compacted, the oldest kept is ${compactedRevision}`);
    this.revision = revision;
    this.compactedRevision = compactedRevision;
  }
}

/** The revision has not been reached. */
export class FutureRevisionError extends Error {
  override readonly name = 'FutureRevisionError';
  readonly revision: number;
  readonly current: number;
  constructor(revision: number, current: number) {
    super(`revision ${revision} is in the future, the newest is ${current}`);
    this.revision = revision;
    this.current = current;
  }
}

/** A write's `expect` did not hold. */
export class PreconditionError extends Error {
  override readonly name = 'PreconditionError';
  readonly key: string;
  readonly present: StoredObject | undefined;
  constructor(key: string, present: StoredObject | undefined) {
    super(`precondition failed for ${key}`);
    this.key = key;
    this.present = present;
  }
}

/** `core/services/default/kubernetes`; namespace "" for cluster-scoped kinds. */
export function objectKey(group: string, plural: string, namespace: string, name: string): string {
  return `${group === '' ? 'core' : group}/${plural}/${namespace}/${name}`;
}

/** The prefix of a resource, or of one namespace of it. */
export function listPrefix(group: string, plural: string, namespace?: string): string {
  const resource = `${group === '' ? 'core' : group}/${plural}/`;
  return namespace === undefined ? resource : `${resource}${namespace}/`;
}
