import type { KubeObject } from './meta.ts';
import type { PodCondition } from './pod.ts';

/** The part of core/v1 Node that service networking reads. */
export interface Node extends KubeObject {
  spec: { podCIDR?: string; podCIDRs?: string[]; unschedulable?: boolean };
  status: {
    capacity?: Record<string, string>;
    allocatable?: Record<string, string>;
    conditions?: PodCondition[];
    addresses?: { type: string; address: string }[];
  };
}
