import { type StorageEvent, type Unsubscribe, CompactedError, type StoredObject } from './storage.ts';
import { type OrderedTree, treeDelete, treeSet } from './ordered-tree.ts';

/** Called for each event of a watch. */
export type WatchListener = (event: StorageEvent) => void;

/** Called with an error that a listener threw. The listener stays subscribed, and other listeners are not affected. */
export type ListenerErrorHandler = (error: unknown, event: StorageEvent) => void;

interface Watcher {
  readonly listener: WatchListener;
  /** The last revision that the watcher does not get, or that was replayed to it. */
  readonly after: number;
  active: boolean;
}

/**
 * Listeners by prefix: an event looks up those of its resource and its namespace only. Listeners are called
 * synchronously and in the order of events: events that a listener causes are delivered after all listeners got the
 * present one.
 */
export class Watchers {
  readonly #byPrefix = new Map<string, Set<Watcher>>();
  readonly #onError: ListenerErrorHandler;
  #queue: StorageEvent[] = [];
  #delivering = false;

  constructor(onError: ListenerErrorHandler) {
    this.#onError = onError;
  }

  /** Replays `past` to the listener, then calls it for every event with a revision greater than `after`. */
  subscribe(
    prefix: string,
    past: readonly StorageEvent[],
    after: number,
    listener: WatchListener,
  ): Unsubscribe {
    const watcher: Watcher = { listener, after, active: true };
    let watchers = this.#byPrefix.get(prefix);
    if (watchers === undefined) this.#byPrefix.set(prefix, (watchers = new Set()));
    watchers.add(watcher);
    const nested = this.#delivering;
    this.#delivering = true;
    for (const event of past) this.#call(watcher, event);
    this.#delivering = nested;
    if (!nested) this.deliver([]);
    return () => {
      watcher.active = false;
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#byPrefix.get(prefix) === watchers) this.#byPrefix.delete(prefix);
    };
  }

  /** Passes events to the listeners of their resource or namespace. */
  deliver(events: readonly StorageEvent[]): void {
    for (const event of events) this.#queue.push(event);
    if (this.#delivering) return;
    this.#delivering = true;
    for (let i = 0; i < this.#queue.length; i++) {
      const event = this.#queue[i];
      if (event !== undefined) this.#dispatch(event);
    }
    this.#queue = [];
    this.#delivering = false;
  }

  #dispatch(event: StorageEvent): void {
    if (this.#byPrefix.size === 0) return;
    const [resource, namespace] = keyPrefixes(event.current.key);
    for (const prefix of [resource, namespace]) {
      const watchers = this.#byPrefix.get(prefix);
      if (watchers === undefined) continue;
      for (const watcher of watchers) if (event.revision > watcher.after) this.#call(watcher, event);
    }
  }

  #call(watcher: Watcher, event: StorageEvent): void {
    if (!watcher.active) return;
    try {
      watcher.listener(event);
    } catch (error) {
      this.#onError(error, event);
    }
  }
}

/** The resource prefix and the namespace prefix of a full key. */
export function keyPrefixes(key: string): [resource: string, namespace: string] {
  const resourceEnd = key.indexOf('/', key.indexOf('/') + 1) + 1;
  return [key.slice(0, resourceEnd), key.slice(0, key.indexOf('/', resourceEnd) + 1)];
}

/** The bounds of the events that are kept; all of them apply. */
export interface Retention {
  /** At most so many events. */
  readonly revisions: number;
  /** The age up to which events are kept; 5 minutes in kube-apiserver (`--etcd-compaction-interval`). */
  readonly milliseconds: number;
  /** At most about so many bytes of old versions; absent for no bound. */
  readonly bytes?: number;
}

interface Entry {
  readonly event: StorageEvent;
  readonly resource: string;
  readonly time: number;
  readonly size: number;
}

interface Checkpoint {
  readonly revision: number;
  readonly root: OrderedTree<StoredObject>;
}

/** The tree is kept at each multiple of this revision; a list of an old revision undoes fewer events. */
const checkpointInterval = 64;
/** The memory of an entry without the text of its old version, and with its share of copied tree nodes. */
const entryBytes = 512;

/**
 * The recent events, for watches that resume, and checkpoints of the tree, from which any revision of the window can be
 * listed. Old events are dropped by count, age and size.
 */
export class EventWindow {
  readonly #retain: Retention;
  readonly #clock: () => number;
  readonly #entries = new Queue<Entry>();
  readonly #byResource = new Map<string, Queue<StorageEvent>>();
  readonly #checkpoints = new Queue<Checkpoint>();
  #bytes = 0;
  /** The oldest revision that can be listed and after which a watch can start. */
  #oldest: number;

