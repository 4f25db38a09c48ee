import type { ReplicaSet } from './apps.generated.ts';
import type { PodCondition, ReplicationController } from './core.generated.ts';

/** What keeps so many Pods: apps/v1 ReplicaSet and its forerunner, core/v1 ReplicationController. */
export type Replicated = ReplicaSet | ReplicationController;

/** A condition of a workload. */
export interface WorkloadCondition extends PodCondition {
  lastUpdateTime?: string | null;
}

/** A count, or a percentage such as `25%`. */
export type IntOrPercent = number | string;
