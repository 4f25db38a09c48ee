import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Transport } from '../../src/client/transport.ts';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';
import {
  itemsOf,
  startControllers,
  untilObject,
  type WatchedControllers,
} from '../support/with-controllers.ts';

const family = ['endpoints-controller', 'endpointslice-controller', 'endpointslice-mirroring-controller'];

let server: TestServer;
let client: Transport;
let controllers: WatchedControllers;

beforeAll(async () => {
  server = await startApiServer();
  client = server.client;
  await create('/api/v1/nodes', {
    metadata: { name: 'n1', labels: { 'topology.kubernetes.io/zone': 'z1' } },
  });
  controllers = startControllers(client, family);
});

afterAll(async () => {
  await controllers.running.stop();
  await server.stop();
});

async function create(path: string, body: JsonRecord): Promise<void> {
  const { status, body: answer } = await call(client, 'POST', path, { body });
  expect(status, JSON.stringify(answer)).toBe(201);
}

async function createPod(namespace: string, name: string, ip: string): Promise<void> {
  await create(`/api/v1/namespaces/${namespace}/pods`, {
    metadata: { name, labels: { app: 'web' } },
    spec: { nodeName: 'n1', terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'i' }] },
  });
  await setStatus(namespace, name, {
    phase: 'Running',
    podIP: ip,
    conditions: [{ type: 'Ready', status: 'True' }],
  });
}

async function setStatus(namespace: string, name: string, status: JsonRecord): Promise<void> {
  const { status: code } = await call(
    client,
    'PATCH',
    `/api/v1/namespaces/${namespace}/pods/${name}/status`,
    {
      body: { status },
      contentType: 'application/merge-patch+json',
    },
  );
  expect(code).toBe(200);
}

