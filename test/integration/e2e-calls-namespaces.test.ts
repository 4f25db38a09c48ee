import { afterAll, beforeAll, expect, test } from 'vitest';
import { listAt, recordAt, textAt } from '../../src/objects/read.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { eventually, makeNamespace } from '../support/api-operations.ts';
import { call } from '../support/test-server.ts';

/** The calls of e2e tests of Namespaces and ResourceQuotas, with our controllers at work; titles are theirs. */
let server: TestServer;
beforeAll(async () => {
  server = await startApiServer({ controllers: ['*'] });
});
afterAll(async () => server.stop());

const namespaces = '/api/v1/namespaces';

test('[sig-api-machinery] Namespaces [Serial] should ensure that all services are removed when a namespace is deleted', async () => {
  const { client } = server;
  const name = await makeNamespace(server, 'nsdeletetest');
  await eventually(
    async () => call(client, 'GET', `${namespaces}/${name}/serviceaccounts/default`),
    ({ status }) => status === 200,
  );
  await call(client, 'POST', `${namespaces}/${name}/services`, {
    body: { metadata: { name: 'test-service' }, spec: { ports: [{ port: 80 }] } },
  });
  expect((await call(client, 'DELETE', `${namespaces}/${name}`)).status).toBe(200);
  const late = await call(client, 'POST', `${namespaces}/${name}/configmaps`, {
    body: { metadata: { name: 'late' } },
  });
  expect([late.status, late.body['reason']]).toEqual([403, 'Forbidden']);
  await eventually(
    async () => call(client, 'GET', `${namespaces}/${name}`),
    ({ status }) => status === 404,
  );
  await makeNamespace(server, name);
  expect((await call(client, 'GET', `${namespaces}/${name}/services/test-service`)).status).toBe(404);
});

test('[sig-api-machinery] Namespaces [Serial] should patch a Namespace', async () => {
  const name = await makeNamespace(server, 'nspatchtest');
  const { body } = await call(server.client, 'PATCH', `${namespaces}/${name}`, {
    body: { metadata: { labels: { testLabel: 'testValue' } } },
    contentType: 'application/strategic-merge-patch+json',
  });
  expect(textAt(body, 'metadata', 'labels', 'testLabel')).toBe('testValue');
  expect(textAt(body, 'metadata', 'labels', 'kubernetes.io/metadata.name')).toBe(name);
});

test('[sig-api-machinery] Namespaces [Serial] should apply changes to a namespace status', async () => {
  const { client } = server;
  const path = `${namespaces}/${await makeNamespace(server, 'nsstatustest')}/status`;
  expect((await call(client, 'GET', path)).body['status']).toEqual({ phase: 'Active' });
  const condition = (type: string): object => ({
    ...{
      type,
      status: 'True',
      reason: 'E2E',
      message: 'by an e2e test',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    },
  });
  const patched = await call(client, 'PATCH', path, {
    body: {
      metadata: { annotations: { e2e: 'patched' } },
      status: { conditions: [condition('StatusPatch')] },
    },
    contentType: 'application/merge-patch+json',
  });
  expect(listAt(patched.body, 'status', 'conditions')).toMatchObject([{ type: 'StatusPatch' }]);
  const conditions = [...listAt(patched.body, 'status', 'conditions'), condition('StatusUpdate')];
  const updated = await call(client, 'PUT', path, {
    body: { ...patched.body, status: { ...recordAt(patched.body['status']), conditions } },
  });
  expect(listAt(updated.body, 'status', 'conditions')).toHaveLength(2);
});

test('[sig-api-machinery] Namespaces [Serial] should apply an update to a Namespace', async () => {
  const { client } = server;
  const path = `${namespaces}/${await makeNamespace(server, 'nsupdatetest')}`;
  const { body } = await call(client, 'GET', path);
  const metadata = { ...recordAt(body['metadata']), labels: { updated: 'ns' } };
  const updated = await call(client, 'PUT', path, { body: { ...body, metadata } });
  expect([updated.status, textAt(updated.body, 'metadata', 'labels', 'updated')]).toEqual([200, 'ns']);
});

