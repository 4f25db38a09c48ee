import type { KubeObject } from '../../objects/meta.ts';

/**
 * A multi-version store with one global revision, like kube-apiserver's etcd. Keys are
 * `<group>/<plural>/<namespace>/<name>`, with "core" for the group "", and the namespace "" for cluster-scoped kinds; a
 * prefix ends in "/" and names a resource, or a namespace of it. Keys sort by UTF-16 code unit.
 *
 * A write is visible to readers and watchers once it is durable. The contract is tested by
 * test/contract/storage.contract.ts.
 */
export interface Storage {
  /** The newest durable revision; the first is 1 (an empty store). */
  readonly revision: number;
  /** The oldest revision that can still be listed, and after which a watch can start. */
  readonly compactedRevision: number;

  /** The newest version, or undefined. */
  get(key: string): StoredObject | undefined;
  /** The newest version, writes included that are not durable yet: for read-modify-write. */
  getForUpdate(key: string): StoredObject | undefined;
  /** Objects below a prefix, in key order. @throws {CompactedError} @throws {FutureRevisionError} */
  list(prefix: string, options?: StorageListOptions): ListResult;
  /** The number of objects below a prefix now. */
  count(prefix: string): number;
  /**
   * Stores all writes or none. Each gets a revision of its own, in order, written into its
   * `metadata.resourceVersion`. Preconditions are checked and later writes see this one before the call returns;
   * the promise resolves when the writes are durable. Rejects with {@link PreconditionError} (nothing stored) or
   * an I/O error (nothing stored).
   */
  commit(writes: readonly Write[]): Promise<readonly StoredObject[]>;
  /**
   * Calls `listener` for every event below a prefix with a revision greater than `after`, in order: for past events
   * before it returns, then for each new one.
   *
   * @throws {CompactedError} when `after` is too old.
   */
  watch(prefix: string, after: number, listener: (event: StorageEvent) => void): Unsubscribe;
  /**
   * The first `limit` events below a prefix with a revision greater than `after`, in order, for watchers that read at
   * their own pace.
   *
   * @throws {CompactedError} when `after` is too old.
   */
  events(prefix: string, after: number, limit: number): readonly StorageEvent[];
  /** Flushes and releases everything; later commits reject. */
  close(): Promise<void>;
}

/** Ends a watch. */
export type Unsubscribe = () => void;

/** A stored version of an object. Only `isDecorated` of it ever changes. */
export interface StoredObject {
  readonly key: string;
  /** The revision of the write that made this version. */
  readonly revision: number;
  /**
   * Frozen, with apiVersion, kind and metadata.resourceVersion. It may be parsed again from the text, so that it is not
   * always the same object.
   */
  readonly object: KubeObject;
  /** The JSON of `object`, without a newline. */
  text(): string;
  /** Bytes of the JSON in UTF-8. */
  readonly byteLength: number;
  /** Set by the strategy of its kind once it has found that readers get the text as it is. */
  isDecorated: boolean;
  /** Writes the JSON without its first `skip` bytes, which are ASCII, to `target`. @returns the end position. */
  writeTo(target: Buffer, at: number, skip?: number): number;
}

/** A create, update or delete. */
export interface Write {
  readonly key: string;
  /** The precondition: the key is `absent`, has a version of this revision, or `any`. */
  readonly expect: 'absent' | 'any' | number;
  /**
   * The next version, whose `metadata.resourceVersion` the store sets; undefined to delete. A delete of an absent key is
   * a {@link PreconditionError}.
   */
  readonly object: KubeObject | undefined;
  /**
   * The members of the object are in the order in which they are stored, `metadata.resourceVersion` among them, so that it
   * is written without the schema of its kind.
   */
  readonly inOrder?: true;
}

/** The options of {@link Storage.list}. */
export interface StorageListOptions {
  /** The revision to list; absent for the newest. */
  readonly revision?: number;
  /** Only this full key and greater ones. A key with a NUL appended excludes the key itself. */
  readonly from?: string;
  /** At most so many; absent for all. */
  readonly limit?: number;
}

/** The result of {@link Storage.list}. */
export interface ListResult {
  readonly items: readonly StoredObject[];
  /** The revision of the list. */
  readonly revision: number;
  /** The number of objects below the prefix after the last item. */
  readonly remaining: number;
}

/** A change. */
export interface StorageEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly revision: number;
  /** The new version; for DELETED the last version, with the revision of the delete. */
  readonly current: StoredObject;
  /** The version before; undefined for ADDED. */
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

/** The key of an object, such as `core/services/default/kubernetes`. @param namespace "" for cluster-scoped kinds. */
export function objectKey(group: string, plural: string, namespace: string, name: string): string {
  return `${group === '' ? 'core' : group}/${plural}/${namespace}/${name}`;
}

/** The prefix of a resource, or of one namespace of it. */
export function listPrefix(group: string, plural: string, namespace?: string): string {
  const resource = `${group === '' ? 'core' : group}/${plural}/`;
  return namespace === undefined ? resource : `${resource}${namespace}/`;
}
