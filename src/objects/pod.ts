import type { KubeObject } from './meta.ts';

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
}

export interface Container {
  name: string;
  image?: string;
  restartPolicy?: string;
  ports?: ContainerPort[];
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
  startTime?: string;
}

export interface PodCondition {
  type: string;
  status: string;
  lastTransitionTime?: string;
  reason?: string;
  message?: string;
}
