import type { KubeObject, LabelSelector } from '../../../objects/meta.ts';
import type { PodTemplateSpec } from '../pod/types.ts';

/** The common fields of kinds that run Pods from a template. */
export interface Workload extends KubeObject {
  spec: WorkloadSpec;
  status: WorkloadStatus;
}

export interface WorkloadSpec {
  replicas?: number;
  selector?: LabelSelector | null;
  template?: PodTemplateSpec;
  minReadySeconds?: number;
  revisionHistoryLimit?: number;
}

/** Counts of Pods, and the kind's other fields. */
export interface WorkloadStatus {
  replicas?: number;
  observedGeneration?: number;
  collisionCount?: number;
}

/** Adds parts that decoding leaves out when they are empty. */
export function fillParts(workload: { spec?: object; status?: object }): void {
  workload.spec ??= {};
  workload.status ??= {};
}
