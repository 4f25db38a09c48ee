import type { Condition, KubeObject } from './meta.ts';

/** networking.k8s.io/v1 IPAddress: one per allocated clusterIP, named after the address in canonical form. */
export interface IPAddress extends KubeObject {
  spec: { parentRef?: { group?: string; resource?: string; namespace?: string; name?: string } };
}

/** networking.k8s.io/v1 ServiceCIDR. */
export interface ServiceCIDR extends KubeObject {
  spec: { cidrs?: string[] };
  status: { conditions?: Condition[] };
}
