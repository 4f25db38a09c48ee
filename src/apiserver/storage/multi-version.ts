import { deepFreeze, countJsonValues } from '../../objects/json.ts';
import { type KubeObject, hasMetadata } from '../../objects/meta.ts';
import { plainError } from '../../objects/status.ts';
import { encodePlain } from '../schema/encode.ts';
import {
  type StoredObject,
  FutureRevisionError,
  type StorageListOptions,
  type ListResult,
  PreconditionError,
  type Storage,
  type StorageEvent,
  type Unsubscribe,
  type Write,
} from './storage.ts';
import {
  EventWindow,
  type Retention,
  keyPrefixes,
  type WatchListener,
  type ListenerErrorHandler,
  Watchers,
} from './event-window.ts';
import {
  emptyTree,
  type OrderedTree,
  treeDelete,
  treeGet,
  treeRank,
  treeSet,
  treeSlice,
} from './ordered-tree.ts';

/** Encodes an object as JSON, in Kubernetes' order of fields. */
export type Encode = (object: KubeObject) => string;

/**
 * The version of an object that is written, of which only the text is kept. Sets `metadata.resourceVersion`, in a copy
 * where the object or its metadata is frozen.
 *
 * @throws {StatusError} 500 with etcd's message for an object that is too large.
 */
function writtenVersion(key: string, revision: number, object: KubeObject, encode: Encode): StoredObject {
  const own = Object.isFrozen(object) ? { ...object } : object;
  if (Object.isFrozen(own.metadata)) own.metadata = { ...own.metadata };
  own.metadata.resourceVersion = String(revision);
  const text = encode(own);
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  const version = new TextVersion(key, revision, bytes);
  checkSize(version);
  return version;
}

/** etcd takes 1.5 MiB, in which built-in kinds are protobuf; JSON is about twice as large. */
const maxBytes = 3 * 1024 * 1024;
/** Three times the limit of request bodies, since managed fields and patches add values. */
const maxValues = 120_000;

function checkSize(version: StoredObject): void {
  const { byteLength } = version;
  // A JSON value has at least two bytes with its separator.
  const isLarge =
    byteLength > maxBytes ||
    (byteLength > 2 * maxValues && countJsonValues(version.text(), maxValues) > maxValues);
  if (isLarge) throw plainError('etcdserver: request is too large');
}

/** A version of a log or snapshot. @param encoded UTF-8. */
export function loadedVersion(key: string, revision: number, encoded: Buffer): StoredObject {
  // Copied, since a slice would keep the whole piece of the file in memory.
  const bytes = Buffer.allocUnsafeSlow(encoded.length);
  encoded.copy(bytes);
  return new TextVersion(key, revision, bytes);
}

/**
 * A version that is kept as UTF-8 in a buffer outside of V8's heap, where strings can take twice the space.
 */
class TextVersion implements StoredObject {
  readonly key: string;
  readonly revision: number;
  isDecorated = false;
  readonly #bytes: Buffer;
  /** Weak, since the object takes about twice the memory of its text. */
  #object: WeakRef<KubeObject> | undefined;

  constructor(key: string, revision: number, bytes: Buffer) {
    this.key = key;
    this.revision = revision;
    this.#bytes = bytes;
  }

  get object(): KubeObject {
    let object = this.#object?.deref();
    if (object === undefined) this.#object = new WeakRef((object = decode(this.text())));
    return object;
  }

  get byteLength(): number {
    return this.#bytes.length;
  }

  text(): string {
    return this.#bytes.toString();
  }

  writeTo(target: Buffer, at: number, skip = 0): number {
    return at + this.#bytes.copy(target, at, skip);
  }
}

function decode(text: string): KubeObject {
  const object: unknown = JSON.parse(text);
  // Only a faulty encoder leads here: checksums detect damage on the disk.
  if (!hasMetadata(object)) throw new TypeError('a stored version is not a Kubernetes object');
  deepFreeze(object);
  return object;
}

/**
 * The last version of a deleted object with the revision of the delete, as watchers get it. It is encoded at each use,
 * since few clients watch most deletes.
 */
class DeletedVersion implements StoredObject {
  readonly key: string;
  readonly revision: number;
  isDecorated = false;
  readonly #last: StoredObject;
  readonly #encode: Encode;

  constructor(last: StoredObject, revision: number, encode: Encode) {
    this.key = last.key;
    this.revision = revision;
    this.#last = last;
    this.#encode = encode;
  }

