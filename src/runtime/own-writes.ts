import type { Clock } from '../client/clock.ts';
import type { Informer } from '../client/informers/informer.ts';
import { compareResourceVersions, keyOf, type KubeObject, type ObjectKey } from '../objects/meta.ts';
import type { KeyLoop, LoopContext } from './key-loop.ts';

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
 * - At the start of a reconcile: `const waitMs = writes.pendingMs(key); if (waitMs > 0) return { requeueAfterMs: waitMs }`.
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
    // The last version may be an own write: that says nothing about who deleted it.
    this.#echoes.delete(object);
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
