import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, numberAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { eventually } from '../../support/api-operations.ts';
import { createTestingNamespace } from '../../support/e2e-framework.ts';
import { type Answer, call } from '../../support/test-server.ts';
import type { TypedClient } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls of e2e tests of PodDisruptionBudgets and evictions (`apps/disruption.go`); titles are theirs. */
export function disruption(shared: () => E2eCluster): void {
  let server: TestServer;
  let client: TypedClient;
  let name = '';
  let budgets = '';
  let pods = '';
  beforeAll(() => {
    ({ server, client } = shared());
  });
  beforeEach(async () => {
    name = await createTestingNamespace(client, 'disruption');
    budgets = `/apis/policy/v1/namespaces/${name}/poddisruptionbudgets`;
    pods = `/api/v1/namespaces/${name}/pods`;
  });

  const labels = { foo: 'bar' };

  /** Makes a budget of the Pods with `foo: bar` and waits until the controller has seen it. */
  async function createBudget(budgetName: string, spec: JsonRecord, own: JsonRecord = labels): Promise<void> {
    const body = {
      ...{
        apiVersion: 'policy/v1',
        kind: 'PodDisruptionBudget',
        metadata: { name: budgetName, labels: own },
      },
      spec: { selector: { matchLabels: labels }, ...spec },
    };
    expect((await client.call('POST', budgets, { body })).status).toBe(201);
    await processed(budgetName);
  }

  async function processed(budgetName: string): Promise<JsonRecord> {
    const { body } = await eventually(
      async () => client.call('GET', `${budgets}/${budgetName}`),
      (answer) =>
        numberAt(answer.body, 'status', 'observedGeneration') >=
        numberAt(answer.body, 'metadata', 'generation'),
    );
    return body;
  }

  /** Reads, changes and writes until there is no conflict, then waits for the controller. */
  async function updateBudget(change: (budget: JsonRecord) => JsonRecord, sub = ''): Promise<JsonRecord> {
    const { status, body } = await eventually(
      async () => {
        const read = await client.call('GET', `${budgets}/foo`);
        return client.call('PUT', `${budgets}/foo${sub}`, { body: change(read.body) });
      },
      (answer) => answer.status !== 409,
    );
    expect(status).toBe(200);
    await processed('foo');
    return body;
  }

  async function createPods(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const body = {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: `pod-${n}`, labels } },
        spec: {
          containers: [{ name: 'donothing', image: 'registry.k8s.io/pause:3.10.1' }],
          restartPolicy: 'Always',
        },
      };
      expect((await client.call('POST', pods, { body })).status).toBe(201);
    }
  }

  async function createReplicaSet(replicas: number): Promise<void> {
    const spec = { containers: [{ name: 'donothing', image: 'registry.k8s.io/pause:3.10.1' }] };
    const body = {
      ...{ apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: { name: 'rs' } },
      spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    };
    expect((await client.call('POST', `/apis/apps/v1/namespaces/${name}/replicasets`, { body })).status).toBe(
      201,
    );
  }

  function isReady(pod: unknown): boolean {
    const conditions = listAt(pod, 'status', 'conditions');
    return (
      textAt(pod, 'metadata', 'deletionTimestamp') === '' &&
      conditions.some((each) => textAt(each, 'type') === 'Ready' && textAt(each, 'status') === 'True')
    );
  }

  /** Waits until so many Pods are ready; returns the name of one. */
  async function podsReady(count: number): Promise<string> {
    const { body } = await eventually(
      async () => client.call('GET', pods, { query: { labelSelector: 'foo=bar' } }),
      (answer) => listAt(answer.body, 'items').filter(isReady).length >= count,
    );
    return textAt(listAt(body, 'items').find(isReady), 'metadata', 'name');
  }

  async function evict(pod: string): Promise<Answer> {
    return client.call('POST', `${pods}/${pod}/eviction`, {
      body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod, namespace: name } },
    });
  }

  /** `apierrors.HasStatusCause(err, DisruptionBudget)` */
  function expectDenied({ status, body }: Answer): void {
    expect([status, body['reason']]).toEqual([429, 'TooManyRequests']);
    expect(listAt(body, 'details', 'causes').map((cause) => textAt(cause, 'reason'))).toEqual([
      'DisruptionBudget',
    ]);
  }

  test('[sig-apps] DisruptionController Listing PodDisruptionBudgets for all namespaces should list and delete a collection of PodDisruptionBudgets', async () => {
    const own = { foo_pdb: 'bar_pdb' };
    const namesIn = async (path: string): Promise<string[]> => {
      const query = { labelSelector: 'foo_pdb=bar_pdb' };
      const { body } = await client.call('GET', path, { query });
      return listAt(body, 'items').map((item) => textAt(item, 'metadata', 'name'));
    };
    await createBudget('foo', { minAvailable: 2 }, own);
    await createBudget('foo2', { minAvailable: '1%' }, own);
    const here = budgets;
    budgets = budgets.replace(name, await createTestingNamespace(client, 'disruption-2'));
    await createBudget('foo3', { minAvailable: 2 }, own);
    expect((await namesIn('/apis/policy/v1/poddisruptionbudgets')).sort()).toEqual(['foo', 'foo2', 'foo3']);
    expect(await namesIn(here)).toEqual(['foo', 'foo2']);
    expect((await client.call('DELETE', here)).status).toBe(200);
    await eventually(
      async () => client.call('GET', here),
      ({ body }) => listAt(body, 'items').length === 0,
    );
  });

  test('[sig-apps] DisruptionController should create a PodDisruptionBudget', async () => {
    await createBudget('foo', { minAvailable: '1%' });
    const updated = await updateBudget((budget) => ({
      ...budget,
      spec: { ...recordAt(budget, 'spec'), minAvailable: '2%' },
    }));
    expect(textAt(updated, 'spec', 'minAvailable')).toBe('2%');
    const patched = await client.call('PATCH', `${budgets}/foo`, {
      body: { spec: { minAvailable: '3%' } },
      patch: 'merge',
    });
    expect(textAt(patched.body, 'spec', 'minAvailable')).toBe('3%');
    await processed('foo');
    expect((await client.call('DELETE', `${budgets}/foo`)).status).toBe(200);
    expect((await client.call('GET', `${budgets}/foo`)).status).toBe(404);
  });

  test('[sig-apps] DisruptionController should observe PodDisruptionBudget status updated', async () => {
    await createBudget('foo', { minAvailable: 1 });
    await createPods(3);
    await podsReady(3);
    await eventually(
      async () => client.call('GET', `${budgets}/foo`),
      ({ body }) => numberAt(body, 'status', 'disruptionsAllowed') > 0,
    );
  });

  test('[sig-apps] DisruptionController should update/patch PodDisruptionBudget status', async () => {
    await createBudget('foo', { minAvailable: 1 });
    await createPods(1);
    const pod = await podsReady(1);
    const disruptedPods = { [pod]: new Date().toISOString().replace(/\.\d+/, '') };
    await updateBudget(
      (budget) => ({ ...budget, status: { ...recordAt(budget, 'status'), disruptedPods } }),
      '/status',
    );
    const { body } = await call(server.client, 'GET', `${budgets}/foo/status`);
    expect(recordAt(body, 'status', 'disruptedPods')).toEqual(disruptedPods);
    const patched = await client.call('PATCH', `${budgets}/foo/status`, {
      body: { status: { disruptedPods: null } },
      patch: 'merge',
    });
    expect([patched.status, recordAt(patched.body, 'status', 'disruptedPods')]).toEqual([200, {}]);
  });

  test('[sig-apps] DisruptionController evictions: no PDB => should allow an eviction', async () => {
    await createPods(1);
    expect((await evict(await podsReady(1))).status).toBe(201);
  });

  test('[sig-apps] DisruptionController evictions: too few pods, absolute => should not allow an eviction', async () => {
    await createPods(2);
    await createBudget('foo', { minAvailable: 2 });
    expectDenied(await evict(await podsReady(1)));
  });

  test.each([
    ['enough pods, absolute', 3, 0, { minAvailable: 2 }],
    ['enough pods, replicaSet, percentage', 0, 10, { minAvailable: '90%' }],
    ['maxUnavailable allow single eviction, percentage', 0, 10, { maxUnavailable: '10%' }],
  ])(
    '[sig-apps] DisruptionController evictions: %s => should allow an eviction',
    async (_, alone, inSet, spec) => {
      await createPods(alone);
      if (inSet > 0) await createReplicaSet(inSet);
      await createBudget('foo', spec);
      const pod = await podsReady(alone + inSet);
      await eventually(
        async () => evict(pod),
        ({ status }) => status === 201,
      );
    },
  );

  test('[sig-apps] DisruptionController should block an eviction until the PDB is updated to allow it', async () => {
    await createBudget('foo', { minAvailable: 3 });
    await createReplicaSet(3);
    const first = await podsReady(3);
    expectDenied(await evict(first));
    await updateBudget((budget) => ({ ...budget, spec: { ...recordAt(budget, 'spec'), minAvailable: 2 } }));
    await podsReady(3);
    await eventually(
      async () => client.call('GET', `${budgets}/foo`),
      ({ body }) => numberAt(body, 'status', 'currentHealthy') === 3,
    );
    expect((await evict(first)).status).toBe(201);
    const patched = await client.call('PATCH', `${budgets}/foo`, {
      body: { spec: { maxUnavailable: 0, minAvailable: null } },
      patch: 'merge',
    });
    expect(patched.status).toBe(200);
    await processed('foo');
    const second = await podsReady(3);
    expectDenied(await evict(second));
    expect((await client.call('DELETE', `${budgets}/foo`)).status).toBe(200);
    await podsReady(3);
    expect((await evict(second)).status).toBe(201);
  });

  test('a budget counts what a ReplicationController wants, not what it has', async () => {
    const core = `/api/v1/namespaces/${name}`;
    const quota = { metadata: { name: 'one' }, spec: { hard: { pods: '1' } } };
    expect((await call(server.client, 'POST', `${core}/resourcequotas`, { body: quota })).status).toBe(201);
    const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } };
    const controller = { metadata: { name: 'rc' }, spec: { replicas: 3, selector: labels, template } };
    expect(
      (await call(server.client, 'POST', `${core}/replicationcontrollers`, { body: controller })).status,
    ).toBe(201);
    await createBudget('foo', { maxUnavailable: 1 });
    await eventually(
      async () => client.call('GET', `${budgets}/foo`),
      ({ body }) =>
        numberAt(body, 'status', 'expectedPods') === 3 && numberAt(body, 'status', 'desiredHealthy') === 2,
    );
  });
}
