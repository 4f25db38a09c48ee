import type { ResourceQuota } from '../../../objects/types/core.generated.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { formatQuantity, parseQuantity } from '../../../objects/quantity.ts';
import { isInScopes } from '../../../registry/core/resourcequota/scopes.ts';

import { addUsage, usageOf, userOf } from '../../../registry/core/resourcequota/usage.ts';
import type { ServerCore } from '../../rest/server-core.ts';
import { listPrefix, PreconditionError, type Unsubscribe } from '../../storage/storage.ts';
import { isQuota, type QuotaRaises, type RaisedWrite } from './quota-admission.ts';

const quotas = listPrefix('', 'resourcequotas');
/** Changes come in bursts. */
const settleMilliseconds = 100;
/** Milliseconds after which a write that raised a quota and is not stored counts as failed. */
const raiseMilliseconds = 2000;

/**
 * Keeps `status` of ResourceQuotas equal to the usage of their namespaces (`pkg/controller/resourcequota`): at once for
 * new quotas and changed limits, shortly after for created and deleted objects.
 */
export class QuotaStatuses implements QuotaRaises {
  readonly #core: ServerCore;
  /** Usage that is not stored yet, by the key of the quota. */
  readonly #raised = new Map<string, Set<RaisedWrite & { readonly until: number }>>();
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

  begin(quota: string, write: RaisedWrite): () => void {
    const raised = { ...write, until: performance.now() + raiseMilliseconds };
    const writes = this.#raised.get(quota) ?? new Set();
    this.#raised.set(quota, writes.add(raised));
    this.#touch(quota);
    return () => void writes.delete(raised);
  }

  /** Counts a quota again, a moment later. */
  #touch(key: string): void {
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
    // Also after a creation, which may have been in flight when the quota was counted.
    const unsubscribe = storage.watch(prefix, storage.revision, ({ current }) => {
      const { namespace = '' } = current.object.metadata;
      for (const { key } of storage.list(listPrefix('', 'resourcequotas', namespace)).items) this.#touch(key);
    });
    this.#watched.set(prefix, unsubscribe);
  }

  #count(key: string): void {
    const stored = this.#core.storage.getForUpdate(key);
    if (stored === undefined || !isQuota(stored.object)) return;
    const { object: quota } = stored;
    const used = this.#usedOf(quota, this.#onTheirWay(key));
    const status = { ...quota.status, hard: { ...quota.spec.hard }, used };
    if (jsonEqual(status, quota.status)) return;
    const next: ResourceQuota = { ...quota, metadata: { ...quota.metadata }, status };
    this.#core.storage.commit([{ key, expect: stored.revision, object: next }]).catch((error: unknown) => {
      if (error instanceof PreconditionError) this.#touch(key);
      else this.#core.log.error({ err: error, key }, 'cannot store the status of a ResourceQuota');
    });
  }

  /** The writes for which the quota was raised, and which are neither stored nor known to have failed. */
  #onTheirWay(quota: string): readonly RaisedWrite[] {
    const writes = this.#raised.get(quota);
    if (writes === undefined) return [];
    for (const write of writes) {
      const isStored = this.#core.storage.get(write.key)?.revision !== write.revision;
      if (isStored || performance.now() > write.until) writes.delete(write);
    }
    if (writes.size === 0) this.#raised.delete(quota);
    // To see what becomes of them.
    else this.#touch(quota);
    return [...writes];
  }

  #usedOf(quota: ResourceQuota, raised: readonly RaisedWrite[]): Record<string, string> {
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
    for (const { added } of raised) addUsage(sum, added);
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
