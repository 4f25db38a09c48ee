import type { ResourceQuota } from '../../../objects/types/core.generated.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { formatQuantity, parseQuantity } from '../../../objects/quantity.ts';
import { isInScopes } from '../../../registry/core/resourcequota/scopes.ts';

import { addUsage, usageOf, userOf } from '../../../registry/core/resourcequota/usage.ts';
import type { ServerCore } from '../../rest/server-core.ts';
import { listPrefix, PreconditionError, type Unsubscribe } from '../../storage/storage.ts';
import { isQuota, type QuotaReservations, type ReservedWrite } from './quota-admission.ts';

const quotas = listPrefix('', 'resourcequotas');
/** The delay of a count, which takes in a burst of changes. */
const settleMilliseconds = 100;
/** The time after which a reserved write that is not stored counts as failed. */
const reservationMilliseconds = 2000;

/**
 * Keeps `status` of ResourceQuotas equal to the usage of their namespaces (`pkg/controller/resourcequota`): at once for
 * new quotas and changed limits, shortly after for created and deleted objects.
 */
export class QuotaStatuses implements QuotaReservations {
  readonly #core: ServerCore;
  /** Writes that may not be stored yet, by the key of the quota. */
  readonly #reserved = new Map<string, Set<ReservedWrite & { readonly until: number }>>();
  /** Resources that are watched because a quota counts them, by prefix. */
  readonly #watched = new Map<string, Unsubscribe>();
  /** Keys of quotas to count again. */
  readonly #dirty = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #stopQuotas: Unsubscribe = () => undefined;

  constructor(core: ServerCore) {
    this.#core = core;
  }

  /** Follows quotas from here on. */
  start(): void {
    const { items, revision } = this.#core.storage.list(quotas);
    for (const { key, object } of items) this.#quotaChanged(key, object, true);
    this.#stopQuotas = this.#core.storage.watch(quotas, revision, ({ type, current }) => {
      if (type !== 'DELETED') this.#quotaChanged(current.key, current.object);
    });
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#stopQuotas();
    for (const unsubscribe of this.#watched.values()) unsubscribe();
    this.#watched.clear();
  }

  add(quota: string, write: ReservedWrite): () => void {
    const reserved = { ...write, until: performance.now() + reservationMilliseconds };
    const writes = this.#reserved.get(quota) ?? new Set();
    this.#reserved.set(quota, writes.add(reserved));
    this.#enqueue(quota);
    return () => void writes.delete(reserved);
  }

  /** Counts a quota after {@link settleMilliseconds}. */
  #enqueue(key: string): void {
    this.#dirty.add(key);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const keys = [...this.#dirty];
      this.#dirty.clear();
      for (const dirty of keys) this.#count(dirty);
    }, settleMilliseconds).unref();
  }

  #quotaChanged(key: string, object: KubeObject, count = false): void {
    if (!isQuota(object)) return;
    const { hard = {} } = object.spec;
    for (const resource of Object.keys(hard)) {
      const user = userOf(resource);
      if (user !== undefined) this.#watch(listPrefix(user.group, user.plural));
    }
    if (count || !jsonEqual(hard, object.status.hard ?? {})) this.#count(key);
  }

  #watch(prefix: string): void {
    if (this.#watched.has(prefix)) return;
    const { storage } = this.#core;
    // Creations too: one may have been in flight when the quota was counted.
    const unsubscribe = storage.watch(prefix, storage.revision, ({ current }) => {
      const { namespace = '' } = current.object.metadata;
      for (const { key } of storage.list(listPrefix('', 'resourcequotas', namespace)).items)
        this.#enqueue(key);
    });
    this.#watched.set(prefix, unsubscribe);
  }

  #count(key: string): void {
    const stored = this.#core.storage.getForUpdate(key);
    if (stored === undefined || !isQuota(stored.object)) return;
    const { object: quota } = stored;
    const used = this.#usedOf(quota, this.#pendingWrites(key));
    const status = { ...quota.status, hard: { ...quota.spec.hard }, used };
    if (jsonEqual(status, quota.status)) return;
    const next: ResourceQuota = { ...quota, metadata: { ...quota.metadata }, status };
    this.#core.storage.commit([{ key, expect: stored.revision, object: next }]).catch((error: unknown) => {
      if (error instanceof PreconditionError) this.#enqueue(key);
      else this.#core.log.error({ err: error, key }, 'cannot store the status of a ResourceQuota');
    });
  }

  /** The reserved writes of a quota that are neither stored nor known to have failed. */
  #pendingWrites(quota: string): readonly ReservedWrite[] {
    const writes = this.#reserved.get(quota);
    if (writes === undefined) return [];
    for (const write of writes) {
      const isStored = this.#core.storage.get(write.key)?.revision !== write.revision;
      if (isStored || performance.now() > write.until) writes.delete(write);
    }
    if (writes.size === 0) this.#reserved.delete(quota);
    // Until all are stored or have failed.
    else this.#enqueue(quota);
    return [...writes];
  }

  #usedOf(quota: ResourceQuota, reserved: readonly ReservedWrite[]): Record<string, string> {
    const { namespace = '' } = quota.metadata;
    const hard = Object.entries(quota.spec.hard ?? {});
    const users = new Map(
      hard.flatMap(([resource]) => {
        const user = userOf(resource);
        return user === undefined ? [] : [[listPrefix(user.group, user.plural, namespace), user] as const];
      }),
    );
    const sum = new Map<string, bigint>();
    for (const [prefix, user] of users) {
      for (const { object } of this.#core.storage.list(prefix).items) {
        if (isInScopes(quota, user.plural, object)) addUsage(sum, usageOf(user, object));
      }
    }
    for (const { added } of reserved) addUsage(sum, added);
    return Object.fromEntries(
      hard
        .filter(([resource]) => userOf(resource) !== undefined)
        .map(([resource, limit]) => [
          resource,
          formatQuantity({ nanos: sum.get(resource) ?? 0n, format: parseQuantity(limit).format }),
        ]),
    );
  }
}
