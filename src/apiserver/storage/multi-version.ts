import { EventWindow, type Retention } from './event-window.ts';
import {
  emptyTree,
  type OrderedTree,
  treeDelete,
  treeGet,
  treeRank,
  treeSet,
  treeSlice,
} from './ordered-tree.ts';
import {
  FutureRevisionError,
  type StorageListOptions,
  type ListResult,
  PreconditionError,
  type Storage,
  type StorageEvent,
  type StoredObject,
  type Unsubscribe,
  type Write,
} from './storage.ts';
import { DeletedVersion, type Encode, writtenVersion } from './version.ts';
import { keyPrefixes, type WatchListener, type ListenerErrorHandler, Watchers } from './watchers.ts';

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
    for (const { key, expect, object } of writes) {
      const previous = treeGet(root, key);
      const holds =
        expect === 'any' || (expect === 'absent' ? previous === undefined : previous?.revision === expect);
      if (!holds || (object === undefined && previous === undefined)) {
        throw new PreconditionError(key, previous);
      }
      revision++;
      if (object !== undefined) {
        const current = writtenVersion(key, revision, object, this.#encode);
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