test('[sig-api-machinery] Namespaces [Serial] should apply a finalizer to a Namespace', async () => {
  const { client } = server;
  const path = `${namespaces}/${await makeNamespace(server, 'nsfinalizertest')}`;
  const { body } = await call(client, 'GET', path);
  const finalizers = ['kubernetes', 'e2e.example.com/fakeFinalizer'];
  const finalized = await call(client, 'PUT', `${path}/finalize`, {
    body: { ...body, spec: { finalizers } },
  });
  expect(listAt(finalized.body, 'spec', 'finalizers')).toEqual(finalizers);
  await call(client, 'DELETE', path);
  const held = await eventually(
    async () => call(client, 'GET', path),
    (answer) => listAt(answer.body, 'spec', 'finalizers').length === 1,
  );
  expect(held.body).toMatchObject({
    spec: { finalizers: ['e2e.example.com/fakeFinalizer'] },
    status: { phase: 'Terminating' },
  });
  await call(client, 'PUT', `${path}/finalize`, { body: { ...held.body, spec: { finalizers: [] } } });
  await eventually(
    async () => call(client, 'GET', path),
    ({ status }) => status === 404,
  );
});

test('[sig-api-machinery] Namespaces [Serial] should delete fast enough (90 percent of 100 namespaces in 150 seconds)', async () => {
  const { client } = server;
  const query = { labelSelector: 'e2e=fast' };
  await Promise.all(
    Array.from({ length: 100 }, async (_, n) =>
      call(client, 'POST', namespaces, {
        body: { metadata: { name: `fast-${n}`, labels: { e2e: 'fast' } } },
      }),
    ),
  );
  const { body } = await call(client, 'GET', namespaces, { query });
  expect(listAt(body, 'items')).toHaveLength(100);
  for (const item of listAt(body, 'items')) {
    await call(client, 'DELETE', `${namespaces}/${textAt(item, 'metadata', 'name')}`);
  }
  await eventually(
    async () => call(client, 'GET', namespaces, { query }),
    (answer) => listAt(answer.body, 'items').length === 0,
  );
});

test('[sig-api-machinery] ResourceQuota should create a ResourceQuota and capture the life of a service.', async () => {
  const { client } = server;
  const path = `${namespaces}/${await makeNamespace(server, 'quota')}`;
  const hard = {
    services: '2',
    'services.nodeports': '1',
    'services.loadbalancers': '1',
    resourcequotas: '1',
  };
  await call(client, 'POST', `${path}/resourcequotas`, {
    body: { metadata: { name: 'test-quota' }, spec: { hard } },
  });
  const used = async (wanted: Readonly<Record<string, string>>): Promise<unknown> =>
    eventually(
      async () => call(client, 'GET', `${path}/resourcequotas/test-quota`),
      ({ body }) =>
        Object.entries(wanted).every(([name, value]) => textAt(body, 'status', 'used', name) === value),
    );
  await used({
    services: '0',
    'services.nodeports': '0',
    'services.loadbalancers': '0',
    resourcequotas: '1',
  });
  const make = async (name: string, type: string): ReturnType<typeof call> =>
    call(client, 'POST', `${path}/services`, {
      body: {
        metadata: { name },
        spec: {
          type,
          ports: [{ port: 80 }],
          allocateLoadBalancerNodePorts: type === 'LoadBalancer' ? false : undefined,
        },
      },
    });
  expect((await make('plain', 'ClusterIP')).status).toBe(201);
  expect((await make('outside', 'NodePort')).status).toBe(201);
  await used({ services: '2', 'services.nodeports': '1' });
  const over = await make('third', 'LoadBalancer');
  expect([over.status, over.body['reason']]).toEqual([403, 'Forbidden']);
  expect(over.body['message']).toContain('exceeded quota: test-quota, requested: ');
  await call(client, 'DELETE', `${path}/services/plain`);
  await used({ services: '1' });
  const secondPort = await make('outside-too', 'NodePort');
  expect(secondPort.status).toBe(403);
  await call(client, 'DELETE', `${path}/services/outside`);
  await used({ services: '0', 'services.nodeports': '0' });
});
