import type { ServedResource } from './served-resource.ts';

/**
 * The error of kube-apiserver's storage for a failed precondition (`storage.Preconditions.Check`): passed to clients
 * unchanged.
 *
 * @param key where kube-apiserver keeps the object in etcd.
 * @param found what the stored object has, "" where there is none.
 */
export function preconditionFailed(
  key: string,
  field: 'UID' | 'ResourceVersion',
  wanted: string,
  found = '',
): string {
  return (
    `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, ` +
    `AdditionalErrorMsg: Precondition failed: ${field} in precondition: ${wanted}, ${field} in object meta: ${found}`
  );
}

/** The message for an object that has another uid than the request named. */
export function uidMismatch(
  resource: ServedResource,
  namespace: string,
  name: string,
  wanted: string,
  found = '',
): string {
  return preconditionFailed(registryPath(resource, namespace, name), 'UID', wanted, found);
}

/** Where kube-apiserver keeps the object in etcd: part of some error texts. */
function registryPath(resource: ServedResource, namespace: string, name: string): string {
  const { group, plural, namespaced } = resource.definition;
  const special = new Map([
    ['services', 'services/specs'],
    ['endpoints', 'services/endpoints'],
    ['nodes', 'minions'],
    ['replicationcontrollers', 'controllers'],
    ['customresourcedefinitions', 'apiextensions.k8s.io/customresourcedefinitions'],
    ['ingresses', 'ingress'],
  ]);
  const folder = resource.custom ? `${group}/${plural}` : (special.get(plural) ?? plural);
  return `/registry/${folder}/${namespaced ? `${namespace}/` : ''}${name}`;
}
