import { type OrderedTree, treeDelete, treeSet } from './ordered-tree.ts';
import { CompactedError, type StorageEvent, type StoredObject } from './storage.ts';
import { keyPrefixes } from './watchers.ts';

/** How much of the past is kept: until the first bound is reached. */
export interface Retention {
  /** At most so many events. */
  readonly revisions: number;
  /** Events this old are forgotten; kube-apiserver compacts after 5 minutes (`--etcd-compaction-interval`). */
  readonly milliseconds: number;
  /** At most so many bytes, roughly, in versions that only the past holds. Absent: no bound. */
  readonly bytes?: number;
}

interface Entry {
  readonly event: StorageEvent;
  readonly resource: string;
  readonly time: number;
  readonly weight: number;
}

interface Checkpoint {
  readonly revision: number;
  readonly root: OrderedTree<StoredObject>;
}

/** Every so many events the root is kept: what a list of the past has to undo is at most that much. */
const checkpointEvery = 64;
/** What an entry itself holds: the event, two versions' shells, its share of tree nodes copied on the way. */
const entryWeight = 512;

/**
 * The recent past: the events for watchers that resume, and checkpoints of the tree from which any revision of the
 * window can be listed. Old entries fall out by count, age and weight.
 */
export class EventWindow {
  readonly #retain: Retention;
  readonly #clock: () => number;
  readonly #entries = new Ring<Entry>();
  readonly #byResource = new Map<string, Ring<StorageEvent>>();
  readonly #checkpoints = new Ring<Checkpoint>();
  #weight = 0;
  /** The oldest revision that can be listed and after which a watch can start. */
  #oldest: number;

  constructor(retain: Retention, clock: () => number, oldest: number) {
    this.#retain = retain;
    this.#clock = clock;
    this.#oldest = oldest;
  }

  /** Adds the next event of a resource (its prefix), with the root behind it and the time at which it became visible. */
  push(event: StorageEvent, resource: string, root: OrderedTree<StoredObject>, time: number): void {
    const weight = entryWeight + (event.previous?.byteLength ?? 0);
    this.#entries.push({ event, resource, time, weight });
    this.#weight += weight;
    let ring = this.#byResource.get(resource);
    if (ring === undefined) this.#byResource.set(resource, (ring = new Ring()));
    ring.push(event);
    if (event.revision % checkpointEvery === 0) this.#checkpoints.push({ revision: event.revision, root });
  }

  /** Drops what is out of bounds now, and returns the oldest kept revision. */
  compact(): number {
    const { revisions, milliseconds, bytes = Infinity } = this.#retain;
    const deadline = this.#clock() - milliseconds;
    for (;;) {
      const entry = this.#entries.first();
      if (entry === undefined) break;
      if (entry.time > deadline && this.#entries.length <= revisions && this.#weight <= bytes) break;
      this.#entries.shift();
      this.#weight -= entry.weight;
      this.#oldest = entry.event.revision;
      const ring = this.#byResource.get(entry.resource);
      ring?.shift();
      if (ring?.length === 0) this.#byResource.delete(entry.resource);
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
    const ring = this.#byResource.get(resource);
    if (ring === undefined) return [];
    const events: StorageEvent[] = [];
    for (let i = ring.firstIndex((event) => event.revision > after); events.length < limit; i++) {
      const event = ring.at(i);
      if (event === undefined) break;
      if (prefix === resource || event.current.key.startsWith(prefix)) events.push(event);
    }
    return events;
  }

  /**
   * The tree as it was at a revision: from the next checkpoint (or the newest tree) the events between are undone.
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

/** A queue with random access. Taking from the front is O(1): the space is given back now and then. */
class Ring<T> {
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
  /** Takes the first item. */
  shift(): T | undefined {
    const first = this.#items[this.#head];
    if (this.#head < this.#items.length) this.#items[this.#head++] = undefined;
    if (this.#head > 1024 && this.#head > this.#items.length >> 1) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return first;
  }
  /** The first index whose item passes, given that all behind it pass too; the length when none does. */
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
