import { afterAll, beforeAll, expect, test } from 'vitest';
import { listAt, recordAt, textAt } from '../../src/objects/read.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { apiOperations, eventually, makeNamespace } from '../support/api-operations.ts';
import { call, watchEvents, watchUntil } from '../support/test-server.ts';

/** The calls of e2e tests of Endpoints and EndpointSlices, with our controllers at work; titles are theirs. */
let server: TestServer;
let namespace = '';
let core = '';
let slices = '';
beforeAll(async () => {
  server = await startApiServer({ controllers: ['*'] });
  namespace = await makeNamespace(server, 'e2e-endpoints');
  core = `/api/v1/namespaces/${namespace}`;
  slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
  await call(server.client, 'POST', '/api/v1/nodes', { body: { metadata: { name: 'node' } } });
});
afterAll(async () => server.stop());

const ports = [{ name: 'http', port: 80, targetPort: 80, protocol: 'TCP' }];

const get = async (path: string): ReturnType<typeof call> => call(server.client, 'GET', path);

const slicesOf = async (service: string, count: number): Promise<readonly unknown[]> => {
  const query = { labelSelector: `kubernetes.io/service-name=${service}` };
  const { body } = await eventually(
    async () => call(server.client, 'GET', slices, { query }),
    (answer) => listAt(answer.body, 'items').length === count,
  );
  return listAt(body, 'items');
};

async function runningPod(name: string, ip: string, labels: object): Promise<void> {
  const { client } = server;
  const container = { name: 'c', image: 'nginx', ports: [{ name: 'example-name', containerPort: 3000 }] };
  const made = await call(client, 'POST', `${core}/pods`, {
    body: { metadata: { name, labels }, spec: { nodeName: 'node', containers: [container] } },
  });
  expect(made.status).toBe(201);
  const status = {
    ...{ phase: 'Running', podIP: ip, podIPs: [{ ip }] },
    conditions: [{ type: 'Ready', status: 'True' }],
  };
  const ready = await call(client, 'PATCH', `${core}/pods/${name}/status`, {
    body: { status },
    contentType: 'application/merge-patch+json',
  });
  expect(ready.status).toBe(200);
}

test('[sig-network] Endpoints should test the lifecycle of an Endpoint', async () => {
  const { client } = server;
  const labels = { 'test-endpoint-static': 'true', 'endpointslice.kubernetes.io/skip-mirror': 'true' };
  const selector = { labelSelector: 'test-endpoint-static=true' };
  const subsets = [
    { addresses: [{ ip: '10.0.0.24' }], ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
  ];
  const start = textAt((await get(`${core}/endpoints`)).body, 'metadata', 'resourceVersion');
  const events = watchEvents(client, `${core}/endpoints`, { ...selector, resourceVersion: start }, 4);
  const made = await call(client, 'POST', `${core}/endpoints`, {
    body: { metadata: { name: 'testservice', labels }, subsets },
  });
  expect(made.status).toBe(201);
  const listed = await call(client, 'GET', '/api/v1/endpoints', { query: selector });
  expect(listAt(listed.body, 'items')).toHaveLength(1);
  const updated = await call(client, 'PUT', `${core}/endpoints/testservice`, {
    body: {
      ...made.body,
      metadata: { ...recordAt(made.body['metadata']), labels: { ...labels, updated: 'true' } },
    },
  });
  expect(textAt(updated.body, 'metadata', 'labels', 'updated')).toBe('true');
  const next = [
    { addresses: [{ ip: '10.0.0.25' }], ports: [{ name: 'http-test', port: 8080, protocol: 'TCP' }] },
  ];
  await call(client, 'PATCH', `${core}/endpoints/testservice`, {
    body: { metadata: { labels: { patched: 'true' } }, subsets: next },
    contentType: 'application/strategic-merge-patch+json',
  });
  const read = await get(`${core}/endpoints/testservice`);
  expect(read.body['subsets']).toEqual(next);
  expect((await call(client, 'DELETE', `${core}/endpoints`, { query: selector })).status).toBe(200);
  expect((await get(`${core}/endpoints/testservice`)).status).toBe(404);
  expect((await events).map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'MODIFIED', 'DELETED']);
});

test('[sig-network] EndpointsController should create and delete Endpoints for a Service with a selector that matches no pods', async () => {
  const { client } = server;
  await call(client, 'POST', `${core}/services`, {
    body: { metadata: { name: 'empty' }, spec: { selector: { 'does-not-match': 'anything' }, ports } },
  });
  const path = `${core}/endpoints/empty`;
  const { body } = await eventually(
    async () => get(path),
    ({ status }) => status === 200,
  );
  expect(listAt(body, 'subsets')).toEqual([]);
  await call(client, 'DELETE', `${core}/services/empty`);
  await eventually(
    async () => get(path),
    ({ status }) => status === 404,
  );
});

test('[sig-network] EndpointSlice should create and delete EndpointSlices for a Service with a selector that matches no pods', async () => {
  const { client } = server;
  await call(client, 'POST', `${core}/services`, {
    body: { metadata: { name: 'empty-slices' }, spec: { selector: { 'does-not-match': 'anything' }, ports } },
  });
  const [slice] = await slicesOf('empty-slices', 1);
  expect(slice).toMatchObject({ endpoints: null, ports: null, addressType: 'IPv4' });
  await call(client, 'DELETE', `${core}/services/empty-slices`);
  await slicesOf('empty-slices', 0);
});