  /** Shares all but the object itself and its metadata with the last version. */
  get object(): KubeObject {
    const { object } = this.#last;
    const metadata = Object.freeze({ ...object.metadata, resourceVersion: String(this.revision) });
    return Object.freeze({ ...object, metadata });
  }

  text(): string {
    return this.#encode(this.object);
  }

  get byteLength(): number {
    return Buffer.byteLength(this.text());
  }

  writeTo(target: Buffer, at: number, skip = 0): number {
    return at + target.write(this.text().slice(skip), at);
  }
}

/** The revision of an empty store, as in etcd. */
const firstRevision = 1;

/** The options of a {@link MultiVersionStore}. */
export interface MultiVersionOptions {
  readonly encode: Encode;
  readonly retain: Retention;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  readonly onListenerError: ListenerErrorHandler;
}

/** Writes whose preconditions held, and that are not published yet. */
export interface StagedCommit {
  readonly events: readonly StorageEvent[];
  /** The tree after each event. */
  readonly roots: readonly OrderedTree<StoredObject>[];
}

/** The tree of all objects at a revision. */
export interface StoreState {
  readonly root: OrderedTree<StoredObject>;
  readonly revision: number;
}

/**
 * The store in memory, with two states: staged (all accepted writes) and published (the writes that readers and watchers
 * see). Both are roots of an immutable tree, so publishing and rolling back are assignments.
 */
export class MultiVersionStore {
  readonly #encode: Encode;
  readonly #clock: () => number;
  readonly #window: EventWindow;
  readonly #watchers: Watchers;
  /** Numbers of objects of the resources that {@link count} was called for, which every write does. */
  readonly #counts = new Map<string, number>();
  #published: StoreState;
  #staged: StoreState;

  constructor(options: MultiVersionOptions, start?: StoreState) {
    this.#encode = options.encode;
    this.#clock = options.clock;
    this.#published = start ?? { root: emptyTree<StoredObject>(), revision: firstRevision };
    this.#staged = this.#published;
    this.#window = new EventWindow(options.retain, options.clock, this.#published.revision);
    this.#watchers = new Watchers(options.onListenerError);
  }

  get revision(): number {
    return this.#published.revision;
  }

  get compactedRevision(): number {
    return this.#window.compact();
  }

  /** The published state. */
  get snapshot(): StoreState {
    return this.#published;
  }

