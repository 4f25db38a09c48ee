import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, numberAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { eventually } from '../../support/api-operations.ts';
import { createTestingNamespace, deleteOptions } from '../../support/e2e-framework.ts';
import { type Answer, call } from '../../support/test-server.ts';
import type { TypedClient } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls of e2e tests of StatefulSets (`apps/statefulset.go`) that need no claims and no traffic; titles are theirs. */
export function statefulSets(shared: () => E2eCluster): void {
  let server: TestServer;
  let client: TypedClient;
  let statefulSets = '';
  beforeAll(() => {
    ({ server, client } = shared());
  });
  beforeEach(async () => {
    const name = await createTestingNamespace(client, 'statefulset');
    statefulSets = `/apis/apps/v1/namespaces/${name}/statefulsets`;
    const spec = {
      selector: labels,
      ports: [{ port: 80, name: 'http', protocol: 'TCP' }],
      clusterIP: 'None',
    };
    const body = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'test', labels: { name: 'test' } },
      spec,
    };
    expect((await client.call('POST', `/api/v1/namespaces/${name}/services`, { body })).status).toBe(201);
  });

  const labels = { foo: 'bar', baz: 'blah' };
  const pause = 'registry.k8s.io/pause:3.10.1';

  /** What `NewStatefulSet` and `setHTTPProbe` of the tests make; waits until its one Pod is in its status. */
  async function createStatefulSet(name: string, podLabels: JsonRecord = labels): Promise<void> {
    const readinessProbe = {
      ...{ httpGet: { path: '/index.html', port: 80 } },
      ...{ periodSeconds: 1, successThreshold: 1, failureThreshold: 1 },
    };
    const image = 'registry.k8s.io/e2e-test-images/httpd:2.4.38-4';
    const container = { name: 'webserver', image, securityContext: {}, readinessProbe };
    const { status, body } = await client.call('POST', statefulSets, {
      body: {
        ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name } },
        spec: {
          ...{ replicas: 1, serviceName: 'test', updateStrategy: { type: 'RollingUpdate' } },
          selector: { matchLabels: podLabels },
          template: { metadata: { labels: podLabels, annotations: {} }, spec: { containers: [container] } },
        },
      },
    });
    expect([status, body['message']]).toEqual([201, undefined]);
    await readyReplicas(name, 1);
  }

  async function readyReplicas(name: string, count: number): Promise<void> {
    await eventually(
      async () => client.call('GET', `${statefulSets}/${name}`),
      ({ body }) =>
        numberAt(body, 'status', 'readyReplicas') === count &&
        numberAt(body, 'status', 'observedGeneration') >= numberAt(body, 'metadata', 'generation'),
    );
  }

  async function replicasOf(name: string): Promise<number> {
    return numberAt((await client.call('GET', `${statefulSets}/${name}`)).body, 'spec', 'replicas');
  }

  test('[sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] should have a working scale subresource', async () => {
    await createStatefulSet('ss');
    const path = `${statefulSets}/ss/scale`;
    const { body: scale } = await client.call('GET', path);
    expect([numberAt(scale, 'spec', 'replicas'), numberAt(scale, 'status', 'replicas')]).toEqual([1, 1]);
    const { resourceVersion: _, ...metadata } = recordAt(scale, 'metadata');
    const updated = await client.call('PUT', path, { body: { ...scale, metadata, spec: { replicas: 2 } } });
    expect([updated.status, numberAt(updated.body, 'spec', 'replicas')]).toEqual([200, 2]);
    expect(await replicasOf('ss')).toBe(2);
    const body = { metadata: {}, spec: { replicas: 4 }, status: { replicas: 0 } };
    expect((await client.call('PATCH', path, { body, patch: 'strategic-merge' })).status).toBe(200);
    expect(await replicasOf('ss')).toBe(4);
  });

  test('[sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] should list, patch and delete a collection of StatefulSets', async () => {
    await createStatefulSet('test-ss', { name: 'sample-pod', pod: 'httpd' });
    // the name of no field: it is dropped, and a container of another name comes first
    const template = {
      spec: { TerminationGracePeriodSeconds: 1, containers: [{ name: 'test-ss', image: pause }] },
    };
    const patched = await client.call('PATCH', `${statefulSets}/test-ss`, {
      body: { metadata: { labels: { 'test-ss': 'patched' } }, spec: { replicas: 2, template } },
      patch: 'strategic-merge',
    });
    expect([patched.status, patched.body['message']]).toEqual([200, undefined]);
    const { body } = await client.call('GET', `${statefulSets}/test-ss`);
    expect(numberAt(body, 'spec', 'replicas')).toBe(2);
    expect(textAt(listAt(body, 'spec', 'template', 'spec', 'containers')[0], 'image')).toBe(pause);
    await readyReplicas('test-ss', 2);
    const query = { labelSelector: 'test-ss=patched' };
    const found = async (): Promise<number> =>
      listAt((await client.call('GET', '/apis/apps/v1/statefulsets', { query })).body, 'items').length;
    expect(await found()).toBe(1);
    const sent = { body: deleteOptions({ gracePeriodSeconds: 1 }), query };
    expect((await client.call('DELETE', statefulSets, sent)).status).toBe(200);
    expect(await found()).toBe(0);
  });

  test('[sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] should validate Statefulset Status endpoints', async () => {
    const labelSelector = 'e2e=testing';
    const list = await client.call('GET', '/apis/apps/v1/statefulsets', { query: { labelSelector } });
    const resourceVersion = textAt(list.body, 'metadata', 'resourceVersion');
    await createStatefulSet('ss');
    const path = `${statefulSets}/ss`;
    const marked = { body: { metadata: { labels: { e2e: 'testing' } } }, patch: 'strategic-merge' } as const;
    expect((await client.call('PATCH', path, marked)).status).toBe(200);
    expect((await call(server.client, 'GET', `${path}/status`)).body).toMatchObject({ kind: 'StatefulSet' });
    const added = { type: 'StatusUpdate', status: 'True', reason: 'E2E', message: 'Set from e2e test' };
    await eventually(
      async (): Promise<Answer> => {
        const { body } = await client.call('GET', path);
        const status = {
          ...recordAt(body, 'status'),
          conditions: [...listAt(body, 'status', 'conditions'), added],
        };
        return client.call('PUT', `${path}/status`, { body: { ...body, status } });
      },
      ({ status }) => status === 200,
    );
    const seen = async (type: string): Promise<void> => {
      const query = { labelSelector, resourceVersion, allowWatchBookmarks: true };
      const watch = await client.watch(statefulSets, query);
      await watch.until(({ object }) =>
        listAt(object, 'status', 'conditions').some((condition) => textAt(condition, 'type') === type),
      );
      watch.stop();
    };
    await seen('StatusUpdate');
    const body = { status: { conditions: [{ type: 'StatusPatched', status: 'True' }] } };
    expect((await client.call('PATCH', `${path}/status`, { body, patch: 'merge' })).status).toBe(200);
    await seen('StatusPatched');
  });
}
