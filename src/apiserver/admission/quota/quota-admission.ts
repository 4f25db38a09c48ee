import type { ResourceQuota } from '../../../objects/types/core.generated.ts';
import { forbidden, internalError } from '../../../objects/status-errors.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { judgeQuota, missingRequests } from '../../../registry/core/resourcequota/judge.ts';
import { isInScopes } from '../../../registry/core/resourcequota/scopes.ts';

import { increase, type Usage, usageOf } from '../../../registry/core/resourcequota/usage.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../../rest/admission.ts';
import type { ServerCore } from '../../rest/server-core.ts';
import { listPrefix, objectKey, PreconditionError, type Write } from '../../storage/storage.ts';

const quotas = listPrefix('', 'resourcequotas');
/** Attempts while other writes change the same quotas. */
const maxAttempts = 20;

/**
 * The ResourceQuota plugin: a write that would use more than a quota of its namespace leaves is refused; otherwise the
 * quota's `status.used` is raised before the object is stored, so that two writes cannot both take the rest of it.
 */
export class QuotaAdmission implements AdmissionPlugin {
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
        const answer = judgeQuota(quota, added);
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
export function isQuota(object: KubeObject): object is ResourceQuota {
  return object.kind === 'ResourceQuota' && 'spec' in object && 'status' in object;
}
