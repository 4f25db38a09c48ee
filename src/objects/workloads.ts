import type { KubeObject, LabelSelector, ObjectMeta } from './meta.ts';
import type { PodCondition, PodSpec } from './pod.ts';

/** Core/v1 PodTemplateSpec. */
export interface PodTemplate {
  metadata?: ObjectMeta;
  spec?: PodSpec;
}

/** A condition of a workload, whose members all are optional in what a client may have written. */
export interface WorkloadCondition extends PodCondition {
  lastUpdateTime?: string;
}

/** What keeps so many Pods: apps/v1 ReplicaSet and its forerunner, core/v1 ReplicationController. */
export interface Replicated extends KubeObject {
  spec: {
    replicas?: number;
    minReadySeconds?: number;
    template?: PodTemplate;
  };
  status: {
    replicas?: number;
    fullyLabeledReplicas?: number;
    readyReplicas?: number;
    availableReplicas?: number;
    terminatingReplicas?: number;
    observedGeneration?: number;
    conditions?: WorkloadCondition[];
  };
}

/** Apps/v1 ReplicaSet. */
export interface ReplicaSet extends Replicated {
  spec: Replicated['spec'] & { selector?: LabelSelector };
}

/** Core/v1 ReplicationController; its status has no `terminatingReplicas`. */
export interface ReplicationController extends Replicated {
  spec: Replicated['spec'] & { selector?: Record<string, string> };
}

/** A count, or a percentage such as `25%`. */
export type IntOrPercent = number | string;

/** Apps/v1 Deployment. */
export interface Deployment extends KubeObject {
  spec: {
    replicas?: number;
    selector?: LabelSelector;
    template?: PodTemplate;
    strategy?: { type?: string; rollingUpdate?: { maxUnavailable?: IntOrPercent; maxSurge?: IntOrPercent } };
    minReadySeconds?: number;
    revisionHistoryLimit?: number;
    progressDeadlineSeconds?: number;
    paused?: boolean;
  };
  status: DeploymentStatus;
}

export interface DeploymentStatus {
  observedGeneration?: number;
  replicas?: number;
  updatedReplicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  unavailableReplicas?: number;
  terminatingReplicas?: number;
  conditions?: WorkloadCondition[];
  collisionCount?: number;
}

/** Apps/v1 StatefulSet. */
export interface StatefulSet extends KubeObject {
  spec: {
    replicas?: number;
    selector?: LabelSelector;
    template?: PodTemplate;
    serviceName?: string;
    podManagementPolicy?: string;
    updateStrategy?: { type?: string; rollingUpdate?: { partition?: number } };
    revisionHistoryLimit?: number;
    minReadySeconds?: number;
    ordinals?: { start?: number };
    volumeClaimTemplates?: KubeObject[];
  };
  status: {
    observedGeneration?: number;
    replicas?: number;
    readyReplicas?: number;
    currentReplicas?: number;
    updatedReplicas?: number;
    availableReplicas?: number;
    currentRevision?: string;
    updateRevision?: string;
    collisionCount?: number;
  };
}

/** Apps/v1 DaemonSet. */
export interface DaemonSet extends KubeObject {
  spec: {
    selector?: LabelSelector;
    template?: PodTemplate;
    updateStrategy?: {
      type?: string;
      rollingUpdate?: { maxUnavailable?: IntOrPercent; maxSurge?: IntOrPercent };
    };
    minReadySeconds?: number;
    revisionHistoryLimit?: number;
  };
  status: {
    currentNumberScheduled?: number;
    numberMisscheduled?: number;
    desiredNumberScheduled?: number;
    numberReady?: number;
    observedGeneration?: number;
    updatedNumberScheduled?: number;
    numberAvailable?: number;
    numberUnavailable?: number;
    collisionCount?: number;
  };
}

/** Apps/v1 ControllerRevision: the history of StatefulSets and DaemonSets. */
export interface ControllerRevision extends KubeObject {
  data?: unknown;
  revision?: number;
}

/** Batch/v1 Job. */
export interface Job extends KubeObject {
  spec: {
    parallelism?: number;
    completions?: number;
    activeDeadlineSeconds?: number;
    backoffLimit?: number;
    ttlSecondsAfterFinished?: number;
    selector?: LabelSelector;
    template?: PodTemplate;
    completionMode?: string;
    suspend?: boolean;
  };
  status: JobStatus;
}

export interface JobStatus {
  conditions?: WorkloadCondition[];
  startTime?: string | null;
  completionTime?: string;
  active?: number;
  succeeded?: number;
  failed?: number;
  terminating?: number;
  completedIndexes?: string;
  uncountedTerminatedPods?: Record<string, never>;
  ready?: number;
}

/** Policy/v1 PodDisruptionBudget. */
export interface PodDisruptionBudget extends KubeObject {
  spec: {
    minAvailable?: IntOrPercent;
    maxUnavailable?: IntOrPercent;
    selector?: LabelSelector;
  };
  status: {
    observedGeneration?: number;
    disruptedPods?: Record<string, string>;
    disruptionsAllowed?: number;
    currentHealthy?: number;
    desiredHealthy?: number;
    expectedPods?: number;
    conditions?: WorkloadCondition[];
  };
}
