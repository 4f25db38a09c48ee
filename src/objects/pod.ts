import type { KubeObject, LabelSelector } from './meta.ts';

/** The part of core/v1 Pod that service networking reads. Fields not named here are kept by every writer. */
export interface Pod extends KubeObject {
  spec: PodSpec;
  status: PodStatus;
}

export interface PodSpec {
  nodeName?: string;
  hostname?: string;
  subdomain?: string;
  hostNetwork?: boolean;
  restartPolicy?: string;
  schedulerName?: string;
  serviceAccountName?: string;
  nodeSelector?: Record<string, string>;
  terminationGracePeriodSeconds?: number;
  containers?: Container[];
  initContainers?: Container[];
  ephemeralContainers?: Container[];
  affinity?: Affinity;
  volumes?: { name?: string; persistentVolumeClaim?: { claimName?: string }; ephemeral?: object }[];
  tolerations?: Toleration[];
  readinessGates?: { conditionType?: string }[];
  schedulingGates?: { name?: string }[];
}

export interface Container {
  name: string;
  image?: string;
  restartPolicy?: string;
  ports?: ContainerPort[];
  env?: EnvVar[];
}

/** The part of an environment variable that Jobs read and write. */
export interface EnvVar {
  name?: string;
  valueFrom?: { fieldRef?: { fieldPath?: string } };
}

/** The part of core/v1 Affinity that the simulated scheduler follows. */
export interface Affinity {
  nodeAffinity?: {
    requiredDuringSchedulingIgnoredDuringExecution?: { nodeSelectorTerms?: NodeSelectorTerm[] };
  };
  podAntiAffinity?: {
    requiredDuringSchedulingIgnoredDuringExecution?: PodAffinityTerm[];
  };
}

export interface NodeSelectorTerm {
  matchExpressions?: NodeSelectorRequirement[];
  matchFields?: NodeSelectorRequirement[];
}

export interface NodeSelectorRequirement {
  key: string;
  operator: string;
  values?: string[];
}

export interface PodAffinityTerm {
  labelSelector?: LabelSelector;
  topologyKey: string;
}

export interface Toleration {
  key?: string;
  operator?: string;
  value?: string;
  effect?: string;
  /** Only of NoExecute taints: how long the Pod stays; absent: for ever. */
  tolerationSeconds?: number;
}

export interface ContainerPort {
  name?: string;
  containerPort: number;
  protocol?: string;
}

export interface PodStatus {
  phase?: string;
  conditions?: PodCondition[];
  podIP?: string;
  podIPs?: { ip: string }[];
  hostIP?: string;
  hostIPs?: { ip: string }[];
  startTime?: string;
  observedGeneration?: number;
  reason?: string;
  message?: string;
  containerStatuses?: ContainerStatus[];
  initContainerStatuses?: ContainerStatus[];
  ephemeralContainerStatuses?: ContainerStatus[];
}

export interface ContainerStatus {
  name: string;
  state?: ContainerState;
  lastState?: ContainerState;
  ready: boolean;
  restartCount: number;
  image: string;
  imageID: string;
  containerID?: string;
  started?: boolean;
}

/** At most one member is set; none counts as waiting. */
export interface ContainerState {
  waiting?: { reason?: string; message?: string };
  running?: { startedAt?: string };
  terminated?: ContainerTermination;
}

export interface ContainerTermination {
  exitCode: number;
  reason?: string;
  startedAt?: string;
  finishedAt?: string;
  containerID?: string;
}

export interface PodCondition {
  type: string;
  status: string;
  lastTransitionTime?: string;
  lastProbeTime?: string | null;
  observedGeneration?: number;
  reason?: string;
  message?: string;
}
