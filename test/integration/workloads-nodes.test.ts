import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listAt, numberAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call, revisionOf, watchUntil } from '../support/test-server.ts';
import { itemsOf, untilObject } from '../support/with-controllers.ts';

let server: TestServer;

beforeAll(async () => {
  server = await startApiServer({ nodes: 4, serviceClusterIpRange: '10.96.0.0/16,fd00:10:96::/112' });
  await untilObject(
    server.client,
    '/api/v1/nodes',
    (body) => itemsOf(body).filter((node) => condition(node, 'Ready') === 'True').length === 4,
  );
});
afterAll(() => server.stop());

const pods = '/api/v1/namespaces/default/pods';

function condition(object: unknown, type: string): string {
  const found = listAt(object, 'status', 'conditions').find((each) => textAt(each, 'type') === type);
  return textAt(found, 'status');
}

async function createPod(
  name: string,
  spec: Record<string, unknown> = {},
  annotations: Record<string, string> = {},
): Promise<string> {
  await server.client.request('POST', pods, {
    body: {
      metadata: { name, labels: { app: name }, annotations },
      spec: { containers: [{ name: 'main', image: 'i' }], ...spec },
    },
  });
  return `${pods}/${name}`;
}

async function annotate(path: string, annotations: Record<string, string | null>): Promise<void> {
  await server.client.request('PATCH', path, {
    contentType: 'application/merge-patch+json',
    body: { metadata: { annotations } },
  });
}

