import { isKubeObject, type ResourceType } from '../../client/resources.ts';
import { isRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type {
  ControllerRevision,
  DaemonSet,
  Deployment,
  ReplicaSet,
  StatefulSet,
} from '../../objects/types/apps.generated.ts';
import type { CronJob, Job } from '../../objects/types/batch.generated.ts';
import type { ReplicationController } from '../../objects/types/core.generated.ts';
import type { PodDisruptionBudget } from '../../objects/types/policy.generated.ts';

function hasSpecAndStatus(object: KubeObject): boolean {
  return isRecord(Reflect.get(object, 'spec')) && isRecord(Reflect.get(object, 'status'));
}

export const deployments: ResourceType<Deployment> = {
  group: 'apps',
  version: 'v1',
  plural: 'deployments',
  kind: 'Deployment',
  namespaced: true,
  isObject: (object): object is Deployment => hasSpecAndStatus(object),
};

export const replicaSets: ResourceType<ReplicaSet> = {
  group: 'apps',
  version: 'v1',
  plural: 'replicasets',
  kind: 'ReplicaSet',
  namespaced: true,
  isObject: (object): object is ReplicaSet => hasSpecAndStatus(object),
};

export const replicationControllers: ResourceType<ReplicationController> = {
  group: '',
  version: 'v1',
  plural: 'replicationcontrollers',
  kind: 'ReplicationController',
  namespaced: true,
  isObject: (object): object is ReplicationController => hasSpecAndStatus(object),
};

export const statefulSets: ResourceType<StatefulSet> = {
  group: 'apps',
  version: 'v1',
  plural: 'statefulsets',
  kind: 'StatefulSet',
  namespaced: true,
  isObject: (object): object is StatefulSet => hasSpecAndStatus(object),
};

export const daemonSets: ResourceType<DaemonSet> = {
  group: 'apps',
  version: 'v1',
  plural: 'daemonsets',
  kind: 'DaemonSet',
  namespaced: true,
  isObject: (object): object is DaemonSet => hasSpecAndStatus(object),
};

export const controllerRevisions: ResourceType<ControllerRevision> = {
  group: 'apps',
  version: 'v1',
  plural: 'controllerrevisions',
  kind: 'ControllerRevision',
  namespaced: true,
  isObject: (object): object is ControllerRevision => isRecord(Reflect.get(object, 'data')),
};

export const jobs: ResourceType<Job> = {
  group: 'batch',
  version: 'v1',
  plural: 'jobs',
  kind: 'Job',
  namespaced: true,
  isObject: (object): object is Job => hasSpecAndStatus(object),
};

export const cronJobs: ResourceType<CronJob> = {
  group: 'batch',
  version: 'v1',
  plural: 'cronjobs',
  kind: 'CronJob',
  namespaced: true,
  isObject: (object): object is CronJob => hasSpecAndStatus(object),
};

export const podDisruptionBudgets: ResourceType<PodDisruptionBudget> = {
  group: 'policy',
  version: 'v1',
  plural: 'poddisruptionbudgets',
  kind: 'PodDisruptionBudget',
  namespaced: true,
  isObject: (object): object is PodDisruptionBudget => hasSpecAndStatus(object),
};

export const persistentVolumeClaims: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'persistentvolumeclaims',
  kind: 'PersistentVolumeClaim',
  namespaced: true,
  isObject: (object): object is KubeObject => isKubeObject(object),
};
