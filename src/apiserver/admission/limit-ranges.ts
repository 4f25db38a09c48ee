import type { LimitRange } from '../../objects/types/core.generated.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { isRecord } from '../../objects/json.ts';
import { recordAt } from '../../objects/read.ts';
import { forbidden } from '../../objects/status-errors.ts';
import {
  applyDefaultLimits,
  brokenClaimLimits,
  brokenPodLimits,
} from '../../registry/core/limitrange/limits.ts';

import type { AdmissionAttributes, AdmissionPlugin } from '../rest/admission.ts';
import { listPrefix, type Storage } from '../storage/storage.ts';
import { isPod } from '../subresources/pod-binding.ts';

/**
 * The LimitRanger plugin: containers get the default requests and limits of the LimitRanges of their namespace; Pods
 * and PersistentVolumeClaims that break a limit are refused.
 */
export class LimitRangeAdmission implements AdmissionPlugin {
  readonly #storage: Storage;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /** Updates of Pods are skipped, since the resources of a Pod do not change; claims may grow. */
  handles({ operation, resource: { definition }, subresource, namespace }: AdmissionAttributes): boolean {
    if (definition.group !== '' || subresource !== '') return false;
    const { plural } = definition;
    const concerned =
      (plural === 'pods' && operation === 'CREATE') ||
      (plural === 'persistentvolumeclaims' && (operation === 'CREATE' || operation === 'UPDATE'));
    return concerned && this.#storage.count(listPrefix('', 'limitranges', namespace)) > 0;
  }

  mutate({ object, namespace }: AdmissionAttributes): Promise<KubeObject | undefined> {
    if (object !== undefined && isPod(object)) {
      for (const range of this.#ranges(namespace)) applyDefaultLimits(range, object);
    }
    return Promise.resolve(object);
  }

  /** @throws {StatusError} 403 that names all broken limits of the first LimitRange that has any. */
  validate({ object, resource, name, namespace }: AdmissionAttributes): Promise<void> {
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return Promise.resolve();
    for (const range of this.#ranges(namespace)) {
      const broken = isPod(object)
        ? brokenPodLimits(range, object)
        : brokenClaimLimits(range, requestsOf(object));
      if (broken.length === 0) continue;
      const text = broken.length === 1 ? (broken[0] ?? '') : `[${[...new Set(broken)].join(', ')}]`;
      throw forbidden(resource.groupResource, name, text);
    }
    return Promise.resolve();
  }

  #ranges(namespace: string): LimitRange[] {
    const { items } = this.#storage.list(listPrefix('', 'limitranges', namespace));
    return items.map(({ object }) => object).filter(isLimitRange);
  }
}

function requestsOf(claim: KubeObject): Record<string, string> {
  const requests = recordAt(claim, 'spec', 'resources', 'requests');
  return Object.fromEntries(
    Object.entries(requests).flatMap(([name, quantity]) =>
      typeof quantity === 'string' ? [[name, quantity]] : [],
    ),
  );
}

function isLimitRange(object: KubeObject): object is LimitRange {
  return object.kind === 'LimitRange' && 'spec' in object && isRecord(object.spec);
}
