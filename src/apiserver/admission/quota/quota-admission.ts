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
/** Attempts against others that use the same quotas. */
const maxAttempts = 20;

/**
 * The ResourceQuota plugin: a write that would use more than a quota of its namespace leaves is refused; else the
 * quota's `status.used` is raised before the object is stored, so that two writes cannot share the last room.
 */
export class QuotaAdmission implements AdmissionPlugin {
  readonly #core: ServerCore;
  readonly #raises: QuotaRaises;

  constructor(core: ServerCore, raises: QuotaRaises) {
    this.#core = core;
    this.#raises = raises;
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
      const raises = this.#raisesFor(attributes, change);
      if (dryRun || raises.length === 0) return;
      const cancels = raises.map(({ write, added }) => this.#raises.begin(write.key, { ...target, added }));
      try {
        await this.#core.storage.commit(raises.map(({ write }) => write));
        return;
      } catch (error) {
        for (const cancel of cancels) cancel();
        if (!(error instanceof PreconditionError)) throw error;
      }
    }
    throw internalError('the quotas of the namespace are changing too fast, please try again');
  }

  #raisesFor(attributes: AdmissionAttributes, change: UsageChange): Raise[] {
    const { object, usage, oldObject, oldUsage } = change;
    const { namespace, name, resource } = attributes;
    const { plural } = resource.definition;
    const refuse = (why: string) => forbidden(resource.groupResource, name, why);
    const { storage } = this.#core;
    return storage.list(listPrefix('', 'resourcequotas', namespace)).items.flatMap(({ key }): Raise[] => {
      const stored = storage.getForUpdate(key);
      const quota = stored?.object;
      if (stored === undefined || quota === undefined || !isQuota(quota)) return [];
      if (!isInScopes(quota, plural, object)) return [];
      const counted = oldObject !== undefined && isInScopes(quota, plural, oldObject);
      const added = increase(usage, counted ? oldUsage : nothing);
      if (added.size === 0) return [];
      const unsaid = plural === 'pods' ? missingRequests(quota, object) : undefined;
      if (unsaid !== undefined) throw refuse(unsaid);
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

/** A quota's higher usage, for a write that follows. */
interface Raise {
  readonly write: Write;
  readonly added: Usage;
}

/** A write that a quota was raised for, and that may not be stored yet. */
export interface RaisedWrite {
  /** Of the object. */
  readonly key: string;
  /** The revision of the former version; undefined for a create. */
  readonly revision: number | undefined;
  readonly added: Usage;
}

/** Usage counts include requests that are admitted and not stored yet. */
export interface QuotaRaises {
  /** Called before a quota is raised. @returns cancels: the quota was not raised. */
  begin(quota: string, write: RaisedWrite): () => void;
}

/** What a write makes of the usage of an object. */
interface UsageChange {
  readonly object: KubeObject;
  readonly usage: Usage;
  readonly oldObject: KubeObject | undefined;
  readonly oldUsage: Usage;
}

const nothing: Usage = new Map();

/**
 * Kinds of which an update may use more: a Service of another type, a larger claim, a Pod that comes into a scope.
 */
function countsUpdates(group: string, plural: string): boolean {
  return group === '' && ['services', 'persistentvolumeclaims', 'pods'].includes(plural);
}

export function isQuota(object: KubeObject): object is ResourceQuota {
  return object.kind === 'ResourceQuota' && 'spec' in object && 'status' in object;
}