  constructor(retain: Retention, clock: () => number, oldest: number) {
    this.#retain = retain;
    this.#clock = clock;
    this.#oldest = oldest;
  }

  /**
   * Adds the next event.
   *
   * @param resource its prefix.
   * @param root the tree after the event.
   * @param time at which the event was published.
   */
  push(event: StorageEvent, resource: string, root: OrderedTree<StoredObject>, time: number): void {
    const size = entryBytes + (event.previous?.byteLength ?? 0);
    this.#entries.push({ event, resource, time, size });
    this.#bytes += size;
    let resourceEvents = this.#byResource.get(resource);
    if (resourceEvents === undefined) this.#byResource.set(resource, (resourceEvents = new Queue()));
    resourceEvents.push(event);
    if (event.revision % checkpointInterval === 0) this.#checkpoints.push({ revision: event.revision, root });
  }

  /** Drops events beyond the bounds. @returns the oldest kept revision. */
  compact(): number {
    const { revisions, milliseconds, bytes = Infinity } = this.#retain;
    const deadline = this.#clock() - milliseconds;
    for (;;) {
      const entry = this.#entries.first();
      if (entry === undefined) break;
      if (entry.time > deadline && this.#entries.length <= revisions && this.#bytes <= bytes) break;
      this.#entries.shift();
      this.#bytes -= entry.size;
      this.#oldest = entry.event.revision;
      const resourceEvents = this.#byResource.get(entry.resource);
      resourceEvents?.shift();
      if (resourceEvents?.length === 0) this.#byResource.delete(entry.resource);
    }
    for (let first = this.#checkpoints.first(); first !== undefined; first = this.#checkpoints.first()) {
      if (first.revision >= this.#oldest) break;
      this.#checkpoints.shift();
    }
    return this.#oldest;
  }

  /** The first `limit` events below a prefix with a revision greater than `after`, in order. @throws {CompactedError} */
  since(prefix: string, after: number, limit = Infinity): StorageEvent[] {
    if (after < this.compact()) throw new CompactedError(after, this.#oldest);
    const [resource] = keyPrefixes(prefix);
    const resourceEvents = this.#byResource.get(resource);
    if (resourceEvents === undefined) return [];
    const events: StorageEvent[] = [];
    for (let i = resourceEvents.firstIndex((event) => event.revision > after); events.length < limit; i++) {
      const event = resourceEvents.at(i);
      if (event === undefined) break;
      if (prefix === resource || event.current.key.startsWith(prefix)) events.push(event);
    }
    return events;
  }

  /**
   * The tree at a revision: the events since then are undone in the next checkpoint, or in the newest tree.
   *
   * @throws {CompactedError}
   */
  rootAt(revision: number, newest: OrderedTree<StoredObject>): OrderedTree<StoredObject> {
    if (revision < this.compact()) throw new CompactedError(revision, this.#oldest);
    const checkpoint = this.#checkpoints.at(
      this.#checkpoints.firstIndex((point) => point.revision >= revision),
    );
    let root = checkpoint?.root ?? newest;
    const from = this.#entries.firstIndex((entry) => entry.event.revision > revision);
    const to =
      checkpoint === undefined
        ? this.#entries.length
        : this.#entries.firstIndex((entry) => entry.event.revision > checkpoint.revision);
    for (let i = to - 1; i >= from; i--) {
      const event = this.#entries.at(i)?.event;
      if (event === undefined) continue;
      root =
        event.previous === undefined ? treeDelete(root, event.current.key) : treeSet(root, event.previous);
    }
    return root;
  }
}

/** A queue with random access. Removing the first item is O(1), amortized. */
class Queue<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }
  first(): T | undefined {
    return this.#items[this.#head];
  }
  at(index: number): T | undefined {
    return this.#items[this.#head + index];
  }
  push(item: T): void {
    this.#items.push(item);
  }
  /** Removes the first item. */
  shift(): T | undefined {
    const first = this.#items[this.#head];
    if (this.#head < this.#items.length) this.#items[this.#head++] = undefined;
    if (this.#head > 1024 && this.#head > this.#items.length >> 1) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return first;
  }
  /** The first index whose item passes, as do all after it; the length when none does. */
  firstIndex(passes: (item: T) => boolean): number {
    let low = this.#head;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const item = this.#items[middle];
      if (item !== undefined && !passes(item)) low = middle + 1;
      else high = middle;
    }
    return low - this.#head;
  }
}
