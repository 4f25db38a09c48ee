import type { ReplicaSet } from './apps.generated.ts';
import type { PodCondition, ReplicationController } from './core.generated.ts';

/** The two workloads that keep a number of Pods: apps/v1 ReplicaSet and core/v1 ReplicationController. */
export type Replicated = ReplicaSet | ReplicationController;

/** A condition of a workload. */
export interface WorkloadCondition extends PodCondition {
  lastUpdateTime?: string | null;
}

/** A count, or a percentage such as `25%`. */
export type IntOrPercent = number | string;
