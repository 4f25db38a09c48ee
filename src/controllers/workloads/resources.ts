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
import { inGroup } from '../../client/resources.ts';

const core = inGroup('');
const apps = inGroup('apps');
const batch = inGroup('batch');

export const deployments = apps<Deployment>('Deployment', 'deployments', ['spec', 'status']);

export const replicaSets = apps<ReplicaSet>('ReplicaSet', 'replicasets', ['spec', 'status']);

export const replicationControllers = core<ReplicationController>(
  'ReplicationController',
  'replicationcontrollers',
  ['spec', 'status'],
);

export const statefulSets = apps<StatefulSet>('StatefulSet', 'statefulsets', ['spec', 'status']);

export const daemonSets = apps<DaemonSet>('DaemonSet', 'daemonsets', ['spec', 'status']);

export const controllerRevisions = apps<ControllerRevision>('ControllerRevision', 'controllerrevisions', [
  'data',
]);

export const jobs = batch<Job>('Job', 'jobs', ['spec', 'status']);

export const cronJobs = batch<CronJob>('CronJob', 'cronjobs', ['spec', 'status']);

export const podDisruptionBudgets = inGroup('policy')<PodDisruptionBudget>(
  'PodDisruptionBudget',
  'poddisruptionbudgets',
  ['spec', 'status'],
);

export const persistentVolumeClaims = core('PersistentVolumeClaim', 'persistentvolumeclaims', []);
