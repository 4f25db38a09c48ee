import type { ResourceQuota } from '../../objects/types/core.generated.ts';
import { forbidden, internalError } from '../../objects/status.ts';
import type { KubeObject } from '../../objects/meta.ts';
import {
  evaluateQuota,
  missingRequests,
  increase,
  type Usage,
  usageOf,
  addUsage,
  userOf,
} from '../../registry/core/resourcequota/usage.ts';
import { isInScopes } from '../../registry/core/resourcequota/strategy.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../rest/admission.ts';
import type { ServerCore } from '../rest/server-core.ts';
import {
  listPrefix,
  objectKey,
  PreconditionError,
  type Write,
  type Unsubscribe,
} from '../storage/storage.ts';
import { jsonEqual } from '../../objects/json.ts';
import { formatQuantity, parseQuantity } from '../../objects/formats/quantity.ts';

const quotas = listPrefix('', 'resourcequotas');
/** Attempts while other writes change the same quotas. */
const maxAttempts = 20;

/**
 * The ResourceQuota plugin: a write that would use more than a quota of its namespace leaves is refused; otherwise the
 * quota's `status.used` is raised before the object is stored, so that two writes cannot both take the rest of it.
 */
export class QuotaAdmission implements AdmissionPlugin {
  readonly name = 'ResourceQuota';
  readonly #core: ServerCore;
  readonly #reservations: QuotaReservations;

  constructor(core: ServerCore, reservations: QuotaReservations) {
    this.#core = core;
    this.#reservations = reservations;
  }

  handles({ operation, resource: { definition }, subresource, namespace }: AdmissionAttributes): boolean {
    if (!definition.namespaced || subresource !== '') return false;
    const counts =
      operation === 'CREATE' ||
      (operation === 'UPDATE' && countsUpdates(definition.group, definition.plural));
    const { storage } = this.#core;
    return counts && storage.count(quotas) > 0 && storage.count(`${quotas}${namespace}/`) > 0;
  }

  /** @throws {StatusError} 403 */
  async validate(attributes: AdmissionAttributes): Promise<void> {
    const { object, oldObject, dryRun } = attributes;
    if (object === undefined) return;
    const { group, plural } = attributes.resource.definition.storedAs ?? attributes.resource.definition;
    const change: UsageChange = {
      object,
      usage: usageOf({ group, plural }, object),
      oldObject,
      oldUsage: oldObject === undefined ? nothing : usageOf({ group, plural }, oldObject),
    };
    const { name = '' } = object.metadata;
    const key = objectKey(group, plural, attributes.namespace, name);
    const target = { key, revision: this.#core.storage.get(key)?.revision };
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      const needed = this.#reservationsFor(attributes, change);
      if (dryRun || needed.length === 0) return;
      const cancels = needed.map(({ write, added }) =>
        this.#reservations.add(write.key, { ...target, added }),
      );
      try {
        await this.#core.storage.commit(needed.map(({ write }) => write));
        return;
      } catch (error) {
        for (const cancel of cancels) cancel();
        if (!(error instanceof PreconditionError)) throw error;
      }
    }
    throw internalError('the quotas of the namespace are changing too fast, please try again');
  }

  /** @throws {StatusError} 403 where a quota has not enough left. */
  #reservationsFor(attributes: AdmissionAttributes, change: UsageChange): Reservation[] {
    const { object, usage, oldObject, oldUsage } = change;
    const { namespace, name, resource } = attributes;
    const { plural } = resource.definition;
    const refuse = (why: string) => forbidden(resource.groupResource, name, why);
    const { storage } = this.#core;
    return storage
      .list(listPrefix('', 'resourcequotas', namespace))
      .items.flatMap(({ key }): Reservation[] => {
        const stored = storage.getForUpdate(key);
        const quota = stored?.object;
        if (stored === undefined || quota === undefined || !isQuota(quota)) return [];
        if (!isInScopes(quota, plural, object)) return [];
        const counted = oldObject !== undefined && isInScopes(quota, plural, oldObject);
        const added = increase(usage, counted ? oldUsage : nothing);
        if (added.size === 0) return [];
        const unspecified = plural === 'pods' ? missingRequests(quota, object) : undefined;
        if (unspecified !== undefined) throw refuse(unspecified);
        const answer = evaluateQuota(quota, added);
        if (answer === undefined) return [];
        if ('refusal' in answer) throw refuse(answer.refusal);
        const next: ResourceQuota = {
          ...quota,
          metadata: { ...quota.metadata },
          status: { ...quota.status, used: answer.used },
        };
        return [{ write: { key, expect: stored.revision, object: next }, added }];
      });
  }
}

/** The write that raises the usage in a quota's status, before the object itself is stored. */
interface Reservation {
  readonly write: Write;
  readonly added: Usage;
}

/** A write of an object whose usage is in a quota's status, and that may not be stored yet. */
export interface ReservedWrite {
  /** The storage key of the object. */
  readonly key: string;
  /** The revision of the former version; undefined for a create. */
  readonly revision: number | undefined;
  readonly added: Usage;
}

/** The writes that are admitted and not stored yet: counts of the usage include them. */
export interface QuotaReservations {
  /** Called before the quota's status is written, with the quota's key. @returns removes it where that write failed. */
  add(quota: string, write: ReservedWrite): () => void;
}

/** The usage of an object before and after a write. */
interface UsageChange {
  readonly object: KubeObject;
  readonly usage: Usage;
  readonly oldObject: KubeObject | undefined;
  readonly oldUsage: Usage;
}

const nothing: Usage = new Map();

/** Kinds whose updates can use more: a Service of another type, a larger claim, a Pod that comes into a scope. */
function countsUpdates(group: string, plural: string): boolean {
  return group === '' && ['services', 'persistentvolumeclaims', 'pods'].includes(plural);
}

/** True for a ResourceQuota. */
function isQuota(object: KubeObject): object is ResourceQuota {
  return object.kind === 'ResourceQuota' && 'spec' in object && 'status' in object;
}

const quotaPrefix = listPrefix('', 'resourcequotas');
/** The delay of a count, which takes in a burst of changes. */
const settleMs = 100;
/** The time after which a reserved write that is not stored counts as failed. */
const reservationMs = 2000;

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
    const { items, revision } = this.#core.storage.list(quotaPrefix);
    for (const { key, object } of items) this.#quotaChanged(key, object, true);
    this.#stopQuotas = this.#core.storage.watch(quotaPrefix, revision, ({ type, current }) => {
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
    const reserved = { ...write, until: performance.now() + reservationMs };
    const writes = this.#reserved.get(quota) ?? new Set();
    this.#reserved.set(quota, writes.add(reserved));
    this.#enqueue(quota);
    return () => void writes.delete(reserved);
  }

  /** Counts a quota after {@link settleMs}. */
  #enqueue(key: string): void {
    this.#dirty.add(key);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const keys = [...this.#dirty];
      this.#dirty.clear();
      for (const dirty of keys) this.#count(dirty);
    }, settleMs).unref();
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
