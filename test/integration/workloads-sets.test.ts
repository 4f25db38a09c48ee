import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listAt, numberAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { Kubectl } from '../support/kubectl.ts';
import { kubectlIn, type NamespacedKubectl } from '../support/namespaced-kubectl.ts';
import { revisionOf, watchUntil } from '../support/test-server.ts';
import { itemsOf, untilObject } from '../support/with-controllers.ts';

let server: TestServer;
let kubectl: Kubectl;

beforeAll(async () => {
  server = await startApiServer({ nodes: 3 });
  kubectl = new Kubectl(server.kubeconfig);
});
afterAll(async () => {
  kubectl.dispose();
  await server.stop();
});

let namespaces = 0;
const inNamespace = (): Promise<NamespacedKubectl> =>
  kubectlIn(kubectl, server.client, `sets-${++namespaces}`);

const statefulSet = (image: string, partition = 0, replicas = 3): string => `
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: ${replicas}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: ${partition}}}
  selector: {matchLabels: {app: db}}
  template:
    metadata:
      labels: {app: db}
      annotations: {servicenet.dev/ready-after: 50ms, servicenet.dev/stop-after: 50ms}
    spec: {containers: [{name: db, image: "${image}"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`;

function imageOf(pod: unknown): string {
  return textAt(listAt(pod, 'spec', 'containers')[0], 'image');
}

describe('a StatefulSet', () => {
  test('starts its Pods in order, with stable names that a headless Service publishes', async () => {
    const { namespace, run, json } = await inNamespace();
    const path = `/api/v1/namespaces/${namespace}/pods`;
    const resourceVersion = await revisionOf(server.client, path);
    await run('apply -f -', statefulSet('db:1'));
    const ready = new Map<string, boolean>();
    await watchUntil(server.client, path, { resourceVersion }, ({ object }) => {
      const isReady = listAt(object, 'status', 'conditions').some(
        (condition) => textAt(condition, 'type') === 'Ready' && textAt(condition, 'status') === 'True',
      );
      ready.set(textAt(object, 'metadata', 'name'), isReady);
      const unready = [...ready.values()].filter((each) => !each);
      // A Pod is there only when all before it are ready.
      expect(unready.length).toBeLessThanOrEqual(1);
      return ready.size === 3 && unready.length === 0;
    });
    expect([...ready.keys()]).toEqual(['db-0', 'db-1', 'db-2']);
    const slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
    const hostnames = (body: unknown): string[] =>
      listAt(body, 'items')
        .flatMap((slice) => listAt(slice, 'endpoints'))
        .map((endpoint) => textAt(endpoint, 'hostname'))
        .sort();
    await untilObject(server.client, slices, (body) => hostnames(body).join() === 'db-0,db-1,db-2');
    const claims = itemsOf(await json('get persistentvolumeclaims')).map((claim) =>
      textAt(claim, 'metadata', 'name'),
    );
    expect(claims.sort()).toEqual(['data-db-0', 'data-db-1', 'data-db-2']);
    const [first] = itemsOf(await json('get pods db-0 db-1'));
    expect(first).toMatchObject({
      metadata: {
        labels: { 'statefulset.kubernetes.io/pod-name': 'db-0', 'apps.kubernetes.io/pod-index': '0' },
      },
      spec: { hostname: 'db-0', subdomain: 'db' },
    });
  });

  test('tells of its Pods and claims, and takes in no Pod of another name', async () => {
    const { namespace, run } = await inNamespace();
    await run('run stray --image=db:1 --labels=app=db');
    await run('apply -f -', statefulSet('db:1', 0, 1));
    await run('rollout status statefulset/db');
    const expectedMessages = [
      'create Claim data-db-0 Pod db-0 in StatefulSet db success',
      'create Pod db-0 in StatefulSet db successful',
    ];
    await untilObject(server.client, `/api/v1/namespaces/${namespace}/events`, (body) => {
      const messages = listAt(body, 'items').map((event) => textAt(event, 'message'));
      return expectedMessages.every((message) => messages.includes(message));
    });
    expect(await run('get pod stray -o jsonpath={.metadata.ownerReferences}')).toBe('');
  });

  test('updates from the highest ordinal down to the partition, and rolls back', async () => {
    const { run, json } = await inNamespace();
    await run('apply -f -', statefulSet('db:1'));
    await run('rollout status statefulset/db');
    await run('apply -f -', statefulSet('db:2', 2));
    await run('rollout status statefulset/db');
    const images = async (): Promise<string[]> => itemsOf(await json('get pods')).map(imageOf);
    expect(await images()).toEqual(['db:1', 'db:1', 'db:2']);
    await run('apply -f -', statefulSet('db:2', 0));
    await run('rollout status statefulset/db');
    expect(await images()).toEqual(['db:2', 'db:2', 'db:2']);
    const { status } = await json('get statefulset db');
    expect(status).toMatchObject({ replicas: 3, readyReplicas: 3, currentReplicas: 3, updatedReplicas: 3 });
    expect(textAt(status, 'currentRevision')).toBe(textAt(status, 'updateRevision'));
    await run('rollout undo statefulset/db');
    await run('rollout status statefulset/db');
    expect(await images()).toEqual(['db:1', 'db:1', 'db:1']);
    expect(await run('rollout history statefulset/db')).toMatch(/^2\s.*\n3\s/m);
  });

  test('is scaled down from the end', async () => {
    const { namespace, run } = await inNamespace();
    await run('apply -f -', statefulSet('db:1'));
    await run('rollout status statefulset/db');
    await run('scale statefulset db --replicas=1');
    const seen = new Set<string>();
    await untilObject(server.client, `/api/v1/namespaces/${namespace}/pods`, (body) => {
      const names = itemsOf(body).map((pod) => textAt(pod, 'metadata', 'name'));
      seen.add(names.join());
      return names.length === 1;
    });
    expect([...seen]).toEqual(expect.arrayContaining(['db-0']));
    expect([...seen].every((names) => names.startsWith('db-0'))).toBe(true);
  });
});

