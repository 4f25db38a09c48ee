import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, numberAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { eventually } from '../../support/api-operations.ts';
import { createTestingNamespace, deleteOptions } from '../../support/e2e-framework.ts';
import { type Answer, call } from '../../support/test-server.ts';
import type { TypedClient, TypedWatch } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls of e2e tests of Deployments and ReplicaSets (`apps/deployment.go`, `replica_set.go`); titles are theirs. */
export function deployments(shared: () => E2eCluster): void {
  let server: TestServer;
  let client: TypedClient;
  let name = '';
  let apps = '';
  beforeAll(() => {
    ({ server, client } = shared());
  });
  beforeEach(async () => {
    name = await createTestingNamespace(client, 'apps');
    apps = `/apis/apps/v1/namespaces/${name}`;
  });

  const pause = 'registry.k8s.io/pause:3.10.1';

  const replicaSet = (labels: JsonRecord, replicas: number, annotations?: JsonRecord): JsonRecord => ({
    ...{ apiVersion: 'apps/v1', kind: 'ReplicaSet' },
    metadata: { name: 'test-rs', labels, ...(annotations && { annotations }) },
    spec: {
      ...{ replicas, selector: { matchLabels: labels } },
      template: {
        metadata: { labels },
        spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'httpd', image: 'httpd' }] },
      },
    },
  });

  const deployment = (
    deploymentName: string,
    replicas: number,
    labels: JsonRecord,
    image: string,
  ): JsonRecord => ({
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: deploymentName, labels } },
    spec: {
      ...{ replicas, selector: { matchLabels: labels }, strategy: { type: 'RollingUpdate' } },
      template: {
        metadata: { labels },
        spec: { terminationGracePeriodSeconds: 0, containers: [{ name: deploymentName, image }] },
      },
    },
  });

  async function create(path: string, body: JsonRecord): Promise<JsonRecord> {
    const { status, body: answer } = await client.call('POST', path, { body });
    expect([status, answer['message']]).toEqual([201, undefined]);
    return answer;
  }

  /** A watch from the revision of a list of all namespaces. */
  async function watchFrom(plural: string, labelSelector: string): Promise<TypedWatch> {
    const { body } = await client.call('GET', `/apis/apps/v1/${plural}`, { query: { labelSelector } });
    const resourceVersion = textAt(body, 'metadata', 'resourceVersion');
    return client.watch(`${apps}/${plural}`, { labelSelector, resourceVersion, allowWatchBookmarks: true });
  }

  async function podsRunning(labelSelector: string, count: number): Promise<void> {
    await eventually(
      async () => client.call('GET', `/api/v1/namespaces/${name}/pods`, { query: { labelSelector } }),
      ({ body }) =>
        listAt(body, 'items').filter((pod) => textAt(pod, 'status', 'phase') === 'Running').length === count,
    );
  }

  const imageOf = (object: JsonRecord): string =>
    textAt(listAt(object, 'spec', 'template', 'spec', 'containers')[0], 'image');

  /** Appends a condition to the status, and then patches the conditions away; both are seen in the watch. */
  async function changesStatus(path: string, watch: TypedWatch): Promise<void> {
    const has = (object: JsonRecord, type: string): boolean =>
      listAt(object, 'status', 'conditions').some((condition) => textAt(condition, 'type') === type);
    expect((await call(server.client, 'GET', `${path}/status`)).status).toBe(200);
    const added = { type: 'StatusUpdate', status: 'True', reason: 'E2E', message: 'Set from e2e test' };
    await eventually(
      async (): Promise<Answer> => {
        const { body } = await client.call('GET', path);
        const conditions = [...listAt(body, 'status', 'conditions'), added];
        return client.call('PUT', `${path}/status`, {
          body: { ...body, status: { ...recordAt(body, 'status'), conditions } },
        });
      },
      ({ status }) => status === 200,
    );
    await watch.until(({ object }) => has(object, 'StatusUpdate'));
    const patched = await client.call('PATCH', `${path}/status`, {
      body: { status: { conditions: [{ type: 'StatusPatched', status: 'True' }] } },
      patch: 'merge',
    });
    expect([patched.status, has(patched.body, 'StatusPatched')]).toEqual([200, true]);
    await watch.until(({ object }) => has(object, 'StatusPatched'));
  }

  test('[sig-apps] Deployment should run the lifecycle of a Deployment', async () => {
    const labels = { 'test-deployment-static': 'true' };
    const labelSelector = 'test-deployment-static=true';
    const path = `${apps}/deployments/test-deployment`;
    const watch = await watchFrom('deployments', labelSelector);
    const first = deployment('test-deployment', 2, labels, 'agnhost');
    await create(`${apps}/deployments`, first);
    expect((await watch.next()).type).toBe('ADDED');
    await watch.until(({ object }) => numberAt(object, 'status', 'readyReplicas') === 2);

    const patched = await client.call('PATCH', path, {
      body: {
        metadata: { labels: { 'test-deployment': 'patched' } },
        spec: {
          replicas: 1,
          // a field that there is not, by Go's name of one that there is
          template: {
            spec: {
              TerminationGracePeriodSeconds: 1,
              containers: [{ name: 'test-deployment', image: pause }],
            },
          },
        },
      },
      patch: 'strategic-merge',
    });
    expect([patched.status, patched.body['message']]).toEqual([200, undefined]);
    await watch.until(({ type }) => type === 'MODIFIED');
    const settled =
      (replicas: number, image: string) =>
      ({ object }: { object: JsonRecord }): boolean => {
        const status = recordAt(object, 'status');
        return (
          numberAt(status, 'readyReplicas') === replicas &&
          numberAt(status, 'updatedReplicas') === replicas &&
          numberAt(status, 'unavailableReplicas') === 0 &&
          imageOf(object) === image
        );
      };
    await watch.until(settled(1, pause));
    const all = await client.call('GET', '/apis/apps/v1/deployments', { query: { labelSelector } });
    expect(listAt(all.body, 'items')).toMatchObject([{ metadata: { namespace: name } }]);

    // the object as it was made, with the dynamic client and without a resourceVersion
    const second = deployment('test-deployment', 2, { ...labels, 'test-deployment': 'updated' }, 'httpd');
    const { spec, ...head } = second;
    const { selector } = recordAt(first, 'spec');
    const body = { ...head, spec: { ...recordAt(spec), selector } };
    expect((await call(server.client, 'PUT', path, { body })).status).toBe(200);
    await watch.until(({ type }) => type === 'MODIFIED');
    const status = await call(server.client, 'GET', `${path}/status`);
    expect([imageOf(status.body), textAt(status.body, 'metadata', 'labels', 'test-deployment')]).toEqual([
      ...['httpd', 'updated'],
    ]);
    await watch.until(settled(2, 'httpd'));

    // refused: more are available than would be ready (kubernetes/kubernetes#113259)
    const refused = await call(server.client, 'PATCH', `${path}/status`, {
      body: { metadata: { labels: { 'test-deployment': 'patched-status' } }, status: { readyReplicas: 0 } },
      contentType: 'application/strategic-merge-patch+json',
    });
    expect([refused.status, refused.body['message']]).toEqual([
      422,
      'Deployment.apps "test-deployment" is invalid: status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas',
    ]);
    const after = await call(server.client, 'GET', `${path}/status`);
    expect(textAt(after.body, 'metadata', 'labels', 'test-deployment')).toBe('updated');
    const options = deleteOptions({ gracePeriodSeconds: 1 });
    const deleted = await client.call('DELETE', `${apps}/deployments`, {
      body: options,
      query: { labelSelector },
    });
    expect(deleted.status).toBe(200);
    await watch.until(({ type }) => type === 'DELETED');
    watch.stop();
  });

  test('[sig-apps] Deployment should validate Deployment Status endpoints', async () => {
    const watch = await watchFrom('deployments', 'e2e=testing');
    await create(
      `${apps}/deployments`,
      deployment('test-deployment', 1, { name: 'httpd', e2e: 'testing' }, 'httpd'),
    );
    await watch.until(
      ({ object }) =>
        textAt(object, 'metadata', 'annotations', 'deployment.kubernetes.io/revision') === '1' &&
        numberAt(object, 'status', 'availableReplicas') === 1,
    );
    await changesStatus(`${apps}/deployments/test-deployment`, watch);
    watch.stop();
  });

  test('[sig-apps] Deployment RollingUpdateDeployment should delete old pods and create new ones', async () => {
    const revision = 'deployment.kubernetes.io/revision';
    // larger than a double can count
    const set = replicaSet({ name: 'sample-pod', pod: 'httpd' }, 1, { [revision]: '3546343826724305832' });
    await create(`${apps}/replicasets`, set);
    await podsRunning('name=sample-pod', 1);
    const path = `${apps}/deployments/test-rolling-update-deployment`;
    await create(
      `${apps}/deployments`,
      deployment('test-rolling-update-deployment', 1, { name: 'sample-pod' }, 'agnhost'),
    );
    await eventually(
      async () => client.call('GET', path),
      ({ body }) =>
        textAt(body, 'metadata', 'annotations', revision) === '3546343826724305833' &&
        numberAt(body, 'status', 'updatedReplicas') === 1 &&
        numberAt(body, 'status', 'replicas') === 1 &&
        numberAt(body, 'status', 'availableReplicas') === 1,
    );
    const { body } = await client.call('GET', `${apps}/replicasets`);
    const old = listAt(body, 'items').filter((each) => textAt(each, 'metadata', 'name') === 'test-rs');
    expect(old).toMatchObject([
      { metadata: { ownerReferences: [{ kind: 'Deployment' }] }, spec: { replicas: 0 } },
    ]);
  });

  test('[sig-apps] ReplicaSet Replicaset should have a working scale subresource', async () => {
    await create(`${apps}/replicasets`, replicaSet({ name: 'sample-pod', pod: 'httpd' }, 1));
    await podsRunning('name=sample-pod', 1);
    const path = `${apps}/replicasets/test-rs`;
    const { body } = await eventually(
      async () => client.call('GET', `${path}/scale`),
      (answer) => numberAt(answer.body, 'status', 'replicas') === 1,
    );
    expect(numberAt(body, 'spec', 'replicas')).toBe(1);
    const { resourceVersion: _unconditional, ...metadata } = recordAt(body, 'metadata');
    const updated = await client.call('PUT', `${path}/scale`, {
      body: { ...body, metadata, spec: { replicas: 2 } },
    });
    expect([updated.status, numberAt(updated.body, 'spec', 'replicas')]).toEqual([200, 2]);
    const wanted = async (): Promise<number> =>
      numberAt((await client.call('GET', path)).body, 'spec', 'replicas');
    expect(await wanted()).toBe(2);
    const patched = await client.call('PATCH', `${path}/scale`, {
      body: { metadata: { creationTimestamp: null }, spec: { replicas: 4 }, status: { replicas: 0 } },
      patch: 'strategic-merge',
    });
    expect(patched.status).toBe(200);
    expect(await wanted()).toBe(4);
  });

  test('[sig-apps] ReplicaSet Replace and Patch tests', async () => {
    const path = `${apps}/replicasets/test-rs`;
    const watch = await watchFrom('replicasets', 'test-rs=patched');
    await create(`${apps}/replicasets`, replicaSet({ name: 'sample-pod', pod: 'httpd' }, 1));
    await podsRunning('name=sample-pod', 1);
    await eventually(
      async () => {
        const { body } = await client.call('GET', path);
        return client.call('PUT', path, {
          body: { ...body, spec: { ...recordAt(body, 'spec'), replicas: 2 } },
        });
      },
      ({ status }) => status === 200,
    );
    const patched = await client.call('PATCH', path, {
      body: {
        metadata: { labels: { 'test-rs': 'patched' } },
        spec: {
          replicas: 3,
          // another container, which comes first
          template: {
            spec: { TerminationGracePeriodSeconds: 0, containers: [{ name: 'test-rs', image: pause }] },
          },
        },
      },
      patch: 'strategic-merge',
    });
    expect([patched.status, imageOf(patched.body)]).toEqual([200, pause]);
    await watch.until(
      ({ object }) =>
        numberAt(object, 'status', 'readyReplicas') === 3 &&
        numberAt(object, 'status', 'availableReplicas') === 3 &&
        imageOf(object) === pause,
    );
    watch.stop();
  });

  test('[sig-apps] ReplicaSet should list and delete a collection of ReplicaSets', async () => {
    await create(`${apps}/replicasets`, replicaSet({ name: 'sample-pod', pod: 'httpd', e2e: 'x' }, 3));
    await podsRunning('name=sample-pod', 3);
    const query = { labelSelector: 'e2e=x' };
    const list = async (): Promise<readonly unknown[]> =>
      listAt((await client.call('GET', '/apis/apps/v1/replicasets', { query })).body, 'items');
    expect(await list()).toHaveLength(1);
    const body = deleteOptions({ gracePeriodSeconds: 1 });
    expect((await client.call('DELETE', `${apps}/replicasets`, { body, query })).status).toBe(200);
    expect(await list()).toEqual([]);
  });

  test('[sig-apps] ReplicaSet should validate Replicaset Status endpoints', async () => {
    const watch = await watchFrom('replicasets', 'name=sample-pod,pod=httpd');
    await create(`${apps}/replicasets`, replicaSet({ name: 'sample-pod', pod: 'httpd' }, 1));
    await podsRunning('name=sample-pod', 1);
    await changesStatus(`${apps}/replicasets/test-rs`, watch);
    watch.stop();
  });
}
