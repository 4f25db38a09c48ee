import type { KubeObject } from './meta.ts';

/** coordination.k8s.io/v1 Lease. Times are RFC 3339 with microseconds. */
export interface Lease extends KubeObject {
  spec: {
    holderIdentity?: string;
    leaseDurationSeconds?: number;
    acquireTime?: string;
    renewTime?: string;
    leaseTransitions?: number;
    strategy?: string;
    preferredHolder?: string;
  };
}
