import type { KubeObject } from '../../src/objects/meta.ts';

/** A Pod as a server sends it in an event. */
export function pod(name: string, resourceVersion: string, labels: Record<string, string> = {}): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    ...listed(name, resourceVersion, labels),
  };
}

/** The same inside a list: without apiVersion and kind. */
export function listed(
  name: string,
  resourceVersion: string,
  labels: Record<string, string> = {},
): KubeObject & { spec: object; status: object } {
  return {
    metadata: { name, namespace: 'default', uid: `uid-${name}`, resourceVersion, labels },
    spec: {},
    status: {},
  };
}

/** A list of Pods. */
export function podList(resourceVersion: string, items: readonly KubeObject[], token?: string): object {
  return {
    kind: 'PodList',
    apiVersion: 'v1',
    metadata: { resourceVersion, ...(token === undefined ? {} : { continue: token }) },
    items,
  };
}
