import { afterAll, beforeAll, expect, test } from 'vitest';
import { listAt, recordAt, textAt } from '../../src/objects/read.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { makeNamespace } from '../support/api-operations.ts';
import { call, watchEvents } from '../support/test-server.ts';

/** The calls of the e2e tests of Services that need no traffic; titles are theirs. */
let server: TestServer;
let services = '';

beforeAll(async () => {
  server = await startApiServer();
  services = `/api/v1/namespaces/${await makeNamespace(server, 'e2e-services')}/services`;
});
afterAll(async () => server.stop());

const ports = [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 80 }];

test('[sig-network] Services should find a service from listing all namespaces', async () => {
  const { body } = await call(server.client, 'GET', '/api/v1/services');
  const found = listAt(body, 'items').map(
    (item) => `${textAt(item, 'metadata', 'namespace')}/${textAt(item, 'metadata', 'name')}`,
  );
  expect(found).toContain('default/kubernetes');
});

test('[sig-network] Services should complete a service status lifecycle', async () => {
  const { client } = server;
  const path = `${services}/lifecycle`;
  const labels = { 'test-service-static': 'true' };
  const before = await call(client, 'GET', services);
  const events = watchEvents(
    client,
    services,
    {
      labelSelector: 'test-service-static=true',
      resourceVersion: textAt(before.body, 'metadata', 'resourceVersion'),
    },
    5,
  );
  const made = await call(client, 'POST', services, {
    body: {
      metadata: { name: 'lifecycle', labels },
      spec: { type: 'LoadBalancer', loadBalancerClass: 'example.com/internal-vip', ports },
    },
  });
  expect(made.status).toBe(201);
  const listed = await call(client, 'GET', '/api/v1/services', {
    query: { labelSelector: 'test-service-static=true' },
  });
  expect(listAt(listed.body, 'items')).toHaveLength(1);
  expect((await call(client, 'GET', `${path}/status`)).body['status']).toEqual({ loadBalancer: {} });
  const patched = await call(client, 'PATCH', `${path}/status`, {
    body: {
      metadata: { annotations: { patchedstatus: 'true' } },
      status: { loadBalancer: { ingress: [{ ip: '203.0.113.1' }] } },
    },
    contentType: 'application/merge-patch+json',
  });
  expect(textAt(patched.body, 'metadata', 'annotations', 'patchedstatus')).toBe('true');
  expect(patched.body['status']).toEqual({
    loadBalancer: { ingress: [{ ip: '203.0.113.1', ipMode: 'VIP' }] },
  });
  const condition = { type: 'StatusUpdate', status: 'True', reason: 'E2E', message: 'Set from e2e test' };
  const updated = await call(client, 'PUT', `${path}/status`, {
    body: {
      ...patched.body,
      status: {
        ...recordAt(patched.body['status']),
        conditions: [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }],
      },
    },
  });
  expect(listAt(updated.body, 'status', 'conditions')).toMatchObject([condition]);
  const labelled = await call(client, 'PATCH', path, {
    body: { metadata: { labels: { 'test-service': 'patched' } } },
    contentType: 'application/strategic-merge-patch+json',
  });
  expect(recordAt(labelled.body['metadata'])['labels']).toEqual({ ...labels, 'test-service': 'patched' });
  expect((await call(client, 'DELETE', path)).status).toBe(200);
  expect((await events).map(({ type }) => type)).toEqual([
    'ADDED',
    'MODIFIED',
    'MODIFIED',
    'MODIFIED',
    'DELETED',
  ]);
});

test('[sig-network] Services should delete a collection of services', async () => {
  const { client } = server;
  for (const name of ['one', 'two', 'three']) {
    const labels = name === 'three' ? {} : { e2e: 'collection' };
    await call(client, 'POST', services, { body: { metadata: { name, labels }, spec: { ports } } });
  }
  const query = { labelSelector: 'e2e=collection' };
  expect((await call(client, 'DELETE', services, { query })).status).toBe(200);
  const left = listAt((await call(client, 'GET', services)).body, 'items');
  expect(left.map((item) => textAt(item, 'metadata', 'name'))).toEqual(['three']);
});

