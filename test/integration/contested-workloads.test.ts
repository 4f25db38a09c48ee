import { it } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { at, conditionStatus, listAt, numberAt } from '../../src/objects/json.ts';
import { ContestedCluster } from '../support/contested-cluster.ts';
import { itemsOf } from '../support/with-controllers.ts';

const controllers = [
  'node-lifecycle-controller',
  'default-scheduler',
  'kubelet',
  'taint-eviction-controller',
  'deployment-controller',
  'replicaset-controller',
  'statefulset-controller',
  'daemonset-controller',
  'job-controller',
  'disruption-controller',
  'garbage-collector-controller',
];
const nodes = '/api/v1/nodes';
const pods = '/api/v1/namespaces/default/pods';
const apps = '/apis/apps/v1/namespaces/default';
const jobs = '/apis/batch/v1/namespaces/default/jobs';
const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';

const labelled = (app: string, image: string, annotations: JsonRecord = {}): JsonRecord => ({
  metadata: { labels: { app }, annotations: { 'servicenet.dev/stop-after': '0s', ...annotations } },
  spec: { containers: [{ name: 'c', image }] },
});
const selecting = (app: string): JsonRecord => ({ selector: { matchLabels: { app } } });
const image = (name: string): JsonRecord => ({
  spec: { template: { spec: { containers: [{ name: 'c', image: name }] } } },
});

it('controllers of workloads do not overwrite what another client wrote a moment before', async () => {
  const cluster = await ContestedCluster.start();
  for (const name of controllers) cluster.run(name);
  const has = (path: string, field: string, count: number): Promise<JsonRecord> =>
    cluster.until(path, (body) => numberAt(body, 'status', field) === count);
  const isSeen = (path: string, field: string, count: number): Promise<JsonRecord> =>
    cluster.until(
      path,
      (body) =>
        numberAt(body, 'status', field) === count &&
        at(body, 'metadata', 'generation') === at(body, 'status', 'observedGeneration'),
    );
  await cluster.until(
    nodes,
    (body) =>
      itemsOf(body).filter(
        (node) => conditionStatus(listAt(node, 'status', 'conditions'), 'Ready') === 'True',
      ).length === 2,
  );

  const deployment = `${apps}/deployments/web`;
  await cluster.create(`${apps}/deployments`, {
    metadata: { name: 'web' },
    spec: { ...selecting('web'), replicas: 2, revisionHistoryLimit: 0, template: labelled('web', 'a') },
  });
  await isSeen(deployment, 'availableReplicas', 2);
  await cluster.create(budgets, {
    metadata: { name: 'web' },
    spec: { ...selecting('web'), minAvailable: 1 },
  });
  await has(`${budgets}/web`, 'currentHealthy', 2);
  await cluster.merge(deployment, image('b'));
  await cluster.until(`${apps}/replicasets`, (body) => itemsOf(body).length === 1);
  await isSeen(deployment, 'updatedReplicas', 2);

  await cluster.create(pods, {
    ...labelled('bare', 'a'),
    metadata: { name: 'bare', labels: { app: 'bare' } },
  });
  await cluster.until(`${pods}/bare`, (body) => at(body, 'status', 'phase') === 'Running');
  await cluster.create(`${apps}/replicasets`, {
    metadata: { name: 'bare' },
    spec: { ...selecting('bare'), replicas: 1, template: labelled('bare', 'a') },
  });
  await isSeen(`${apps}/replicasets/bare`, 'availableReplicas', 1);

  const statefulSet = `${apps}/statefulsets/db`;
  await cluster.create(`${apps}/statefulsets`, {
    metadata: { name: 'db' },
    spec: { ...selecting('db'), serviceName: 'db', revisionHistoryLimit: 1, template: labelled('db', 'a') },
  });
  await isSeen(statefulSet, 'updatedReplicas', 1);
  // The first template again is the same revision with another number; a third one is one too many.
  for (const name of ['b', 'a', 'c']) {
    await cluster.merge(statefulSet, image(name));
    await isSeen(statefulSet, 'updatedReplicas', 1);
    await cluster.until(
      statefulSet,
      ({ status }) => at(status, 'currentRevision') === at(status, 'updateRevision'),
    );
  }

  const daemonSet = `${apps}/daemonsets/agent`;
  await cluster.create(`${apps}/daemonsets`, {
    metadata: { name: 'agent' },
    spec: { ...selecting('agent'), template: labelled('agent', 'a') },
  });
  await isSeen(daemonSet, 'updatedNumberScheduled', 2);
  await cluster.merge(daemonSet, image('b'));
  await isSeen(daemonSet, 'updatedNumberScheduled', 2);

  const job = (app: string, spec: JsonRecord, annotations: JsonRecord = {}): JsonRecord => {
    const { metadata, spec: podSpec } = labelled(app, 'a', annotations);
    const template = { metadata, spec: { ...(podSpec as JsonRecord), restartPolicy: 'Never' } };
    return { metadata: { name: app }, spec: { ...selecting(app), manualSelector: true, template, ...spec } };
  };
  await cluster.create(
    jobs,
    job('brief', { ttlSecondsAfterFinished: 0 }, { 'servicenet.dev/complete-after': '0s' }),
  );
  await cluster.untilGone(`${jobs}/brief`);
  await cluster.create(jobs, job('long', {}));
  await has(`${jobs}/long`, 'ready', 1);
  await cluster.merge(`${jobs}/long`, { spec: { suspend: true } });

  const nodeSelector = { 'example.com/there': 'no' };
  const containers = [{ name: 'c', image: 'a' }];
  await cluster.create(pods, { metadata: { name: 'homeless' }, spec: { nodeSelector, containers } });
  await cluster.create(pods, { metadata: { name: 'guest' }, spec: { nodeName: 'node-1', containers } });
  await cluster.merge(`${nodes}/node-1`, {
    spec: { taints: [{ key: 'example.com/leave', effect: 'NoExecute' }] },
  });
  await cluster.untilGone(`${pods}/guest`);
  await cluster.merge(`${nodes}/node-2`, { metadata: { annotations: { 'servicenet.dev/state': 'down' } } });

  await cluster.untilRefused([
    'node-lifecycle-controller PATCH nodes',
    'node-lifecycle-controller PUT nodes/status',
    'node-lifecycle-controller PATCH pods/status',
    'default-scheduler POST pods/binding',
    'default-scheduler PATCH pods/status',
    'kubelet PATCH pods/status',
    'kubelet DELETE pods',
    'taint-eviction-controller PATCH pods/status',
    'taint-eviction-controller DELETE pods',
    'deployment-controller PUT deployments/status',
    'deployment-controller PATCH replicasets',
    'deployment-controller DELETE replicasets',
    'replicaset-controller PATCH pods',
    'replicaset-controller PUT replicasets/status',
    'replicaset-controller DELETE pods',
    'statefulset-controller PUT statefulsets/status',
    'statefulset-controller PATCH controllerrevisions',
    'statefulset-controller DELETE controllerrevisions',
    'statefulset-controller DELETE pods',
    'daemonset-controller PUT daemonsets/status',
    'daemonset-controller DELETE pods',
    'job-controller PUT jobs/status',
    'job-controller DELETE jobs',
    'job-controller DELETE pods',
    'disruption-controller PUT poddisruptionbudgets/status',
  ]);
}, 300_000);
