import type { KubeObject, ObjectMeta } from '../../../../src/objects/meta.ts';
import type { Deployment, ReplicaSet } from '../../../../src/objects/types/apps.generated.ts';
import type { Node, Pod, PodSpec } from '../../../../src/objects/types/core.generated.ts';
import { formatTime } from '../../../../src/objects/formats/time.ts';

/** 2026-01-01T00:00:00Z. */
export const now = 1_767_225_600_000;

/** What a Pod of the tests is like; everything else is ordinary. */
export interface PodTraits {
  readonly ready?: boolean;
  /** Seconds since it became ready. */
  readonly readyFor?: number;
  readonly phase?: string;
  readonly leaving?: boolean;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly owner?: KubeObject;
  readonly restarts?: number;
  /** Seconds since its creation. */
  readonly age?: number;
  readonly spec?: PodSpec;
}

/** A Pod, running and ready unless its traits say otherwise. */
export function pod(name: string, traits: PodTraits = {}): Pod {
  const { ready = true, phase = 'Running', readyFor = 60, age = 120, owner, restarts = 0 } = traits;
  const isReady = ready && phase === 'Running';
  const metadata: ObjectMeta = {
    name,
    namespace: 'ns',
    uid: `uid-${name}`,
    creationTimestamp: formatTime(now - age * 1000),
    labels: traits.labels ?? { app: 'web' },
    ...(traits.annotations === undefined ? {} : { annotations: traits.annotations }),
    ...(traits.leaving === true ? { deletionTimestamp: formatTime(now) } : {}),
    ...(owner === undefined ? {} : { ownerReferences: [reference(owner)] }),
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: { nodeName: 'n1', containers: [{ name: 'main', image: 'i' }], ...traits.spec },
    status: {
      phase,
      conditions: [
        {
          type: 'Ready',
          status: isReady ? 'True' : 'False',
          lastTransitionTime: formatTime(now - readyFor * 1000),
        },
      ],
      containerStatuses: [{ name: 'main', ready: isReady, restartCount: restarts, image: 'i', imageID: 'i' }],
    },
  };
}

/** The owner's controller reference. */
function reference({ apiVersion = '', kind = '', metadata }: KubeObject): {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller: boolean;
} {
  return { apiVersion, kind, name: metadata.name ?? '', uid: metadata.uid ?? '', controller: true };
}

/** A node that is ready. */
export function node(name: string, labels: Record<string, string> = {}, spec: Node['spec'] = {}): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      uid: `uid-${name}`,
      labels: { 'kubernetes.io/hostname': name, ...labels },
      annotations: { 'servicenet.dev/kubelet': 'simulated' },
    },
    spec,
    status: { conditions: [{ type: 'Ready', status: 'True' }], allocatable: { pods: '110' } },
  };
}

/** A Deployment of Pods with the label app=web. */
export function deployment(spec: Partial<Deployment['spec']> = {}, image = 'i:1'): Deployment {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'ns', uid: 'uid-web', generation: 1 },
    spec: {
      replicas: 3,
      selector: { matchLabels: { app: 'web' } },
      template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'main', image }] } },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
      progressDeadlineSeconds: 600,
      revisionHistoryLimit: 10,
      ...spec,
    },
    status: {},
  };
}

/** A ReplicaSet as its controller reports it when all its Pods are available. */
export function settled(replicaSet: ReplicaSet): ReplicaSet {
  const replicas = replicaSet.spec.replicas ?? 0;
  return {
    ...replicaSet,
    status: {
      replicas,
      readyReplicas: replicas,
      availableReplicas: replicas,
      terminatingReplicas: 0,
      observedGeneration: 1,
    },
  };
}
