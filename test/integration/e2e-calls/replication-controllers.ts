import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, numberAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { eventually } from '../../support/api-operations.ts';
import { createTestingNamespace } from '../../support/e2e-framework.ts';
import { call } from '../../support/test-server.ts';
import type { TypedClient, TypedEvent, TypedWatch } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls of e2e tests of ReplicationControllers (`apps/rc.go`); titles are theirs. */
export function replicationControllers(shared: () => E2eCluster): void {
  let server: TestServer;
  let client: TypedClient;
  let namespace = '';
  let controllers = '';
  beforeAll(() => {
    ({ server, client } = shared());
  });
  beforeEach(async () => {
    namespace = `/api/v1/namespaces/${await createTestingNamespace(client, 'replication-controller')}`;
    controllers = `${namespace}/replicationcontrollers`;
  });

  const newController = (name: string, replicas: number, spec: JsonRecord = {}): JsonRecord => ({
    ...{ apiVersion: 'v1', kind: 'ReplicationController', metadata: { name } },
    spec: {
      replicas,
      template: {
        metadata: { labels: { name } },
        spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'httpd', image: 'httpd' }] },
      },
      ...spec,
    },
  });

  async function create(body: JsonRecord): Promise<JsonRecord> {
    const made = await client.call('POST', controllers, { body });
    expect(made.status).toBe(201);
    return made.body;
  }

  /** Waits until the Pods of this `name` label are so many. */
  async function podsCreated(name: string, count: number): Promise<readonly unknown[]> {
    const { body } = await eventually(
      async () => client.call('GET', `${namespace}/pods`, { query: { labelSelector: `name=${name}` } }),
      (answer) => listAt(answer.body, 'items').length === count,
    );
    return listAt(body, 'items');
  }

  test('[sig-apps] ReplicationController should serve a basic image on each replica with a public image', async () => {
    const name = 'my-hostname-basic';
    await create(newController(name, 1));
    const [pod] = await podsCreated(name, 1);
    await eventually(
      async () => client.call('GET', `${namespace}/pods/${textAt(pod, 'metadata', 'name')}`),
      ({ body }) => textAt(body, 'status', 'phase') === 'Running',
    );
  });

  test('[sig-apps] ReplicationController should surface a failure condition on a common issue like exceeded quota', async () => {
    const name = 'condition-test';
    await client.call('POST', `${namespace}/resourcequotas`, {
      body: {
        ...{ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name } },
        spec: { hard: { pods: '2' } },
      },
    });
    await eventually(
      async () => client.call('GET', `${namespace}/resourcequotas/${name}`),
      ({ body }) => textAt(body, 'status', 'hard', 'pods') === '2',
    );
    const made = await create(newController(name, 3));
    const condition = (body: JsonRecord): JsonRecord | undefined => {
      const found = listAt(body, 'status', 'conditions').find(
        (each) => textAt(each, 'type') === 'ReplicaFailure',
      );
      return found === undefined ? undefined : recordAt(found);
    };
    const observed = (body: JsonRecord, generation: number): boolean =>
      numberAt(body, 'status', 'observedGeneration') >= generation;
    const failed = await eventually(
      async () => client.call('GET', `${controllers}/${name}`),
      ({ body }) => observed(body, numberAt(made, 'metadata', 'generation')) && condition(body) !== undefined,
    );
    expect(condition(failed.body)).toMatchObject({ status: 'True', reason: 'FailedCreate' });
    const scaled = await eventually(
      async () => {
        const { body } = await client.call('GET', `${controllers}/${name}`);
        return client.call('PUT', `${controllers}/${name}`, {
          body: { ...body, spec: { ...recordAt(body, 'spec'), replicas: 2 } },
        });
      },
      ({ status }) => status === 200,
    );
    const generation = numberAt(scaled.body, 'metadata', 'generation');
    await eventually(
      async () => client.call('GET', `${controllers}/${name}`),
      ({ body }) => observed(body, generation) && condition(body) === undefined,
    );
  });

  test('[sig-apps] ReplicationController should adopt matching pods on creation', async () => {
    const name = 'pod-adoption';
    await client.call('POST', `${namespace}/pods`, {
      body: {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, labels: { name } } },
        spec: { containers: [{ name, image: 'httpd' }] },
      },
    });
    await eventually(
      async () => client.call('GET', `${namespace}/pods/${name}`),
      ({ body }) => textAt(body, 'status', 'phase') === 'Running',
    );
    const made = await create(newController(name, 1, { selector: { name } }));
    const { body } = await eventually(
      async () => client.call('GET', `${namespace}/pods/${name}`),
      (answer) => listAt(answer.body, 'metadata', 'ownerReferences').length > 0,
    );
    expect(listAt(body, 'metadata', 'ownerReferences')).toEqual([
      {
        ...{ apiVersion: 'v1', kind: 'ReplicationController', name, uid: textAt(made, 'metadata', 'uid') },
        ...{ controller: true, blockOwnerDeletion: true },
      },
    ]);
  });

  test('[sig-apps] ReplicationController should release no longer matching pods', async () => {
    const name = 'pod-release';
    await create(newController(name, 1, { selector: { name } }));
    const [pod] = await podsCreated(name, 1);
    const path = `${namespace}/pods/${textAt(pod, 'metadata', 'name')}`;
    await eventually(
      async () => {
        const { body } = await client.call('GET', path);
        const metadata = { ...recordAt(body, 'metadata'), labels: { name: 'not-matching-name' } };
        return client.call('PUT', path, { body: { ...body, metadata } });
      },
      ({ status }) => status === 200,
    );
    await eventually(
      async () => client.call('GET', path),
      ({ body }) => listAt(body, 'metadata', 'ownerReferences').length === 0,
    );
  });

  const ofController =
    (satisfied: (object: JsonRecord) => boolean) =>
    (event: TypedEvent): boolean =>
      satisfied(event.object);
  const hasReplicas =
    (count: number) =>
    ({ status }: JsonRecord): boolean =>
      numberAt(status, 'replicas') === count && numberAt(status, 'readyReplicas') === count;
  const modified = async (watch: TypedWatch): Promise<TypedEvent> =>
    watch.until(({ type }) => type === 'MODIFIED');

  test('[sig-apps] ReplicationController should test the lifecycle of a ReplicationController', async () => {
    const name = 'rc-test';
    const path = `${controllers}/${name}`;
    const labelSelector = 'test-rc-static=true';
    const labels = { 'test-rc-static': 'true' };
    const { body: list } = await client.call('GET', controllers, { query: { labelSelector } });
    const watch = await client.watch(controllers, {
      ...{ labelSelector, resourceVersion: textAt(list, 'metadata', 'resourceVersion') },
      allowWatchBookmarks: true,
    });
    await create({
      ...{ apiVersion: 'v1', kind: 'ReplicationController', metadata: { name, labels } },
      spec: {
        ...{ replicas: 1, selector: labels },
        template: { metadata: { name, labels }, spec: { containers: [{ name, image: 'nginx' }] } },
      },
    });
    expect((await watch.next()).type).toBe('ADDED');
    await watch.until(ofController(hasReplicas(1)));

    // what Go's JSON of a ReplicationController with labels says
    const patched = await client.call('PATCH', path, {
      body: {
        metadata: { creationTimestamp: null, labels: { 'test-rc': 'patched' } },
        ...{ spec: {}, status: { replicas: 0 } },
      },
      patch: 'strategic-merge',
    });
    expect([patched.status, textAt(patched.body, 'metadata', 'labels', 'test-rc')]).toEqual([200, 'patched']);
    expect(numberAt(patched.body, 'status', 'replicas')).toBe(1);
    await modified(watch);

    const status = await client.call('PATCH', `${path}/status`, {
      body: { status: { readyReplicas: 0, availableReplicas: 0 } },
      patch: 'strategic-merge',
    });
    expect([status.status, numberAt(status.body, 'status', 'readyReplicas')]).toEqual([200, 0]);
    await modified(watch);
    await watch.until(ofController((object) => numberAt(object, 'status', 'replicas') === 1));
    const read = await call(server.client, 'GET', `${path}/status`);
    expect(numberAt(read.body, 'status', 'replicas')).toBe(1);

    const scale = await client.call('PATCH', `${path}/scale`, {
      body: { metadata: { creationTimestamp: null }, spec: { replicas: 2 }, status: { replicas: 0 } },
      patch: 'strategic-merge',
    });
    expect([scale.status, scale.body['kind'], numberAt(scale.body, 'spec', 'replicas')]).toEqual([
      200,
      'Scale',
      2,
    ]);
    await modified(watch);
    await watch.until(ofController(hasReplicas(2)));

    await eventually(
      async () => {
        const { body } = await client.call('GET', path);
        expect(textAt(body, 'metadata', 'labels', 'test-rc')).toBe('patched');
        return client.call('PUT', `${path}/status`, {
          body: { ...body, status: { ...recordAt(body, 'status'), availableReplicas: 1, readyReplicas: 1 } },
        });
      },
      (answer) => answer.status === 200,
    );
    await modified(watch);
    const all = await client.call('GET', '/api/v1/replicationcontrollers', { query: { labelSelector } });
    expect(listAt(all.body, 'items')).toMatchObject([
      { metadata: { name, labels: { ...labels, 'test-rc': 'patched' } } },
    ]);
    expect((await client.call('DELETE', controllers, { query: { labelSelector } })).status).toBe(200);
    await watch.until(({ type }) => type === 'DELETED');
    watch.stop();
  });

  test('[sig-apps] ReplicationController should get and update a ReplicationController scale', async () => {
    const name = 'e2e-rc';
    const replicasAre = async (count: number): Promise<unknown> =>
      eventually(
        async () => client.call('GET', `${controllers}/${name}`),
        ({ body }) => numberAt(body, 'status', 'replicas') === count,
      );
    await create(newController(name, 1));
    await replicasAre(1);
    const { body } = await client.call('GET', `${controllers}/${name}/scale`);
    expect(body).toMatchObject({
      ...{ apiVersion: 'autoscaling/v1', kind: 'Scale', spec: { replicas: 1 } },
      status: { replicas: 1, selector: `name=${name}` },
    });
    const { resourceVersion: _unconditional, ...metadata } = recordAt(body, 'metadata');
    const updated = await client.call('PUT', `${controllers}/${name}/scale`, {
      body: { ...body, metadata, spec: { replicas: 2 } },
    });
    expect([updated.status, numberAt(updated.body, 'spec', 'replicas')]).toEqual([200, 2]);
    await replicasAre(2);
  });
}
