import type { Clock } from '../client/clock.ts';
import type { Informer } from '../client/informers/informer.ts';
import { keyOf, type ObjectKey, type KubeObject, compareResourceVersions } from '../objects/meta.ts';
import type { KeyLoop, LoopContext } from './key-loop.ts';
import type { EndpointSlice } from '../objects/types/discovery.generated.ts';

/** A write that the cache has not shown yet. */
interface Expected {
  readonly owner: ObjectKey;
  readonly uid: string;
  /** Undefined: the object is expected to be gone. */
  readonly resourceVersion: string | undefined;
  readonly until: number;
}

/**
 * Milliseconds after which a write that the cache has not shown no longer blocks a reconcile: its event may be lost.
 */
const timeoutMs = 60_000;
/**
 * The number of deleted objects that are remembered, for answers that arrive after the events of the object's
 * create and delete.
 */
const rememberedDeletes = 1000;

/**
 * Remembers a controller's own writes until its cache shows them, so that a reconcile on a stale cache does not write
 * twice. Writes are filed under an owner: the key that is reconciled.
 *
 * Use: after each write call {@link written} or {@link deleted}; at the start of a reconcile check {@link settled}.
 * When it is false, write nothing: the event that brings the cache up to date enqueues the key again. Return a
 * `requeueAfter` of a second as well, in case the event is lost.
 */
export class Expectations<T extends KubeObject> {
  readonly #clock: Clock;
  readonly #informer: Informer<T>;
  readonly #expected = new Map<ObjectKey, Expected>();
  readonly #owners = new Map<ObjectKey, Set<ObjectKey>>();
  readonly #deletedUids = new Set<string>();

  constructor(informer: Informer<T>, clock: Clock) {
    this.#clock = clock;
    this.#informer = informer;
    informer.addHandler({
      added: (object) => this.#seen(object),
      updated: (object) => this.#seen(object),
      deleted: (object) => this.#gone(object),
    });
  }

  /** Call when a create or update was answered with `object`. */
  written(owner: ObjectKey, object: T): void {
    const { uid = '', resourceVersion = '' } = object.metadata;
    if (this.#deletedUids.has(uid)) return;
    const cached = this.#informer.cache.get(keyOf(object));
    if (cached !== undefined && isAtLeast(cached, resourceVersion)) return;
    this.#expect(owner, object, resourceVersion);
  }

  /**
   * Call when a delete of `object` was accepted. An object that finalizers keep counts as gone when its
   * deletionTimestamp shows.
   */
  deleted(owner: ObjectKey, object: T): void {
    const cached = this.#informer.cache.get(keyOf(object));
    if (cached === undefined || isOnItsWay(cached, object.metadata.uid ?? '')) return;
    this.#expect(owner, object, undefined);
  }

  /** True when the cache has shown every write for the owner, or something newer. */
  settled(owner: ObjectKey): boolean {
    const keys = this.#owners.get(owner);
    if (keys === undefined) return true;
    const now = this.#clock.monotonic();
    for (const key of keys) {
      const expected = this.#expected.get(key);
      if (expected !== undefined && now >= expected.until) this.#drop(key);
    }
    return !this.#owners.has(owner);
  }

  #expect(owner: ObjectKey, object: T, resourceVersion: string | undefined): void {
    const key = keyOf(object);
    this.#drop(key);
    const until = this.#clock.monotonic() + timeoutMs;
    this.#expected.set(key, { owner, uid: object.metadata.uid ?? '', resourceVersion, until });
    const keys = this.#owners.get(owner);
    if (keys === undefined) this.#owners.set(owner, new Set([key]));
    else keys.add(key);
  }

  #seen(object: T): void {
    const key = keyOf(object);
    const expected = this.#expected.get(key);
    if (expected === undefined) return;
    const shown =
      expected.resourceVersion === undefined
        ? isOnItsWay(object, expected.uid)
        : isAtLeast(object, expected.resourceVersion);
    if (shown) this.#drop(key);
  }

  #gone(object: T): void {
    const { uid = '' } = object.metadata;
    this.#deletedUids.add(uid);
    if (this.#deletedUids.size > rememberedDeletes) {
      const [oldest] = this.#deletedUids;
      if (oldest !== undefined) this.#deletedUids.delete(oldest);
    }
    const key = keyOf(object);
    if (this.#expected.get(key)?.uid === uid) this.#drop(key);
  }

  #drop(key: ObjectKey): void {
    const expected = this.#expected.get(key);
    if (expected === undefined) return;
    this.#expected.delete(key);
    const keys = this.#owners.get(expected.owner);
    keys?.delete(key);
    if (keys?.size === 0) this.#owners.delete(expected.owner);
  }
}

function isAtLeast(object: KubeObject, resourceVersion: string): boolean {
  return compareResourceVersions(object.metadata.resourceVersion ?? '', resourceVersion) >= 0;
}

/** True when the object was replaced by another of the same name, or its deletion has begun. */
function isOnItsWay(object: KubeObject, uid: string): boolean {
  return object.metadata.uid !== uid || object.metadata.deletionTimestamp !== undefined;
}

/** Milliseconds that the cache may lag behind own writes before they count as undone by another client. */
const sliceTrackerTimeoutMs = 60_000;

const deleted = -1;
/** The number of deleted slices that are remembered, for answers that arrive after the event, or never. */
const rememberedGone = 1000;

