import type { KubeObject } from './meta.ts';

/** How caches and queues name an object: `namespace/name`, or `name` alone for cluster-scoped kinds. */
export type ObjectKey = string;

/** The key of an object. */
export function keyOf(object: KubeObject): ObjectKey {
  return joinKey(object.metadata.namespace ?? '', object.metadata.name ?? '');
}

/** `default`, `kubernetes` → `default/kubernetes`; namespace "" for cluster-scoped kinds. */
export function joinKey(namespace: string, name: string): ObjectKey {
  return namespace === '' ? name : `${namespace}/${name}`;
}

/** The inverse of {@link joinKey}. */
export function splitKey(key: ObjectKey): { namespace: string; name: string } {
  const slash = key.indexOf('/');
  return slash === -1
    ? { namespace: '', name: key }
    : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