describe('a simulated node', () => {
  test('has a zone, addresses, pod CIDRs of both families, and a Lease', async () => {
    const { body } = await call(server.client, 'GET', '/api/v1/nodes');
    const nodes = itemsOf(body);
    expect(nodes.map((node) => recordAt(node, 'metadata', 'labels')['topology.kubernetes.io/zone'])).toEqual([
      'zone-a',
      'zone-b',
      'zone-c',
      'zone-a',
    ]);
    expect(nodes.map((node) => listAt(node, 'spec', 'podCIDRs').length)).toEqual([2, 2, 2, 2]);
    expect(new Set(nodes.flatMap((node) => listAt(node, 'spec', 'podCIDRs'))).size).toBe(8);
    for (const node of nodes) expect(listAt(node, 'spec', 'taints')).toEqual([]);
    const [first] = nodes;
    expect(listAt(first, 'status', 'addresses').map((address) => textAt(address, 'type'))).toEqual([
      'InternalIP',
      'InternalIP',
      'Hostname',
    ]);
    const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1';
    const found = await untilObject(server.client, lease, (_body, status) => status === 200);
    expect(found['spec']).toMatchObject({ holderIdentity: 'node-1', leaseDurationSeconds: 40 });
  });

  test('that fails makes its Pods unready, and loses those that do not tolerate it for long', async () => {
    const tolerations = [
      {
        key: 'node.kubernetes.io/unreachable',
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: 1,
      },
    ];
    const short = await createPod('short', { nodeName: 'node-4', tolerations });
    const long = await createPod('long', { nodeName: 'node-4' });
    await untilObject(server.client, long, (pod) => condition(pod, 'Ready') === 'True');
    await annotate('/api/v1/nodes/node-4', { 'servicenet.dev/state': 'down' });
    const node = await untilObject(
      server.client,
      '/api/v1/nodes/node-4',
      (body) => condition(body, 'Ready') === 'Unknown',
    );
    expect(listAt(node, 'spec', 'taints')).toMatchObject([
      { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' },
      { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' },
    ]);
    await untilObject(server.client, long, (pod) => condition(pod, 'Ready') === 'False');
    const leaving = await untilObject(
      server.client,
      short,
      (pod) => textAt(pod, 'metadata', 'deletionTimestamp') !== '',
    );
    expect(condition(leaving, 'DisruptionTarget')).toBe('True');

    await annotate('/api/v1/nodes/node-4', { 'servicenet.dev/state': null });
    await untilObject(server.client, long, (pod) => condition(pod, 'Ready') === 'True');
    await untilObject(server.client, short, (_body, status) => status === 404);
    await untilObject(
      server.client,
      '/api/v1/nodes/node-4',
      (body) => listAt(body, 'spec', 'taints').length === 0,
    );
  });

  test('that is deleted takes its Pods with it', async () => {
    await server.client.request('POST', '/api/v1/nodes', {
      body: { metadata: { name: 'gone', annotations: { 'servicenet.dev/kubelet': 'simulated' } } },
    });
    const pod = await createPod('orphan', { nodeName: 'gone' });
    await untilObject(server.client, pod, (body) => textAt(body, 'status', 'phase') === 'Running');
    await server.client.request('DELETE', '/api/v1/nodes/gone');
    await untilObject(server.client, pod, (_body, status) => status === 404);
  });
});

describe('a simulated Pod', () => {
  test('gets an address of each family from its node, and both of the node as hostIPs', async () => {
    const path = await createPod('dual', { nodeSelector: { 'kubernetes.io/hostname': 'node-2' } });
    const pod = await untilObject(server.client, path, (body) => condition(body, 'Ready') === 'True');
    const node = (await call(server.client, 'GET', '/api/v1/nodes/node-2')).body;
    const [v4, v6] = listAt(pod, 'status', 'podIPs').map((each) => textAt(each, 'ip'));
    const [cidr4, cidr6] = listAt(node, 'spec', 'podCIDRs').map(String);
    expect(v4?.split('.').slice(0, 3)).toEqual(cidr4?.split('.').slice(0, 3));
    expect(v6?.startsWith(cidr6?.split('::')[0] ?? '?')).toBe(true);
    expect(listAt(pod, 'status', 'hostIPs')).toHaveLength(2);
    expect(pod['status']).toMatchObject({
      phase: 'Running',
      podIP: v4,
      containerStatuses: [{ name: 'main', ready: true, started: true, restartCount: 0 }],
    });
    for (const type of ['PodScheduled', 'Initialized', 'ContainersReady', 'PodReadyToStartContainers']) {
      expect(condition(pod, type)).toBe('True');
    }
  });

  test('waits for a node that it fits, and says why it waits', async () => {
    const path = await createPod('picky', { nodeSelector: { disk: 'fast' } });
    await untilObject(server.client, path, ({ status }) =>
      JSON.stringify(status).includes("0/4 nodes are available: 4 node(s) didn't match"),
    );
    await server.client.request('PATCH', '/api/v1/nodes/node-3', {
      contentType: 'application/merge-patch+json',
      body: { metadata: { labels: { disk: 'fast' } } },
    });
    const placed = await untilObject(server.client, path, (body) => condition(body, 'Ready') === 'True');
    expect(textAt(placed, 'spec', 'nodeName')).toBe('node-3');
  });

  test('waits for the Pod that it wants to be near', async () => {
    const near = {
      labelSelector: { matchLabels: { app: 'near-this' } },
      topologyKey: 'kubernetes.io/hostname',
    };
    const affinity = { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [near] } };
    const path = await createPod('near', { affinity });
    await untilObject(server.client, path, ({ status }) =>
      JSON.stringify(status).includes("0/4 nodes are available: 4 node(s) didn't match pod affinity rules."),
    );
    const other = await createPod('far', { nodeSelector: { 'kubernetes.io/hostname': 'node-4' } });
    await server.client.request('PATCH', other, {
      contentType: 'application/merge-patch+json',
      body: { metadata: { labels: { app: 'near-this' } } },
    });
    const placed = await untilObject(server.client, path, (body) => condition(body, 'Ready') === 'True');
    expect(textAt(placed, 'spec', 'nodeName')).toBe('node-4');
  });

  test('becomes ready, fails and comes back as its annotations say', async () => {
    const seen = async (name: string, done: (pod: unknown) => boolean): Promise<unknown[]> => {
      const query = { resourceVersion, fieldSelector: `metadata.name=${name}` };
      const states: unknown[] = [];
      await watchUntil(server.client, pods, query, ({ object }) => {
        states.push(object);
        return done(object);
      });
      return states;
    };
    const resourceVersion = await revisionOf(server.client, pods);
    await createPod('slow', {}, { 'servicenet.dev/ready-after': '300ms' });
    const slow = await seen('slow', (pod) => condition(pod, 'Ready') === 'True');
    expect(slow.map((pod) => `${textAt(pod, 'status', 'phase')} ${condition(pod, 'Ready')}`)).toContain(
      'Running False',
    );

    await createPod('weak', {}, { 'servicenet.dev/fail-after': '100ms' });
    const weak = await seen('weak', (pod) => JSON.stringify(pod).includes('CrashLoopBackOff'));
    const failed = weak.at(-1);
    expect(numberAt(listAt(failed, 'status', 'containerStatuses')[0], 'restartCount')).toBe(1);
    expect(condition(failed, 'Ready')).toBe('False');

    const done = await createPod(
      'done',
      { restartPolicy: 'Never' },
      { 'servicenet.dev/complete-after': '50ms' },
    );
    await untilObject(server.client, done, (body) => textAt(body, 'status', 'phase') === 'Succeeded');
  });

  test('flaps while its annotation says so, and is steady at once without it', async () => {
    const path = await createPod('flappy', {}, { 'servicenet.dev/readiness': 'flapping:0.2' });
    for (const status of ['True', 'False', 'True', 'False']) {
      await untilObject(server.client, path, (body) => condition(body, 'Ready') === status);
    }
    await annotate(path, { 'servicenet.dev/readiness': 'false' });
    await untilObject(server.client, path, (body) => condition(body, 'Ready') === 'False');
    await annotate(path, { 'servicenet.dev/readiness': null });
    await untilObject(server.client, path, (body) => condition(body, 'Ready') === 'True');
  });

  test('stays as long as its containers take to stop, at most its grace period', async () => {
    const path = await createPod(
      'stubborn',
      { terminationGracePeriodSeconds: 1 },
      { 'servicenet.dev/stop-after': '1h' },
    );
    await untilObject(server.client, path, (body) => condition(body, 'Ready') === 'True');
    const deleted = performance.now();
    const leaving = await call(server.client, 'DELETE', path);
    expect(textAt(leaving.body, 'metadata', 'deletionTimestamp')).not.toBe('');
    await untilObject(server.client, path, (_body, status) => status === 404);
    expect(performance.now() - deleted).toBeGreaterThan(900);
  });
});

describe('a settled cluster', () => {
  test('writes nothing but heartbeats', async () => {
    await server.client.request('DELETE', `${pods}/flappy`);
    await server.client.request('DELETE', `${pods}/weak`);
    for (const name of ['flappy', 'weak']) {
      await untilObject(server.client, `${pods}/${name}`, (_body, status) => status === 404);
    }
    const versions = async (): Promise<string> => {
      const paths = [pods, '/api/v1/nodes', '/api/v1/endpoints', '/apis/discovery.k8s.io/v1/endpointslices'];
      const lists = await Promise.all(paths.map((path) => call(server.client, 'GET', path)));
      return lists
        .flatMap(({ body }) => itemsOf(body))
        .map((item) => textAt(item, 'metadata', 'resourceVersion'))
        .join();
    };
    // It comes to rest, however long that takes: a controller that goes on writing does not.
    for (let before = '', now = await versions(); now !== before;) {
      await new Promise((resolve) => setTimeout(resolve, 1500));
      [before, now] = [now, await versions()];
    }
  });
});
