import type { EndpointSlice } from '../../../objects/discovery.generated.ts';
import type { ObjectKey } from '../../../objects/key.ts';

/** How long the cache may lag behind own writes before they count as undone by somebody, in milliseconds. */
const timeoutMs = 60_000;

const deleted = -1;
/** How many slices that went are remembered, for answers that come after the news of it, or never. */
const rememberedGone = 1000;

interface Expected {
  /** The uid of the owner for which the slices were written. */
  owner: string;
  /** Slice uid → the generation that was written, or {@link deleted}. */
  generations: Map<string, number>;
  /** Monotonic milliseconds of the last own write. */
  at: number;
  /** A reconcile came too early and waits for the cache. */
  awaited: boolean;
}

/**
 * Remembers what a controller wrote, so that it neither plans on slices that it has replaced already nor takes the
 * echo of its own writes for somebody's change (k8s.io/endpointslice/util, `endpointslice_tracker.go`). Keys are
 * those of the Service or Endpoints that the slices belong to.
 */
export class SliceTracker {
  readonly #expected = new Map<ObjectKey, Expected>();
  /** The uids of slices that left the cache: nothing more will be shown of them. */
  readonly #gone = new Set<string>();
  readonly #monotonic: () => number;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /**
   * 0 when `slices` show every own write; else the milliseconds until the writes that are missing count as undone:
   * somebody may have taken a slice away by changing its labels. Call {@link arrived} on events of the cache.
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

  /** Notes a slice as the server answered it to a create or an update. */
  wrote(key: ObjectKey, owner: string, slice: EndpointSlice): void {
    this.#note(key, owner, slice.metadata.uid, slice.metadata.generation ?? 0);
  }

  /** Notes that a slice is asked to go: before it is asked, as the answer of the watch may come first. */
  deleting(key: ObjectKey, owner: string, slice: EndpointSlice): void {
    this.#note(key, owner, slice.metadata.uid, deleted);
  }

  /**
   * Tells whether a slice that the cache shows is news (`change`), the echo of an own write (`echo`), or an echo that
   * a reconcile waits for (`awaited`).
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

  /** Forgets everything about a key. */
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
