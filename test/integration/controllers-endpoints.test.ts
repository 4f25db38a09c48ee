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

  it('tell which write was refused, and why', async () => {
    await create('/api/v1/namespaces', { metadata: { name: 'refused' } });
    await create('/api/v1/namespaces/refused/resourcequotas', {
      metadata: { name: 'none' },
      spec: { hard: { 'count/endpointslices.discovery.k8s.io': '0' } },
    });
    await create('/api/v1/namespaces/refused/services', {
      metadata: { name: 'web' },
      spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
    });
    const reason =
      'Error updating Endpoint Slices for Service refused/web: failed to create EndpointSlice for Service refused/web: endpointslices.discovery.k8s.io ';
    await untilObject(client, '/api/v1/namespaces/refused/events', (body) =>
      itemsOf(body).some(({ message }) => String(message).startsWith(reason)),
    );
    await call(client, 'DELETE', '/api/v1/namespaces/refused/services/web');
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

  // A write whose answer was lost, or one of a leader that died before it arrived: no expectation waits for it.
  describe('of writes without an expectation', () => {
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

    it('leave the edit of another client until the Service changes', async () => {
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

it('the endpoints controller removes what was left while there was no leader, though its cache saw it', async () => {
  const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases';
  const path = '/api/v1/namespaces/default/endpoints';
  const standby = await startApiServer();
  const send = async (method: string, to: string, body?: JsonRecord): Promise<number> =>
    (await call(standby.client, method, to, { body })).status;
  await send('POST', leases, {
    metadata: { name: 'endpoints' },
    spec: { holderIdentity: 'dead', leaseDurationSeconds: 3600, renewTime: '2026-01-01T00:00:00.000000Z' },
  });
  const heard: string[] = [];
  const transport: Transport = {
    server: standby.client.server,
    request: (method, to, options) => standby.client.request(method, to, options),
    stream: async (to, options) => {
      const stream = await standby.client.stream(to, options);
      async function* chunks(): AsyncGenerator<Buffer> {
        for await (const chunk of stream.chunks) {
          yield chunk;
          heard.push(chunk.toString());
        }
      }
      return { ...stream, chunks: chunks() };
    },
    close: () => Promise.resolve(),
  };
  const { running } = startControllers(transport, ['endpoints-controller'], {
    namespace: 'kube-system',
    name: 'endpoints',
    identity: 'next',
    leaseDurationMs: 60_000,
    renewDeadlineMs: 40_000,
    retryPeriodMs: 100,
  });
  try {
    await expect.poll(() => running.healthChecks().every((check) => check.check() === undefined)).toBe(true);
    await send('POST', path, { metadata: { name: 'left' }, subsets: [{ addresses: [{ ip: '10.9.0.1' }] }] });
    await expect.poll(() => heard.some((text) => text.includes('"left"'))).toBe(true);
    await send('DELETE', `${leases}/endpoints`);
    await expect.poll(() => send('GET', `${path}/left`)).toBe(404);
  } finally {
    await running.stop();
    await standby.stop();
  }
});

it('the endpoints controller removes what it has not heard of when its Service goes', async () => {
  // A server that leaves allocation to others leaves the Endpoints of Services that go to others, too.
  const deaf = await startApiServer({ allocation: 'controller' });
  const held = Promise.withResolvers<undefined>();
  let isHeld = false;
  const late: Transport = {
    server: deaf.client.server,
    request: (method, path, options) => deaf.client.request(method, path, options),
    stream: async (path, options) => {
      const stream = await deaf.client.stream(path, options);
      async function* chunks(): AsyncGenerator<Buffer> {
        for await (const chunk of stream.chunks) {
          if (isHeld && path.endsWith('/endpoints')) await held.promise;
          yield chunk;
        }
      }
      return { ...stream, chunks: chunks() };
    },
    close: () => Promise.resolve(),
  };
  const { running } = startControllers(late, ['endpoints-controller']);
  try {
    const services = '/api/v1/namespaces/default/services';
    const path = '/api/v1/namespaces/default/endpoints';
    const spec = { ports: [{ port: 80 }] };
    const send = async (method: string, to: string, body?: JsonRecord): Promise<number> =>
      (await call(deaf.client, method, to, { body })).status;
    await send('POST', services, { metadata: { name: 'first' }, spec: { ...spec, selector: { app: 'a' } } });
    await untilObject(deaf.client, `${path}/first`, (_, status) => status === 200);
    isHeld = true;
    await send('POST', services, { metadata: { name: 'hand' }, spec });
    await send('POST', path, { metadata: { name: 'hand' }, subsets: [{ addresses: [{ ip: '10.9.0.1' }] }] });
    await send('DELETE', `${services}/hand`);
    await expect.poll(() => send('GET', `${path}/hand`)).toBe(404);
  } finally {
    held.resolve(undefined);
    await running.stop();
    await deaf.stop();
  }
});
