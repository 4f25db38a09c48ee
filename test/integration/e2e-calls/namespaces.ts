import { beforeAll, expect, test } from 'vitest';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { eventually } from '../../support/api-operations.ts';
import { createTestingNamespace } from '../../support/e2e-framework.ts';
import { call } from '../../support/test-server.ts';
import type { TypedClient } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls of e2e tests of Namespaces (`apimachinery/namespace.go`), with our controllers at work; titles are theirs. */
export function namespaces(shared: () => E2eCluster): void {
  let server: TestServer;
  let client: TypedClient;
  beforeAll(() => {
    ({ server, client } = shared());
  });

  const namespaces = '/api/v1/namespaces';

  /** Deletes a namespace, waits until it is gone, and makes it anew. */
  async function replaceNamespace(name: string): Promise<void> {
    expect((await client.call('DELETE', `${namespaces}/${name}`)).status).toBe(200);
    await eventually(
      async () => client.call('GET', `${namespaces}/${name}`),
      ({ status, body }) => status === 404 && body['reason'] === 'NotFound',
    );
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    expect((await client.call('POST', namespaces, { body })).status).toBe(201);
  }

  // Our controller looks at a namespace with content again after 5 seconds: these three wait together.
  test.concurrent(
    '[sig-api-machinery] Namespaces [Serial] should ensure that all pods are removed when a namespace is deleted',
    async () => {
      const name = await createTestingNamespace(client, 'nsdeletetest');
      const pods = `${namespaces}/${name}/pods`;
      const pod = {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'test-pod' } },
        spec: { containers: [{ name: 'nginx', image: 'registry.k8s.io/pause:3.10.1' }] },
      };
      const made = await client.call('POST', pods, { body: pod });
      expect([made.status, recordAt(made.body, 'spec')['terminationGracePeriodSeconds']]).toEqual([201, 30]);
      await eventually(
        async () => client.call('GET', `${pods}/test-pod`),
        ({ body }) => textAt(body, 'status', 'phase') === 'Running',
      );
      await replaceNamespace(name);
      expect((await client.call('GET', `${pods}/test-pod`)).status).toBe(404);
    },
  );

  test.concurrent(
    '[sig-api-machinery] Namespaces [Serial] should ensure that all services are removed when a namespace is deleted',
    async () => {
      const name = await createTestingNamespace(client, 'nsdeletetest');
      const services = `${namespaces}/${name}/services`;
      const service = {
        ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'test-service' } },
        spec: { selector: { foo: 'bar', baz: 'blah' }, ports: [{ port: 80, targetPort: 80 }] },
      };
      expect((await client.call('POST', services, { body: service })).status).toBe(201);
      await replaceNamespace(name);
      expect((await client.call('GET', `${services}/test-service`)).status).toBe(404);
    },
  );

  test.concurrent('a namespace that is deleted waits for a finalizer, and takes nothing new', async () => {
    const path = `${namespaces}/${await createTestingNamespace(client, 'held')}`;
    const { body } = await client.call('GET', path);
    const finalizers = ['kubernetes', 'e2e.example.com/fakeFinalizer'];
    await client.call('PUT', `${path}/finalize`, { body: { ...body, spec: { finalizers } } });
    await client.call('DELETE', path);
    const late = await client.call('POST', `${path}/configmaps`, {
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'late' } },
    });
    expect([late.status, late.body['reason']]).toEqual([403, 'Forbidden']);
    const held = await eventually(
      async () => client.call('GET', path),
      (answer) => listAt(answer.body, 'spec', 'finalizers').length === 1,
    );
    expect(held.body).toMatchObject({
      spec: { finalizers: ['e2e.example.com/fakeFinalizer'] },
      status: { phase: 'Terminating' },
    });
    await client.call('PUT', `${path}/finalize`, { body: { ...held.body, spec: { finalizers: [] } } });
    await eventually(
      async () => client.call('GET', path),
      ({ status }) => status === 404,
    );
  });

  test('[sig-api-machinery] Namespaces [Serial] should patch a Namespace', async () => {
    const name = await createTestingNamespace(client, 'nspatchtest');
    const body = { metadata: { labels: { testLabel: 'testValue' } } };
    const patched = await client.call('PATCH', `${namespaces}/${name}`, { body, patch: 'strategic-merge' });
    expect(patched.status).toBe(200);
    const { labels } = recordAt((await client.call('GET', `${namespaces}/${name}`)).body, 'metadata');
    expect(labels).toMatchObject({ testLabel: 'testValue', 'kubernetes.io/metadata.name': name });
  });

  test('[sig-api-machinery] Namespaces [Serial] should apply changes to a namespace status', async () => {
    const name = await createTestingNamespace(client, 'namespaces');
    const path = `${namespaces}/${name}/status`;
    expect(textAt((await call(server.client, 'GET', path)).body, 'status', 'phase')).toBe('Active');

    const condition = (type: string, message: string) => ({
      ...{ type, status: 'True', lastTransitionTime: null, reason: 'E2E', message },
    });
    const patched = await client.call('PATCH', path, {
      body: {
        metadata: { annotations: { 'e2e-patched-ns-status': name } },
        status: { conditions: [condition('StatusPatch', 'Patched by an e2e test')] },
      },
      patch: 'merge',
    });
    expect(textAt(patched.body, 'metadata', 'annotations', 'e2e-patched-ns-status')).toBe(name);
    expect(listAt(patched.body, 'status', 'conditions').at(-1)).toMatchObject({
      ...{ reason: 'E2E', message: 'Patched by an e2e test' },
    });

    // read with the dynamic client, written with the typed one
    const { body } = await call(server.client, 'GET', path);
    const conditions = [
      ...listAt(body, 'status', 'conditions'),
      condition('StatusUpdate', 'Updated by an e2e test'),
    ];
    const status = { ...recordAt(body, 'status'), conditions };
    const updated = await client.call('PUT', path, { body: { ...body, status } });
    expect(updated.status).toBe(200);
    expect(listAt(updated.body, 'status', 'conditions')).toMatchObject([
      { type: 'StatusPatch' },
      { type: 'StatusUpdate', status: 'True', reason: 'E2E', message: 'Updated by an e2e test' },
    ]);
  });

  test('[sig-api-machinery] Namespaces [Serial] should apply an update to a Namespace', async () => {
    const name = await createTestingNamespace(client, 'namespaces');
    const { body } = await client.call('GET', `${namespaces}/${name}`);
    const metadata = recordAt(body, 'metadata');
    const labels = { ...recordAt(metadata, 'labels'), [name]: 'updated' };
    const updated = await client.call('PUT', `${namespaces}/${name}`, {
      body: { ...body, metadata: { ...metadata, labels } },
    });
    expect([updated.status, textAt(updated.body, 'metadata', 'labels', name)]).toEqual([200, 'updated']);
  });

  test('[sig-api-machinery] Namespaces [Serial] should apply a finalizer to a Namespace', async () => {
    const fake = 'e2e.example.com/fakeFinalizer';
    const path = `${namespaces}/${await createTestingNamespace(client, 'e2e-ns')}`;
    const { body } = await client.call('GET', path);
    expect(listAt(body, 'spec', 'finalizers')).toEqual(['kubernetes']);
    const finalizers = ['kubernetes', fake];
    const added = await client.call('PUT', `${path}/finalize`, { body: { ...body, spec: { finalizers } } });
    expect([added.status, listAt(added.body, 'spec', 'finalizers')]).toEqual([200, finalizers]);
    const read = await client.call('GET', path);
    expect(listAt(read.body, 'spec', 'finalizers')).toEqual(finalizers);
    const removed = await client.call('PUT', `${path}/finalize`, {
      body: { ...read.body, spec: { finalizers: ['kubernetes'] } },
    });
    expect([removed.status, listAt(removed.body, 'spec', 'finalizers')]).toEqual([200, ['kubernetes']]);
  });
}
