import type { EndpointSlice } from '../../../objects/types/discovery.generated.ts';
import type { ObjectKey } from '../../../objects/key.ts';

/** Milliseconds that the cache may lag behind own writes before they count as undone by another client. */
const timeoutMs = 60_000;

const deleted = -1;
/** The number of deleted slices that are remembered, for answers that arrive after the event, or never. */
const rememberedGone = 1000;

interface Expected {
  /** The uid of the owner for which the slices were written. */
  owner: string;
  /** Slice uid → the generation that was written, or {@link deleted}. */
  generations: Map<string, number>;
  /** Monotonic milliseconds of the last own write. */
  at: number;
  /** A reconcile found the cache behind and waits for it. */
  awaited: boolean;
}

/**
 * Tracks the writes of a controller, so that it neither plans on replaced slices nor takes the events of its own writes
 * for changes of others (k8s.io/endpointslice/util, `endpointslice_tracker.go`). Keys are those of the Service or
 * Endpoints that the slices belong to.
 */
export class SliceTracker {
  readonly #expected = new Map<ObjectKey, Expected>();
  /** The uids of slices that left the cache: no more events follow. */
  readonly #gone = new Set<string>();
  readonly #monotonic: () => number;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /**
   * 0 when `slices` show every own write; else the milliseconds until the missing writes count as undone: another
   * client may have removed a slice from the selection by changing its labels. Call {@link arrived} for events of the
   * cache.
   */
  lag(key: ObjectKey, owner: string, slices: readonly EndpointSlice[]): number {
    const expected = this.#expected.get(key);
    if (expected === undefined) return 0;
    const left = timeoutMs - (this.#monotonic() - expected.at);
    if (expected.owner === owner && !isBehind(expected.generations, slices)) return 0;
    if (expected.owner !== owner || left <= 0) {
      this.#expected.delete(key);
      return 0;
    }
    expected.awaited = true;
    return left;
  }

  /** Records a slice as the server returned it for a create or an update. */
  wrote(key: ObjectKey, owner: string, slice: EndpointSlice): void {
    this.#note(key, owner, slice.metadata.uid, slice.metadata.generation ?? 0);
  }

  /** Records that a slice is about to be deleted, before the request, as the event may come before the answer. */
  deleting(key: ObjectKey, owner: string, slice: EndpointSlice): void {
    this.#note(key, owner, slice.metadata.uid, deleted);
  }

  /**
   * Classifies the event of a slice: a change by others (`change`), an own write (`echo`), or an own write that a
   * reconcile waits for (`awaited`).
   */
  arrived(key: ObjectKey, slice: EndpointSlice): 'change' | 'echo' | 'awaited' {
    const expected = this.#expected.get(key);
    const generation = expected?.generations.get(slice.metadata.uid ?? '');
    if (expected === undefined || generation === undefined || (slice.metadata.generation ?? 0) > generation) {
      return 'change';
    }
    return this.#release(expected);
  }

  /** The same for a slice that left the cache. */
  gone(key: ObjectKey, slice: EndpointSlice): 'change' | 'echo' | 'awaited' {
    const expected = this.#expected.get(key);
    const uid = slice.metadata.uid ?? '';
    this.#remember(uid);
    const generation = expected?.generations.get(uid);
    expected?.generations.delete(uid);
    return expected === undefined || generation !== deleted ? 'change' : this.#release(expected);
  }

  /** Removes everything about a key. */
  forget(key: ObjectKey): void {
    this.#expected.delete(key);
  }

  #note(key: ObjectKey, owner: string, uid: string | undefined, generation: number): void {
    if (uid === undefined || this.#gone.has(uid)) return;
    let expected = this.#expected.get(key);
    if (expected?.owner !== owner) {
      expected = { owner, generations: new Map(), at: 0, awaited: false };
      this.#expected.set(key, expected);
    }
    expected.generations.set(uid, generation);
    expected.at = this.#monotonic();
  }

  #remember(uid: string): void {
    this.#gone.add(uid);
    if (this.#gone.size <= rememberedGone) return;
    const [oldest] = this.#gone;
    if (oldest !== undefined) this.#gone.delete(oldest);
  }

  #release(expected: Expected): 'echo' | 'awaited' {
    const { awaited } = expected;
    expected.awaited = false;
    return awaited ? 'awaited' : 'echo';
  }
}

function isBehind(generations: ReadonlyMap<string, number>, slices: readonly EndpointSlice[]): boolean {
  const shown = new Set<string>();
  for (const { metadata } of slices) {
    const uid = metadata.uid ?? '';
    shown.add(uid);
    const generation = generations.get(uid);
    if (generation !== undefined && (generation === deleted || generation > (metadata.generation ?? 0))) {
      return true;
    }
  }
  for (const [uid, generation] of generations) if (generation !== deleted && !shown.has(uid)) return true;
  return false;
}
