import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Transport } from '../../src/client/transport.ts';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';
import { startControllers, untilObject, type WatchedControllers } from '../support/with-controllers.ts';

let server: TestServer;
let client: Transport;
let controllers: WatchedControllers;

beforeAll(async () => {
  server = await startApiServer();
  client = server.client;
  controllers = startControllers(client, ['*']);
});

afterAll(async () => {
  await controllers.running.stop();
  await server.stop();
});

async function create(path: string, body: JsonRecord): Promise<JsonRecord> {
  const { status, body: answer } = await call(client, 'POST', path, { body });
  expect(status, JSON.stringify(answer)).toBe(201);
  return answer;
}

async function merge(path: string, body: JsonRecord): Promise<void> {
  const { status } = await call(client, 'PATCH', path, { body, contentType: 'application/merge-patch+json' });
  expect(status).toBe(200);
}

describe('a namespace', () => {
  it('keeps another description of the root CA, and restores a missing one', async () => {
    const described = (text: string): JsonRecord => ({
      metadata: { annotations: { 'kubernetes.io/description': text } },
    });
    const pathIn = (namespace: string): string =>
      `/api/v1/namespaces/${namespace}/configmaps/kube-root-ca.crt`;
    for (const name of ['described', 'described-later']) {
      await create('/api/v1/namespaces', { metadata: { name } });
      await untilObject(client, pathIn(name), (_, status) => status === 200);
      if (name === 'described') await merge(pathIn(name), described('ours'));
    }
    const { body } = await call(client, 'GET', pathIn('described'));
    expect(JSON.stringify(body)).toContain('"ours"');
    await merge(pathIn('described'), described(''));
    await untilObject(client, pathIn('described'), (map) =>
      JSON.stringify(map).includes('Contains a CA bundle'),
    );
  });

  it('is emptied when it is deleted, and tells what holds it', async () => {
    await create('/api/v1/namespaces', { metadata: { name: 'leaving' } });
    await create('/api/v1/namespaces/leaving/configmaps', {
      metadata: { name: 'held', finalizers: ['example.com/hold'] },
    });
    await create('/api/v1/namespaces/leaving/services', {
      metadata: { name: 'web' },
      spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
    });
    await call(client, 'DELETE', '/api/v1/namespaces/leaving');
    const terminating = await untilObject(client, '/api/v1/namespaces/leaving', (body) =>
      JSON.stringify(body).includes('example.com/hold in 1 resource instances'),
    );
    expect(JSON.stringify(terminating)).toContain('configmaps. has 1 resource instances');
    const { body: services } = await call(client, 'GET', '/api/v1/namespaces/leaving/services');
    expect(services['items']).toEqual([]);
    await merge('/api/v1/namespaces/leaving/configmaps/held', { metadata: { finalizers: null } });
    await untilObject(client, '/api/v1/namespaces/leaving', (_, status) => status === 404);
  });
});

