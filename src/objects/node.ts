import type { KubeObject } from './meta.ts';
import type { PodCondition } from './pod.ts';

/** The part of core/v1 Node that service networking reads. */
export interface Node extends KubeObject {
  spec: { podCIDR?: string; podCIDRs?: string[]; unschedulable?: boolean; taints?: Taint[] };
  status: {
    capacity?: Record<string, string>;
    allocatable?: Record<string, string>;
    conditions?: NodeCondition[];
    addresses?: { type: string; address: string }[];
    nodeInfo?: Record<string, string>;
    daemonEndpoints?: { kubeletEndpoint?: { Port: number } };
  };
}

/** Core/v1 NodeCondition. */
export interface NodeCondition extends PodCondition {
  lastHeartbeatTime?: string;
}

/** `spec.taints[]`: keeps Pods away that do not tolerate it. */
export interface Taint {
  key?: string;
  value?: string;
  /** NoSchedule, PreferNoSchedule or NoExecute. */
  effect?: string;
  timeAdded?: string;
}