  get(key: string): StoredObject | undefined {
    return treeGet(this.#published.root, key);
  }

  getForUpdate(key: string): StoredObject | undefined {
    return treeGet(this.#staged.root, key);
  }

  count(prefix: string): number {
    const known = this.#counts.get(prefix);
    if (known !== undefined) return known;
    const [low, high] = bounds(prefix);
    const count = treeRank(this.#published.root, high) - treeRank(this.#published.root, low);
    if (keyPrefixes(prefix)[0] === prefix) this.#counts.set(prefix, count);
    return count;
  }

  /** See {@link Storage.list}. */
  list(prefix: string, options: StorageListOptions = {}): ListResult {
    const { revision = this.revision, from, limit = Infinity } = options;
    if (revision > this.revision) throw new FutureRevisionError(revision, this.revision);
    const newest = this.#published.root;
    const root = revision === this.revision ? newest : this.#window.rootAt(revision, newest);
    const [low, high] = bounds(prefix);
    const start = treeRank(root, from === undefined || from < low ? low : from);
    const end = treeRank(root, high);
    const stop = Math.max(start, Math.min(end, start + limit));
    return { items: treeSlice(root, start, stop), revision, remaining: Math.max(0, end - stop) };
  }

  /** See {@link Storage.events}. */
  events(prefix: string, after: number, limit: number): StorageEvent[] {
    return this.#window.since(prefix, after, limit);
  }

  /** See {@link Storage.watch}. */
  watch(prefix: string, after: number, listener: WatchListener): Unsubscribe {
    if (!watchable.test(prefix)) {
      throw new RangeError(
        `a watch needs the prefix of a resource or a namespace: ${JSON.stringify(prefix)}`,
      );
    }
    const past = this.#window.since(prefix, after);
    return this.#watchers.subscribe(prefix, past, Math.max(after, this.revision), listener);
  }

  /** Checks and stages writes; later calls of stage and getForUpdate see them. @throws {PreconditionError} */
  stage(writes: readonly Write[]): StagedCommit {
    let { root, revision } = this.#staged;
    const events: StorageEvent[] = [];
    const roots: OrderedTree<StoredObject>[] = [];
    for (const { key, expect, object, inOrder } of writes) {
      const previous = treeGet(root, key);
      const holds =
        expect === 'any' || (expect === 'absent' ? previous === undefined : previous?.revision === expect);
      if (!holds || (object === undefined && previous === undefined)) {
        throw new PreconditionError(key, previous);
      }
      revision++;
      if (object !== undefined) {
        const current = writtenVersion(key, revision, object, inOrder === true ? encodePlain : this.#encode);
        events.push({ type: previous === undefined ? 'ADDED' : 'MODIFIED', revision, current, previous });
        root = treeSet(root, current);
      } else if (previous !== undefined) {
        events.push(this.#deletion(previous, revision));
        root = treeDelete(root, key);
      }
      roots.push(root);
    }
    this.#staged = { root, revision };
    return { events, roots };
  }

  /**
   * Publishes the next write of a log.
   *
   * @param current undefined to delete the key.
   * @param time at which the write was published first.
   * @returns false for a delete of a key that does not exist.
   */
  replay(key: string, current: StoredObject | undefined, time: number): boolean {
    const previous = treeGet(this.#published.root, key);
    const revision = this.#published.revision + 1;
    let event: StorageEvent;
    if (current !== undefined) {
      event = { type: previous === undefined ? 'ADDED' : 'MODIFIED', revision, current, previous };
    } else {
      if (previous === undefined) return false;
      event = this.#deletion(previous, revision);
    }
    const before = this.#published.root;
    const root = current === undefined ? treeDelete(before, key) : treeSet(before, current);
    this.publish({ events: [event], roots: [root] }, time);
    this.#staged = this.#published;
    return true;
  }

  /** Publishes the oldest staged commit, all its writes at once, and notifies the watchers. */
  publish(commit: StagedCommit, time = this.#clock()): void {
    const last = commit.events.at(-1);
    const root = commit.roots.at(-1);
    if (last === undefined || root === undefined) return;
    this.#published = { root, revision: last.revision };
    commit.events.forEach((event, i) => {
      const [resource] = keyPrefixes(event.current.key);
      this.#window.push(event, resource, commit.roots[i] ?? root, time);
      const known = event.type === 'MODIFIED' ? undefined : this.#counts.get(resource);
      if (known !== undefined) this.#counts.set(resource, event.type === 'ADDED' ? known + 1 : known - 1);
    });
    this.#window.compact();
    this.#watchers.deliver(commit.events);
  }

  /** Drops all staged commits. Their revisions are used again. */
  rollback(): void {
    this.#staged = this.#published;
  }

  #deletion(previous: StoredObject, revision: number): StorageEvent {
    return {
      type: 'DELETED',
      revision,
      current: new DeletedVersion(previous, revision, this.#encode),
      previous,
    };
  }
}

/** A {@link Storage} with the reads of a store. */
export function storageOf(
  store: MultiVersionStore,
  commit: Storage['commit'],
  close: Storage['close'],
): Storage {
  let closing: Promise<void> | undefined;
  return {
    get revision() {
      return store.revision;
    },
    get compactedRevision() {
      return store.compactedRevision;
    },
    get: (key) => store.get(key),
    getForUpdate: (key) => store.getForUpdate(key),
    list: (prefix, options) => store.list(prefix, options),
    count: (prefix) => store.count(prefix),
    events: (prefix, after, limit) => store.events(prefix, after, limit),
    watch: (prefix, after, listener) => store.watch(prefix, after, listener),
    commit: (writes) =>
      closing === undefined ? commit(writes) : Promise.reject(new Error('the storage is closed')),
    close: () => (closing ??= close()),
  };
}

/** `<group>/<plural>/` or `<group>/<plural>/<namespace>/`. */
const watchable = /^[^/]+\/[^/]+\/(?:[^/]*\/)?$/;

/** The smallest key below a prefix, and the smallest key after all of them. */
function bounds(prefix: string): [low: string, high: string] {
  if (!prefix.endsWith('/')) throw new RangeError(`a storage prefix ends in "/": ${JSON.stringify(prefix)}`);
  // "0" is the character after "/".
  return [prefix, `${prefix.slice(0, -1)}0`];
}

/** A store in memory only: a write is visible as soon as it is accepted. */
export function createMemoryStorage(options: MultiVersionOptions): Storage {
  const store = new MultiVersionStore(options);
  return storageOf(
    store,
    (writes) =>
      new Promise((resolve) => {
        const commit = store.stage(writes);
        store.publish(commit);
        resolve(commit.events.map((event) => event.current));
      }),
    () => Promise.resolve(),
  );
}
