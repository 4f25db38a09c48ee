import type { Clock } from '../client/clock.ts';
import type { Informer } from '../client/informers/informer.ts';
import { keyOf, type ObjectKey } from '../objects/key.ts';
import type { KubeObject } from '../objects/meta.ts';
import { compareResourceVersions } from '../objects/resource-version.ts';

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