describe('the garbage collector', () => {
  const path = '/api/v1/namespaces/default/configmaps';
  /** A ConfigMap that names another object as its owner. */
  const owned = (owner: JsonRecord, name: string, differing: JsonRecord = {}): JsonRecord => {
    const { apiVersion, kind, metadata } = owner;
    const identity = isRecord(metadata) ? { name: metadata['name'], uid: metadata['uid'] } : {};
    return { metadata: { name, ownerReferences: [{ apiVersion, kind, ...identity, ...differing }] } };
  };

  it('deletes what names an owner that never was, by uid', async () => {
    const owner = await create(path, { metadata: { name: 'real' } });
    await create(path, owned(owner, 'mistaken', { uid: 'someone-else' }));
    await untilObject(client, `${path}/mistaken`, (_, status) => status === 404);
    expect((await call(client, 'GET', `${path}/real`)).status).toBe(200);
  });

  it.each([
    ['name', { name: 'nobody' }],
    ['kind', { kind: 'Secret' }],
    ['group', { apiVersion: 'apps/v1', kind: 'Deployment' }],
  ])('deletes what names the uid of another object: another %s', async (what, differing) => {
    const owner = await create(path, { metadata: { name: `real-${what}` } });
    await create(path, owned(owner, `wrong-${what}`, differing));
    await create(path, owned(owner, `right-${what}`));
    await untilObject(client, `${path}/wrong-${what}`, (_, status) => status === 404);
    expect((await call(client, 'GET', `${path}/right-${what}`)).status).toBe(200);
  });

  it('tells of owners in other namespaces, and deletes what has no other owner', async () => {
    const owner = await create(path, { metadata: { name: 'here' } });
    const elsewhere = '/api/v1/namespaces/kube-public/configmaps';
    await create(elsewhere, owned(owner, 'over-there'));
    await untilObject(client, `${elsewhere}/over-there`, (_, status) => status === 404);
    await create('/apis/rbac.authorization.k8s.io/v1/clusterroles', owned(owner, 'without-namespace'));
    const eventsPath = '/api/v1/events?fieldSelector=reason%3DOwnerRefInvalidNamespace';
    await untilObject(client, eventsPath, (body) => JSON.stringify(body).includes('without-namespace'));
    const { body } = await call(client, 'GET', eventsPath);
    const uid = isRecord(owner) && isRecord(owner['metadata']) ? String(owner['metadata']['uid']) : '';
    expect(JSON.stringify(body)).toContain(
      JSON.stringify(
        `ownerRef [v1/ConfigMap, namespace: kube-public, name: here, uid: ${uid}] does not exist in namespace "kube-public"`,
      ).slice(1, -1),
    );
    // What has no namespace may not have such an owner: nothing can be said of it, so nothing is done.
    const role = '/apis/rbac.authorization.k8s.io/v1/clusterroles/without-namespace';
    expect((await call(client, 'GET', role)).status).toBe(200);
  });

  it('deletes nothing for an owner of a version that is not served', async () => {
    const owner = await create(path, { metadata: { name: 'old-owner' } });
    await create(path, owned(owner, 'of-an-old-version', { apiVersion: 'v0', name: 'gone' }));
    await create(path, owned(owner, 'without-owner', { name: 'gone' }));
    await untilObject(client, `${path}/without-owner`, (_, status) => status === 404);
    expect((await call(client, 'GET', `${path}/of-an-old-version`)).status).toBe(200);
  });

  it('deletes dependents that do not block their owner while it waits for others', async () => {
    const owner = await create(path, { metadata: { name: 'slow' } });
    await create(path, owned(owner, 'held', { blockOwnerDeletion: true }));
    await merge(`${path}/held`, { metadata: { finalizers: ['example.com/hold'] } });
    await create(path, owned(owner, 'free'));
    const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
    await create(leases, owned(owner, 'lease'));
    await call(client, 'DELETE', `${path}/slow?propagationPolicy=Foreground`);
    await untilObject(client, `${path}/free`, (_, status) => status === 404);
    await untilObject(client, `${leases}/lease`, (_, status) => status === 404);
    expect((await call(client, 'GET', `${path}/slow`)).status).toBe(200);
    await merge(`${path}/held`, { metadata: { finalizers: null } });
    await untilObject(client, `${path}/slow`, (_, status) => status === 404);
  });

  it('takes the slices of a deleted Service', async () => {
    await create('/api/v1/namespaces/default/services', {
      metadata: { name: 'short' },
      spec: { selector: { app: 'none' }, ports: [{ port: 80 }] },
    });
    const slices =
      '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name%3Dshort';
    await untilObject(client, slices, (body) => JSON.stringify(body).includes('short-'));
    await call(client, 'DELETE', '/api/v1/namespaces/default/services/short');
    await untilObject(client, slices, (body) => !JSON.stringify(body).includes('short-'));
  });
});

describe('a ServiceCIDR', () => {
  it('gets a finalizer and a condition, and goes when no address needs it', async () => {
    const path = '/apis/networking.k8s.io/v1/servicecidrs';
    await create(path, { metadata: { name: 'more' }, spec: { cidrs: ['10.210.0.0/24'] } });
    await untilObject(client, `${path}/more`, (body) =>
      JSON.stringify(body).includes('Kubernetes Service CIDR is ready'),
    );
    const { body } = await call(client, 'GET', `${path}/more`);
    expect(JSON.stringify(body)).toContain('networking.k8s.io/service-cidr-finalizer');
    await create('/api/v1/namespaces/default/services', {
      metadata: { name: 'in-more' },
      spec: { clusterIP: '10.210.0.9', ports: [{ port: 80 }] },
    });
    await call(client, 'DELETE', `${path}/more`);
    await untilObject(client, `${path}/more`, (answer) =>
      JSON.stringify(answer).includes('"reason":"Terminating"'),
    );
    await call(client, 'DELETE', '/api/v1/namespaces/default/services/in-more');
    await untilObject(client, `${path}/more`, (_, status) => status === 404);
  });
});