const nodePort = (name: string, port: number): object => ({
  metadata: { name },
  spec: { type: 'NodePort', ports: [{ port: 80, nodePort: port }] },
});

test('[sig-network] Services should prevent NodePort collisions', async () => {
  const { client } = server;
  await call(client, 'POST', services, { body: nodePort('collision-1', 31500) });
  const second = await call(client, 'POST', services, { body: nodePort('collision-2', 31500) });
  expect(second.status).toBe(422);
  expect(second.body['message']).toMatch(/31500.*port is already allocated/);
  await call(client, 'DELETE', `${services}/collision-1`);
  expect((await call(client, 'POST', services, { body: nodePort('collision-2', 31500) })).status).toBe(201);
});

test('[sig-network] Services should check NodePort out-of-range', async () => {
  const { client } = server;
  const made = await call(client, 'POST', services, { body: nodePort('range', 31600) });
  const moved = await call(client, 'PUT', `${services}/range`, {
    body: { ...made.body, spec: { ...recordAt(made.body['spec']), ports: [{ port: 80, nodePort: 42 }] } },
  });
  expect(moved.status).toBe(422);
  expect(moved.body['message']).toMatch(/42.*port is not in the valid range/);
  await call(client, 'DELETE', `${services}/range`);
  const again = await call(client, 'POST', services, { body: nodePort('range', 42) });
  expect(again.body['message']).toMatch(/42.*port is not in the valid range/);
});

test.each([
  ['ExternalName to ClusterIP', { type: 'ExternalName', externalName: 'a.example' }, 'ClusterIP'],
  ['ExternalName to NodePort', { type: 'ExternalName', externalName: 'a.example' }, 'NodePort'],
  ['ClusterIP to ExternalName', { type: 'ClusterIP', ports }, 'ExternalName'],
  ['NodePort to ExternalName', { type: 'NodePort', ports }, 'ExternalName'],
])('[sig-network] Services should be able to change the type from %s', async (title, spec, type) => {
  const { client } = server;
  const name = title.toLowerCase().replaceAll(' ', '-');
  await call(client, 'POST', services, { body: { metadata: { name }, spec } });
  const next =
    type === 'ExternalName'
      ? { type, externalName: 'b.example', clusterIP: null, clusterIPs: null, ports: null }
      : { type, externalName: null, ports };
  const changed = await call(client, 'PATCH', `${services}/${name}`, {
    body: { spec: next },
    contentType: 'application/merge-patch+json',
  });
  expect([changed.status, textAt(changed.body, 'spec', 'type')]).toEqual([200, type]);
  expect(textAt(changed.body, 'spec', 'clusterIP') === '').toBe(type === 'ExternalName');
  const [port] = listAt(changed.body, 'spec', 'ports');
  expect(Number(recordAt(port)['nodePort'] ?? 0) > 0).toBe(type === 'NodePort');
});

test('[sig-network] Services should be able to update service type to NodePort listening on same port number but different protocols', async () => {
  const { client } = server;
  await call(client, 'POST', services, {
    body: { metadata: { name: 'dns' }, spec: { ports: [{ port: 53 }] } },
  });
  const changed = await call(client, 'PATCH', `${services}/dns`, {
    body: {
      spec: {
        type: 'NodePort',
        ports: [
          { name: 'tcp', port: 53, protocol: 'TCP' },
          { name: 'udp', port: 53, protocol: 'UDP' },
        ],
      },
    },
    contentType: 'application/merge-patch+json',
  });
  expect(changed.status).toBe(200);
  expect(
    listAt(changed.body, 'spec', 'ports').map((port) => Number(recordAt(port)['nodePort']) >= 30000),
  ).toEqual([true, true]);
});

test('[sig-network] Services should release NodePorts on delete', async () => {
  const { client } = server;
  await call(client, 'POST', services, { body: nodePort('released', 31700) });
  await call(client, 'DELETE', `${services}/released`);
  expect((await call(client, 'POST', services, { body: nodePort('taker', 31700) })).status).toBe(201);
});