describe('a DaemonSet', () => {
  test('runs on every node, cordoned or new, but not where its selector does not lead', async () => {
    const { namespace, run, json } = await inNamespace();
    const daemon = (image: string): string => `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}, annotations: {servicenet.dev/stop-after: 50ms}}
    spec:
      nodeSelector: {kubernetes.io/os: linux}
      containers: [{name: agent, image: "${image}"}]
`;
    await run('cordon node-2');
    await run('apply -f -', daemon('agent:1'));
    expect(await run('rollout status daemonset/agent')).toContain('successfully rolled out');
    const nodes = async (): Promise<string[]> =>
      itemsOf(await json('get pods'))
        .map((pod) => textAt(pod, 'spec', 'nodeName'))
        .sort();
    expect(await nodes()).toEqual(['node-1', 'node-2', 'node-3']);
    await run('uncordon node-2');

    await server.client.request('POST', '/api/v1/nodes', {
      body: {
        metadata: {
          name: 'extra',
          annotations: { 'servicenet.dev/kubelet': 'simulated' },
          labels: { 'kubernetes.io/os': 'linux', 'kubernetes.io/hostname': 'extra' },
        },
      },
    });
    const path = `/apis/apps/v1/namespaces/${namespace}/daemonsets/agent`;
    await untilObject(server.client, path, (body) => numberAt(body, 'status', 'numberReady') === 4);
    await run('label node extra kubernetes.io/os=plan9 --overwrite');
    await untilObject(server.client, path, ({ status }) => numberAt(status, 'desiredNumberScheduled') === 3);

    await run('set image daemonset/agent agent=agent:2');
    expect(await run('rollout status daemonset/agent')).toContain('successfully rolled out');
    const images = async (): Promise<Set<string>> => new Set(itemsOf(await json('get pods')).map(imageOf));
    await expect.poll(images).toEqual(new Set(['agent:2']));
    await run('rollout undo daemonset/agent');
    expect(await run('rollout status daemonset/agent')).toContain('successfully rolled out');
    await expect.poll(images).toEqual(new Set(['agent:1']));
    await run('delete node extra');
  });
});

const job = (name: string, annotations: string, spec: string): string => `
apiVersion: batch/v1
kind: Job
metadata: {name: ${name}}
spec:
  ${spec}
  template:
    metadata: {annotations: {${annotations}}}
    spec: {restartPolicy: Never, containers: [{name: work, image: busybox}]}
`;

describe('a Job', () => {
  test('runs to completion, a few Pods at a time', async () => {
    const { namespace, run, json } = await inNamespace();
    await run(
      'apply -f -',
      job('work', 'servicenet.dev/complete-after: 50ms', 'completions: 5\n  parallelism: 2'),
    );
    let most = 0;
    await untilObject(server.client, `/apis/batch/v1/namespaces/${namespace}/jobs/work`, ({ status }) => {
      most = Math.max(most, numberAt(status, 'active'));
      return listAt(status, 'conditions').some((condition) => textAt(condition, 'type') === 'Complete');
    });
    expect(most).toBeLessThanOrEqual(2);
    expect((await json('get job work'))['status']).toMatchObject({
      succeeded: 5,
      ready: 0,
      conditions: [{ type: 'SuccessCriteriaMet' }, { type: 'Complete', reason: 'CompletionsReached' }],
    });
    expect(await run('get pods')).toMatch(/(?:.* Completed .*\n){5}/);
  });

  test('tells when it is suspended and when it goes on', async () => {
    const { namespace, run } = await inNamespace();
    // It must not complete before it is suspended.
    await run('apply -f -', job('later', 'servicenet.dev/complete-after: 1h', 'parallelism: 1'));
    await run(`patch job later -p '{"spec":{"suspend":true}}'`);
    const events = `/api/v1/namespaces/${namespace}/events`;
    const hasMessage = (message: string) => (body: unknown) =>
      listAt(body, 'items').some((event) => textAt(event, 'message') === message);
    await untilObject(server.client, events, hasMessage('Job suspended'));
    await run(`patch job later -p '{"spec":{"suspend":false}}'`);
    await untilObject(server.client, events, hasMessage('Job resumed'));
  });

  test('gives each Pod of an Indexed Job its index', async () => {
    const { run, json } = await inNamespace();
    const spec = 'completionMode: Indexed\n  completions: 3\n  parallelism: 3';
    await run('apply -f -', job('work', 'servicenet.dev/complete-after: 20ms', spec));
    await run('wait --for=condition=complete job/work --timeout=60s');
    expect((await json('get job work'))['status']).toMatchObject({ succeeded: 3, completedIndexes: '0-2' });
  });

  test('fails when its Pods fail too often, and is gone after its time to live', async () => {
    const { namespace, run } = await inNamespace();
    await run('apply -f -', job('work', 'servicenet.dev/fail-after: 20ms', 'backoffLimit: 0'));
    await run('wait --for=condition=failed job/work --timeout=60s');
    // The time to live comes after its condition was seen: a Job made with it may be gone before kubectl looks.
    await run('patch job work --type=merge -p {"spec":{"ttlSecondsAfterFinished":1}}');
    await untilObject(
      server.client,
      `/apis/batch/v1/namespaces/${namespace}/jobs/work`,
      (_body, status) => status === 404,
    );
  });
});
