import { isRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { IndexFunction } from './cache.ts';

/** The names of the indexes that several controllers use; their functions are below. */
export const byNamespace = 'namespace';
export const byOwner = 'owner';
export const byNode = 'node';

/** Files an object under its namespace. */
export function indexByNamespace(object: KubeObject): readonly string[] {
  const namespace = object.metadata.namespace;
  return namespace === undefined ? [] : [namespace];
}

/** Files an object under the uid of each owner. */
export function indexByOwner(object: KubeObject): readonly string[] {
  const owners: unknown = object.metadata.ownerReferences;
  if (!Array.isArray(owners)) return [];
  return owners.flatMap((owner: unknown) =>
    isRecord(owner) && typeof owner['uid'] === 'string' ? [owner['uid']] : [],
  );
}

/** Files a Pod under its node. */
export function indexByNode(object: KubeObject): readonly string[] {
  const spec: unknown = Reflect.get(object, 'spec');
  const node = isRecord(spec) ? spec['nodeName'] : undefined;
  return typeof node === 'string' && node !== '' ? [node] : [];
}

const labelIndexes = new Map<string, IndexFunction<KubeObject>>();

/**
 * The index that files an object under `namespace/value` of one label, e.g. EndpointSlices by
 * `kubernetes.io/service-name`. Repeated calls return the same function, so that informers can share it.
 */
export function indexByLabel(label: string): IndexFunction<KubeObject> {
  const known = labelIndexes.get(label);
  if (known !== undefined) return known;
  const made: IndexFunction<KubeObject> = (object) => {
    const labels: unknown = object.metadata.labels;
    const value = isRecord(labels) && Object.hasOwn(labels, label) ? labels[label] : undefined;
    return typeof value === 'string' ? [`${object.metadata.namespace ?? ''}/${value}`] : [];
  };
  labelIndexes.set(label, made);
  return made;
}