const slicesPath = (namespace: string): string =>
  `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;

/** The addresses in all slices of a namespace, in order. */
function sliceAddresses(body: JsonRecord): string[] {
  return itemsOf(body)
    .flatMap((slice): unknown[] => (Array.isArray(slice['endpoints']) ? slice['endpoints'] : []))
    .flatMap((endpoint) =>
      isRecord(endpoint) && Array.isArray(endpoint['addresses']) ? endpoint['addresses'].map(String) : [],
    )
    .sort();
}

describe('the endpoints controllers', () => {
  it('follow Services and Pods, then rest, and rest after a restart', async () => {
    await create('/api/v1/namespaces', { metadata: { name: 'a' } });
    for (let i = 0; i < 5; i++) await createPod('a', `p${i}`, `10.1.0.${i}`);
    for (const name of ['one', 'two']) {
      await create('/api/v1/namespaces/a/services', {
        metadata: { name },
        spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
      });
    }
    await create('/api/v1/namespaces/a/services', {
      metadata: { name: 'made' },
      spec: { ports: [{ port: 80 }] },
    });
    await create('/api/v1/namespaces/a/endpoints', {
      metadata: { name: 'made' },
      subsets: [{ addresses: [{ ip: '10.9.9.9' }], ports: [{ port: 80 }] }],
    });
    await untilObject(client, slicesPath('a'), (body) => sliceAddresses(body).length === 11);
    await controllers.quiet(1500);
    await setStatus('a', 'p0', { conditions: [{ type: 'Ready', status: 'False' }] });
    await untilObject(client, '/api/v1/namespaces/a/endpoints/one', (body) =>
      JSON.stringify(body).includes('notReadyAddresses'),
    );
    await call(client, 'DELETE', '/api/v1/namespaces/a/pods/p4');
    await untilObject(client, slicesPath('a'), (body) => sliceAddresses(body).length === 9);
    await controllers.quiet(1500);
    const settled = controllers.writes.length;

    await controllers.quiet(500);
    expect(controllers.writes.slice(settled)).toEqual([]);
    await controllers.running.stop();
    controllers = startControllers(client, family);
    await controllers.quiet(1500);
    expect(controllers.writes).toEqual([]);
  });

  it('write once per object for a Service with many Pods', async () => {
    await create('/api/v1/namespaces', { metadata: { name: 'b' } });
    for (let i = 0; i < 120; i++) await createPod('b', `p${i}`, `10.2.0.${i}`);
    const createService = (name: string): Promise<void> =>
      create('/api/v1/namespaces/b/services', {
        metadata: { name },
        spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
      });
    // It shows when the controllers have heard of all Pods.
    await createService('first');
    await untilObject(client, slicesPath('b'), (body) => sliceAddresses(body).length === 120);
    await controllers.quiet(1500);
    const before = controllers.writes.length;
    await createService('web');
    await untilObject(client, slicesPath('b'), (body) => sliceAddresses(body).length === 240);
    await controllers.quiet(1500);
    expect(controllers.writes.slice(before).sort()).toEqual([
      'POST /api/v1/namespaces/b/endpoints',
      'POST /apis/discovery.k8s.io/v1/namespaces/b/endpointslices',
      'POST /apis/discovery.k8s.io/v1/namespaces/b/endpointslices',
    ]);
  });

  it('come to the right end through a storm of changes', async () => {
    await create('/api/v1/namespaces', { metadata: { name: 'c' } });
    await create('/api/v1/namespaces/c/services', {
      metadata: { name: 'web' },
      spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
    });
    for (let round = 0; round < 3; round++) {
      await Promise.all(
        Array.from({ length: 10 }, async (_, i) => {
          const name = `p${i}`;
          if (round > 0) await call(client, 'DELETE', `/api/v1/namespaces/c/pods/${name}`);
          await createPod('c', name, `10.3.${round}.${i}`);
        }),
      );
    }
    const wanted = Array.from({ length: 10 }, (_, i) => `10.3.2.${i}`);
    await untilObject(client, slicesPath('c'), (body) => sliceAddresses(body).join() === wanted.join());
    const { subsets } = await untilObject(client, '/api/v1/namespaces/c/endpoints/web', (body) =>
      wanted.every((ip) => JSON.stringify(body).includes(`"${ip}"`)),
    );
    expect(JSON.stringify(subsets)).not.toContain('10.3.1.');
  });

  // A write whose answer was lost, or one of a leader that died before it arrived: nobody expects to see it.
  describe('of writes that nobody expected', () => {
    const label = { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' };
    const subsets = [{ addresses: [{ ip: '10.4.9.9' }], ports: [{ port: 80 }] }];

    it('undo one that says what the Pods do not', async () => {
      await create('/api/v1/namespaces', { metadata: { name: 'd' } });
      await createPod('d', 'p', '10.4.0.1');
      await create('/api/v1/namespaces/d/services', {
        metadata: { name: 'web' },
        spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
      });
      const path = '/api/v1/namespaces/d/endpoints/web';
      const isRight = (body: JsonRecord): boolean => JSON.stringify(body['subsets']).includes('"10.4.0.1"');
      await untilObject(client, path, (body, status) => status === 200 && isRight(body));
      const { status } = await call(client, 'PATCH', path, {
        body: { subsets },
        contentType: 'application/merge-patch+json',
      });
      expect(status).toBe(200);
      await untilObject(client, path, isRight);
    });

    it('leave the edit of somebody else until the Service changes', async () => {
      await create('/api/v1/namespaces', { metadata: { name: 'f' } });
      await createPod('f', 'p', '10.5.0.1');
      await create('/api/v1/namespaces/f/services', {
        metadata: { name: 'web' },
        spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
      });
      const path = '/api/v1/namespaces/f/endpoints/web';
      const merge = { contentType: 'application/merge-patch+json' };
      const says = (address: string) => (body: JsonRecord) =>
        JSON.stringify(body['subsets'] ?? '').includes(address);
      await untilObject(client, path, says('10.5.0.1'));
      await controllers.quiet(1500);
      await call(client, 'PATCH', `${path}?fieldManager=kubectl-edit`, { body: { subsets }, ...merge });
      await controllers.quiet(1500);
      expect(says('10.4.9.9')((await call(client, 'GET', path)).body)).toBe(true);
      await call(client, 'PATCH', '/api/v1/namespaces/f/services/web', {
        body: { metadata: { annotations: { touched: 'yes' } } },
        ...merge,
      });
      await untilObject(client, path, says('10.5.0.1'));
    });

    it('remove what came after its Service had gone, and nothing that is made by hand', async () => {
      await create('/api/v1/namespaces', { metadata: { name: 'e' } });
      await create('/api/v1/namespaces/e/endpoints', { metadata: { name: 'mine' }, subsets });
      await create('/api/v1/namespaces/e/endpoints', { metadata: { name: 'late', labels: label }, subsets });
      await untilObject(client, '/api/v1/namespaces/e/endpoints/late', (_, status) => status === 404);
      await controllers.quiet(1500);
      const mine = await call(client, 'GET', '/api/v1/namespaces/e/endpoints/mine');
      expect(mine.status).toBe(200);
    });
  });
});
