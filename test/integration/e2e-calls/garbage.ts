import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, numberAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { eventually } from '../../support/api-operations.ts';
import { createTestingNamespace, deleteOptions } from '../../support/e2e-framework.ts';
import { call } from '../../support/test-server.ts';
import type { TypedClient } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/**
 * The calls of e2e tests of garbage collection (`apimachinery/garbage_collector.go`); titles are theirs. They wait for
 * half a minute to see that nothing is deleted by mistake; here an unrelated object that is collected later shows that
 * the collector has been at work.
 */
export function garbage(shared: () => E2eCluster): void {
  let server: TestServer;
  let client: TypedClient;
  let namespace = '';
  let apps = '';
  beforeAll(() => {
    ({ server, client } = shared());
  });
  beforeEach(async () => {
    const name = await createTestingNamespace(client, 'gc');
    namespace = `/api/v1/namespaces/${name}`;
    apps = `/apis/apps/v1/namespaces/${name}`;
  });

  const template = (labels: JsonRecord): JsonRecord => ({
    metadata: { labels },
    spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'nginx', image: 'nginx' }] },
  });

  async function create(path: string, body: JsonRecord): Promise<JsonRecord> {
    const made = await client.call('POST', path, { body });
    expect(made.status).toBe(201);
    return made.body;
  }

  async function newController(name: string, replicas: number, labels: JsonRecord): Promise<JsonRecord> {
    return create(`${namespace}/replicationcontrollers`, {
      ...{ apiVersion: 'v1', kind: 'ReplicationController', metadata: { name } },
      spec: { replicas, selector: labels, template: template(labels) },
    });
  }

  /** Waits until `status.replicas` is what was asked for. */
  async function untilReplicas(controller: JsonRecord): Promise<void> {
    await eventually(
      async () => client.call('GET', `${namespace}/replicationcontrollers/${nameOf(controller)}`),
      ({ body }) => numberAt(body, 'status', 'replicas') === numberAt(controller, 'spec', 'replicas'),
    );
  }

  /** Deletes with the uid as a precondition, as all these tests do. */
  async function remove(path: string, object: JsonRecord, options: JsonRecord): Promise<void> {
    const body = deleteOptions({ ...options, preconditions: { uid: textAt(object, 'metadata', 'uid') } });
    expect((await client.call('DELETE', `${path}/${nameOf(object)}`, { body })).status).toBe(200);
  }

  const nameOf = (object: unknown): string => textAt(object, 'metadata', 'name');
  const items = async (path: string): Promise<readonly unknown[]> =>
    listAt((await client.call('GET', path)).body, 'items');

  async function untilGone(path: string): Promise<void> {
    await eventually(
      async () => client.call('GET', path),
      ({ status }) => status === 404,
    );
  }

  async function untilCount(path: string, count: number): Promise<void> {
    await eventually(
      async () => client.call('GET', path),
      ({ body }) => listAt(body, 'items').length === count,
    );
  }

  /** Returns when an object whose owner never was has been collected. */
  async function collectorHasWorked(): Promise<void> {
    const path = `${namespace}/configmaps`;
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'never', uid: crypto.randomUUID() };
    await create(path, {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'witness', ownerReferences: [owner] } },
    });
    await untilGone(`${path}/witness`);
  }

  test('[sig-api-machinery] Garbage collector should delete pods created by rc when not orphaning', async () => {
    const controller = await newController('simpletest.rc', 2, { gctest: 'delete_pods' });
    await eventually(
      async () => client.call('GET', `${namespace}/pods`),
      ({ body }) => listAt(body, 'items').length > 0,
    );
    await remove(`${namespace}/replicationcontrollers`, controller, { propagationPolicy: 'Background' });
    await untilCount(`${namespace}/replicationcontrollers`, 0);
    await untilCount(`${namespace}/pods`, 0);
  });

  test('[sig-api-machinery] Garbage collector should orphan pods created by rc if delete options say so', async () => {
    const controller = await newController('simpletest.rc', 10, { gctest: 'orphan_pods' });
    await untilReplicas(controller);
    await remove(`${namespace}/replicationcontrollers`, controller, { propagationPolicy: 'Orphan' });
    await untilCount(`${namespace}/replicationcontrollers`, 0);
    await collectorHasWorked();
    expect(await items(`${namespace}/pods`)).toHaveLength(10);
  });

  test('[sig-api-machinery] Garbage collector should orphan pods created by rc if deleteOptions.OrphanDependents is nil', async () => {
    const controller = await newController('simpletest.rc', 2, { gctest: 'orphan_pods_nil_option' });
    await untilReplicas(controller);
    await remove(`${namespace}/replicationcontrollers`, controller, {});
    await untilCount(`${namespace}/replicationcontrollers`, 0);
    await collectorHasWorked();
    expect(await items(`${namespace}/pods`)).toHaveLength(2);
  });

  async function newDeployment(labels: JsonRecord): Promise<JsonRecord> {
    const made = await create(`${apps}/deployments`, {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'simpletest.deployment' } },
      spec: {
        ...{ replicas: 2, selector: { matchLabels: labels }, strategy: { type: 'RollingUpdate' } },
        template: template(labels),
      },
    });
    await untilCount(`${apps}/replicasets`, 1);
    return made;
  }

  test('[sig-api-machinery] Garbage collector should delete RS created by deployment when not orphaning', async () => {
    const deployment = await newDeployment({ gctest: 'delete_rs' });
    await remove(`${apps}/deployments`, deployment, { propagationPolicy: 'Background' });
    for (const path of [`${apps}/deployments`, `${apps}/replicasets`, `${namespace}/pods`])
      await untilCount(path, 0);
  });

  test('[sig-api-machinery] Garbage collector should orphan RS created by deployment when deleteOptions.PropagationPolicy is Orphan', async () => {
    const deployment = await newDeployment({ gctest: 'orphan_rs' });
    await untilCount(`${namespace}/pods`, 2);
    await remove(`${apps}/deployments`, deployment, { propagationPolicy: 'Orphan' });
    await untilCount(`${apps}/deployments`, 0);
    await collectorHasWorked();
    const [set, ...others] = await items(`${apps}/replicasets`);
    expect([listAt(set, 'metadata', 'ownerReferences'), others]).toEqual([[], []]);
    expect(await items(`${namespace}/pods`)).toHaveLength(2);
  });

  test('[sig-api-machinery] Garbage collector should keep the rc around until all its pods are deleted if the deleteOptions says so', async () => {
    const controller = await newController('simpletest.rc', 10, { gctest: 'delete_pods_foreground' });
    await untilReplicas(controller);
    await remove(`${namespace}/replicationcontrollers`, controller, { propagationPolicy: 'Foreground' });
    await untilGone(`${namespace}/replicationcontrollers/simpletest.rc`);
    expect(await items(`${namespace}/pods`)).toEqual([]);
  });

  test("[sig-api-machinery] Garbage collector should not delete dependents that have both valid owner and owner that's waiting for dependents to be deleted", async () => {
    const going = await newController('simpletest-rc-to-be-deleted', 10, { gctest_d: 'pending_owner' });
    const staying = await newController('simpletest-rc-to-stay', 0, { gctest_s: 'valid_owner' });
    await untilReplicas(going);
    const uid = textAt(staying, 'metadata', 'uid');
    const owner = { apiVersion: 'v1', kind: 'ReplicationController', name: nameOf(staying), uid };
    for (const pod of (await items(`${namespace}/pods`)).slice(0, 5)) {
      const patched = await client.call('PATCH', `${namespace}/pods/${nameOf(pod)}`, {
        ...{ body: { metadata: { ownerReferences: [owner] } }, patch: 'strategic-merge' },
      });
      expect(listAt(patched.body, 'metadata', 'ownerReferences')).toHaveLength(2);
    }
    await remove(`${namespace}/replicationcontrollers`, going, { propagationPolicy: 'Foreground' });
    await untilGone(`${namespace}/replicationcontrollers/${nameOf(going)}`);
    const pods = await items(`${namespace}/pods`);
    expect(pods).toHaveLength(5);
    for (const pod of pods) {
      expect(textAt(pod, 'metadata', 'deletionTimestamp')).toBe('');
      expect(listAt(pod, 'metadata', 'ownerReferences')).toEqual([owner]);
    }
  });

  test('[sig-api-machinery] Garbage collector should not be blocked by dependency circle', async () => {
    const pods: JsonRecord[] = [];
    for (const name of ['pod1', 'pod2', 'pod3']) {
      pods.push(
        await create(`${namespace}/pods`, {
          ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name } },
          spec: template({})['spec'],
        }),
      );
    }
    for (const [n, pod] of pods.entries()) {
      const ownerReferences = [
        {
          ...{ apiVersion: 'v1', kind: 'Pod', name: nameOf(pods.at(n - 1)) },
          ...{ uid: textAt(pods.at(n - 1), 'metadata', 'uid'), controller: true, blockOwnerDeletion: true },
        },
      ];
      const patched = await client.call('PATCH', `${namespace}/pods/${nameOf(pod)}`, {
        ...{ body: { metadata: { ownerReferences } }, patch: 'strategic-merge' },
      });
      expect(patched.status).toBe(200);
    }
    await remove(`${namespace}/pods`, pods[0] ?? {}, { propagationPolicy: 'Foreground' });
    await untilCount(`${namespace}/pods`, 0);
  });

  /** A definition of cluster-scoped resources (`NewRandomNameV1CustomResourceDefinition`); returns their path. */
  async function newDefinition(word: string): Promise<string> {
    const names = { plural: `${word}s`, singular: word, kind: word, listKind: `${word}List` };
    const group = 'mygroup.example.com';
    const openAPIV3Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    const versions = [{ name: 'v1beta1', served: true, storage: true, schema: { openAPIV3Schema } }];
    await create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
      ...{ metadata: { name: `${word}s.${group}` }, spec: { group, names, versions, scope: 'Cluster' } },
    });
    const path = `/apis/${group}/v1beta1/${word}s`;
    await untilServed(path);
    return path;
  }

  async function untilServed(path: string): Promise<void> {
    await eventually(
      async () => call(server.client, 'GET', path),
      ({ status }) => status === 200,
    );
  }

  /** An owner and its dependent, as the dynamic client makes them. */
  async function ownerAndDependent(path: string, word: string): Promise<void> {
    const type = { apiVersion: 'mygroup.example.com/v1beta1', kind: word };
    const owner = await call(server.client, 'POST', path, { body: { ...type, metadata: { name: 'owner' } } });
    expect(owner.status).toBe(201);
    const ownerReferences = [{ ...type, name: 'owner', uid: textAt(owner.body, 'metadata', 'uid') }];
    const dependent = await call(server.client, 'POST', path, {
      body: { ...type, metadata: { name: 'dependent', ownerReferences } },
    });
    expect(dependent.status).toBe(201);
  }

  test('[sig-api-machinery] Garbage collector should support cascading deletion of custom resources', async () => {
    const path = await newDefinition('cascade');
    await ownerAndDependent(path, 'cascade');
    await call(server.client, 'DELETE', `${path}/owner`, { body: { propagationPolicy: 'Background' } });
    const canary = {
      apiVersion: 'mygroup.example.com/v1beta1',
      kind: 'cascade',
      metadata: { name: 'canary' },
    };
    await call(server.client, 'POST', path, { body: canary });
    await call(server.client, 'DELETE', `${path}/canary`, { body: { propagationPolicy: 'Foreground' } });
    for (const name of ['canary', 'dependent', 'owner']) await untilGone(`${path}/${name}`);
  });

  test('[sig-api-machinery] Garbage collector should support orphan deletion of custom resources', async () => {
    const path = await newDefinition('orphan');
    await ownerAndDependent(path, 'orphan');
    await call(server.client, 'DELETE', `${path}/owner`, { body: { propagationPolicy: 'Orphan' } });
    await untilGone(`${path}/owner`);
    await collectorHasWorked();
    const { status, body } = await call(server.client, 'GET', `${path}/dependent`);
    expect([status, listAt(body, 'metadata', 'ownerReferences')]).toEqual([200, []]);
  });
}