interface SliceTrackerExpected {
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
  readonly #expected = new Map<ObjectKey, SliceTrackerExpected>();
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
    const left = sliceTrackerTimeoutMs - (this.#monotonic() - expected.at);
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

  #release(expected: SliceTrackerExpected): 'echo' | 'awaited' {
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

/** After this time a write that no cache has shown blocks nothing: its event may be lost. */
const writeTimeoutMs = 60_000;
/** Deleted objects that are remembered, for answers that come after the events of a create and a delete. */
const rememberedDeletions = 1000;

interface UnseenWrite {
  readonly owner: ObjectKey;
  readonly uid: string;
  /** Undefined: the object is to be gone. */
  readonly resourceVersion: string | undefined;
  readonly untilMs: number;
}

/**
 * A controller's own writes that its cache does not show yet. Each belongs to an owner: the key that is reconciled.
 *
 * - At the start of a reconcile: `const waitMs = writes.pendingMs(key); if (waitMs > 0) return { requeueAfter: waitMs }`.
 *   A plan on an older cache would write twice. The key comes back as soon as the cache has caught up.
 * - After a write: {@link written} with the answer. Before a delete: {@link deleting}; where it fails, {@link notDeleted}.
 * - In `loop.on`: {@link isEcho} tells the events of own writes from the changes of others.
 */
export class OwnWrites<T extends KubeObject> {
  readonly #loop: Pick<KeyLoop<LoopContext>, 'enqueue'>;
  readonly #clock: Clock;
  readonly #informer: Informer<T>;
  /** By the key of the object that was written. */
  readonly #unseen = new Map<ObjectKey, UnseenWrite>();
  readonly #owners = new Map<ObjectKey, { readonly objects: Set<ObjectKey>; isAwaited: boolean }>();
  readonly #echoes = new WeakSet<T>();
  readonly #deletedUids = new Set<string>();

  constructor(loop: Pick<KeyLoop<LoopContext>, 'context' | 'enqueue'>, informer: Informer<T>) {
    this.#loop = loop;
    this.#clock = loop.context.clock;
    this.#informer = informer;
    informer.addHandler({
      added: (object) => this.#shown(object),
      updated: (object) => this.#shown(object),
      deleted: (object) => this.#gone(object),
    });
  }

  /** Milliseconds until the cache can be planned on; 0: now. */
  pendingMs(owner: ObjectKey): number {
    const waiting = this.#owners.get(owner);
    if (waiting === undefined) return 0;
    waiting.isAwaited = false;
    const nowMs = this.#clock.monotonic();
    let latestMs = 0;
    for (const key of waiting.objects) {
      const leftMs = (this.#unseen.get(key)?.untilMs ?? 0) - nowMs;
      if (leftMs <= 0) this.#settle(key);
      latestMs = Math.max(latestMs, leftMs);
    }
    waiting.isAwaited = latestMs > 0;
    return Math.max(0, latestMs);
  }

  written(owner: ObjectKey, answer: T): void {
    const { uid = '', resourceVersion = '' } = answer.metadata;
    if (this.#deletedUids.has(uid)) return;
    const cached = this.#informer.cache.get(keyOf(answer));
    const order = cached === undefined ? -1 : compare(cached, resourceVersion);
    if (cached !== undefined && order === 0) this.#echoes.add(cached);
    if (order < 0) this.#expect(owner, answer, resourceVersion);
  }

  /** An object that finalizers keep counts as gone when its deletionTimestamp shows. */
  deleting(owner: ObjectKey, object: T): void {
    const cached = this.#informer.cache.get(keyOf(object));
    if (cached === undefined || isGoing(cached, object.metadata.uid)) return;
    this.#expect(owner, object, undefined);
  }

  notDeleted(object: T): void {
    this.#settle(keyOf(object));
  }

  /** Whether this version of an object is the result of an own write, or its deletion an own one. */
  isEcho(object: T): boolean {
    return this.#echoes.has(object);
  }

  #expect(owner: ObjectKey, object: T, resourceVersion: string | undefined): void {
    const key = keyOf(object);
    this.#settle(key);
    const untilMs = this.#clock.monotonic() + writeTimeoutMs;
    this.#unseen.set(key, { owner, uid: object.metadata.uid ?? '', resourceVersion, untilMs });
    const of = this.#owners.get(owner);
    if (of === undefined) this.#owners.set(owner, { objects: new Set([key]), isAwaited: false });
    else of.objects.add(key);
  }

  #shown(object: T): void {
    const key = keyOf(object);
    const write = this.#unseen.get(key);
    if (write === undefined) return;
    const order = write.resourceVersion === undefined ? undefined : compare(object, write.resourceVersion);
    const isDone = order === undefined ? isGoing(object, write.uid) : order >= 0;
    if (order === 0 || (order === undefined && isDone)) this.#echoes.add(object);
    if (isDone) this.#settle(key);
  }

  #gone(object: T): void {
    const { uid = '' } = object.metadata;
    this.#deletedUids.add(uid);
    const [oldest] = this.#deletedUids;
    if (this.#deletedUids.size > rememberedDeletions && oldest !== undefined)
      this.#deletedUids.delete(oldest);
    const key = keyOf(object);
    const write = this.#unseen.get(key);
    if (write?.uid !== uid) return;
    if (write.resourceVersion === undefined) this.#echoes.add(object);
    this.#settle(key);
  }

  #settle(key: ObjectKey): void {
    const write = this.#unseen.get(key);
    if (write === undefined) return;
    this.#unseen.delete(key);
    const of = this.#owners.get(write.owner);
    of?.objects.delete(key);
    if (of === undefined || of.objects.size > 0) return;
    this.#owners.delete(write.owner);
    if (of.isAwaited) this.#loop.enqueue(write.owner);
  }
}

function compare({ metadata: { resourceVersion = '' } }: KubeObject, other: string): number {
  return compareResourceVersions(resourceVersion, other);
}

/** Whether the object was replaced by another of the same name, or its deletion has begun. */
function isGoing({ metadata }: KubeObject, uid: string | undefined): boolean {
  return metadata.uid !== uid || metadata.deletionTimestamp !== undefined;
}