test('[sig-network] EndpointSlice should support creating EndpointSlice API operations', async () => {
  await apiOperations(server, {
    ...{ root: '/apis/discovery.k8s.io/v1', plural: 'endpointslices', kind: 'EndpointSlice', namespace },
    objects: new Map(
      ['a', 'b', 'c'].map((name) => [
        name,
        { addressType: 'IPv4', endpoints: [{ addresses: ['1.2.3.4', '5.6.7.8'] }] },
      ]),
    ),
  });
});

test('[sig-network] EndpointSliceMirroring should mirror a custom Endpoints resource through create update and delete', async () => {
  const { client } = server;
  await call(client, 'POST', `${core}/services`, {
    body: { metadata: { name: 'mirrored' }, spec: { ports } },
  });
  const subsets = (ip: string): object[] => [
    { addresses: [{ ip }], ports: [{ name: 'example', port: 80, protocol: 'TCP' }] },
  ];
  await call(client, 'POST', `${core}/endpoints`, {
    body: { metadata: { name: 'mirrored' }, subsets: subsets('10.1.2.3') },
  });
  const [made] = await slicesOf('mirrored', 1);
  expect(made).toMatchObject({
    endpoints: [{ addresses: ['10.1.2.3'] }],
    ports: [{ name: 'example', port: 80 }],
  });
  await call(client, 'PUT', `${core}/endpoints/mirrored`, {
    body: { metadata: { name: 'mirrored' }, subsets: subsets('10.2.3.4') },
  });
  await eventually(
    async () =>
      call(client, 'GET', slices, { query: { labelSelector: 'kubernetes.io/service-name=mirrored' } }),
    ({ body }) => JSON.stringify(body).includes('10.2.3.4'),
  );
  await call(client, 'DELETE', `${core}/endpoints/mirrored`);
  await slicesOf('mirrored', 0);
});

test('[sig-network] EndpointsController should create Endpoints for Pods matching a Service', async () => {
  const { client } = server;
  await call(client, 'POST', `${core}/services`, {
    body: {
      metadata: { name: 'named' },
      spec: {
        selector: { test: 'endpoints' },
        publishNotReadyAddresses: true,
        ports: [{ name: 'example', port: 80, targetPort: 'example-name' }],
      },
    },
  });
  await runningPod('pod-1', '10.4.0.1', { test: 'endpoints' });
  await runningPod('pod-2', '10.4.0.2', { test: 'endpoints' });
  const { body } = await eventually(
    async () => get(`${core}/endpoints/named`),
    (answer) => listAt(listAt(answer.body, 'subsets')[0], 'addresses').length === 2,
  );
  expect(listAt(body, 'subsets')).toMatchObject([
    { addresses: [{ ip: '10.4.0.1' }, { ip: '10.4.0.2' }], ports: [{ name: 'example', port: 3000 }] },
  ]);
});

test('[sig-network] EndpointSlice should create Endpoints and EndpointSlices for Pods matching a Service', async () => {
  const { client } = server;
  await runningPod('slice-pod', '10.4.1.1', { test: 'slices' });
  await call(client, 'POST', `${core}/services`, {
    body: {
      metadata: { name: 'sliced' },
      spec: { selector: { test: 'slices' }, ports: [{ name: 'example', port: 80, targetPort: 3000 }] },
    },
  });
  const [slice] = await slicesOf('sliced', 1);
  const filled = await eventually(
    async () => get(`${slices}/${textAt(slice, 'metadata', 'name')}`),
    ({ body }) => listAt(body, 'endpoints').length === 1,
  );
  expect(filled.body).toMatchObject({
    endpoints: [
      { addresses: ['10.4.1.1'], conditions: { ready: true }, targetRef: { kind: 'Pod', name: 'slice-pod' } },
    ],
    ports: [{ name: 'example', port: 3000 }],
  });
  const query = { labelSelector: 'kubernetes.io/service-name=sliced' };
  expect((await call(client, 'DELETE', slices, { query })).status).toBe(200);
  const [again] = await slicesOf('sliced', 1);
  expect(textAt(again, 'metadata', 'uid')).not.toBe(textAt(filled.body, 'metadata', 'uid'));
});

test('[sig-network] Service endpoints latency should not be very high', async () => {
  const { client } = server;
  await runningPod('latency', '10.4.2.1', { test: 'latency' });
  const count = 50;
  const names = Array.from({ length: count }, (_, n) => `latency-${n}`);
  const start = textAt((await get(`${core}/endpoints`)).body, 'metadata', 'resourceVersion');
  const waiting = new Set(names);
  const filled = watchUntil(client, `${core}/endpoints`, { resourceVersion: start }, ({ object }) => {
    waiting.delete(textAt(object, 'metadata', 'name'));
    return waiting.size === 0;
  });
  await Promise.all(
    names.map(async (name) =>
      call(client, 'POST', `${core}/services`, {
        body: { metadata: { name }, spec: { selector: { test: 'latency' }, ports } },
      }),
    ),
  );
  await filled;
  expect(waiting).toEqual(new Set());
});
