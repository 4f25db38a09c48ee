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
  // As UpdateService does: get, change, put. What the type does not have stays in the body, the server takes it out.
  const changed = await change(
    name,
    type === 'ExternalName' ? { type, externalName: 'b.example' } : { type, externalName: '', ports },
  );
  expect([changed.status, textAt(changed.body, 'spec', 'type')]).toEqual([200, type]);
  expect(textAt(changed.body, 'spec', 'clusterIP') === '').toBe(type === 'ExternalName');
  const [port] = listAt(changed.body, 'spec', 'ports');
  expect(Number(recordAt(port)['nodePort'] ?? 0) > 0).toBe(type === 'NodePort');
});

/** Gets a Service and puts it with other fields of its spec; null takes one out. */
async function change(name: string, fields: object): ReturnType<typeof call> {
  const { body } = await call(server.client, 'GET', `${services}/${name}`);
  return call(server.client, 'PUT', `${services}/${name}`, {
    body: { ...body, spec: { ...recordAt(body, 'spec'), ...fields } },
  });
}

test('[sig-network] Services should be able to update service type to NodePort listening on same port number but different protocols', async () => {
  const { client } = server;
  await call(client, 'POST', services, {
    body: { metadata: { name: 'dns' }, spec: { ports: [{ port: 53, name: 'tcp-port' }] } },
  });
  const changed = await change('dns', {
    type: 'NodePort',
    ports: [
      { name: 'tcp-port', port: 53, protocol: 'TCP' },
      { name: 'udp-port', port: 53, protocol: 'UDP' },
    ],
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

test('[sig-network] Services should be updated after adding or deleting ports', async () => {
  const { client } = server;
  await call(client, 'POST', services, {
    body: {
      metadata: { name: 'ports' },
      spec: { type: 'NodePort', ports: [{ name: 'tcp-port', port: 80 }] },
    },
  });
  const [before] = listAt((await call(client, 'GET', `${services}/ports`)).body, 'spec', 'ports');
  const added = await change('ports', { ports: [before, { name: 'udp-port', port: 81, protocol: 'UDP' }] });
  const [kept, second] = listAt(added.body, 'spec', 'ports');
  expect([added.status, kept]).toEqual([200, before]);
  expect(Number(recordAt(second)['nodePort'])).toBeGreaterThanOrEqual(30000);
  const deleted = await change('ports', { ports: [before] });
  expect(listAt(deleted.body, 'spec', 'ports')).toEqual([before]);
  const freed = nodePort('takes-freed', Number(recordAt(second)['nodePort']));
  expect((await call(client, 'POST', services, { body: freed })).status).toBe(201);
});

test('[sig-network] Services should implement NodePort and HealthCheckNodePort correctly when ExternalTrafficPolicy changes', async () => {
  const { client } = server;
  const made = await call(client, 'POST', services, {
    body: {
      metadata: { name: 'policy' },
      spec: {
        ...{ type: 'LoadBalancer', loadBalancerClass: 'example.com/none', ports },
        externalTrafficPolicy: 'Local',
      },
    },
  });
  const health = Number(recordAt(made.body, 'spec')['healthCheckNodePort']);
  const given = recordAt(listAt(made.body, 'spec', 'ports')[0])['nodePort'];
  expect(health).toBeGreaterThanOrEqual(30000);
  const cluster = await change('policy', { externalTrafficPolicy: 'Cluster', healthCheckNodePort: 0 });
  expect([cluster.status, recordAt(cluster.body, 'spec')['healthCheckNodePort']]).toEqual([200, undefined]);
  const local = await change('policy', { externalTrafficPolicy: 'Local', healthCheckNodePort: health });
  expect([local.status, recordAt(local.body, 'spec')['healthCheckNodePort']]).toEqual([200, health]);
  expect(recordAt(listAt(local.body, 'spec', 'ports')[0])['nodePort']).toBe(given);
});

test('[sig-network] Services should be able to switch session affinity for NodePort service', async () => {
  await call(server.client, 'POST', services, {
    body: { metadata: { name: 'affinity' }, spec: { type: 'NodePort', sessionAffinity: 'ClientIP', ports } },
  });
  const off = await change('affinity', { sessionAffinity: 'None', sessionAffinityConfig: null });
  expect([off.status, recordAt(off.body, 'spec')['sessionAffinity']]).toEqual([200, 'None']);
  const on = await change('affinity', { sessionAffinity: 'ClientIP' });
  expect(on.status).toBe(200);
  expect(recordAt(on.body, 'spec', 'sessionAffinityConfig')).toEqual({ clientIP: { timeoutSeconds: 10800 } });
});

test.each([
  ['service-proxy-name', 'service.kubernetes.io/service-proxy-name', 'foo-bar'],
  ['headless', 'service.kubernetes.io/headless', ''],
])('[sig-network] Services should implement service.kubernetes.io/%s', async (title, label, value) => {
  const { client } = server;
  const name = `labelled-${title}`;
  const made = await call(client, 'POST', services, {
    body: { metadata: { name, labels: { [label]: value } }, spec: { ports } },
  });
  expect(textAt(made.body, 'spec', 'clusterIP')).toMatch(/^10\./);
  for (const wanted of [null, value]) {
    const { body } = await call(client, 'PATCH', `${services}/${name}`, {
      body: { metadata: { labels: { [label]: wanted } } },
      contentType: 'application/strategic-merge-patch+json',
    });
    expect(recordAt(body, 'metadata', 'labels')[label] ?? null).toBe(wanted);
    expect(textAt(body, 'spec', 'clusterIP')).toBe(textAt(made.body, 'spec', 'clusterIP'));
  }
});
