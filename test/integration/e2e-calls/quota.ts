import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { eventually } from '../../support/api-operations.ts';
import { createTestingNamespace, deleteOptions } from '../../support/e2e-framework.ts';
import { type Answer, call } from '../../support/test-server.ts';
import type { TypedClient } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls of e2e tests of ResourceQuotas (`apimachinery/resource_quota.go`); titles are theirs. */
export function quota(shared: () => E2eCluster): void {
  let server: TestServer;
  let client: TypedClient;
  let namespace = '';
  beforeAll(() => {
    ({ server, client } = shared());
  });
  beforeEach(async () => {
    namespace = `/api/v1/namespaces/${await createTestingNamespace(client, 'resourcequota')}`;
  });

  type Quantities = Readonly<Record<string, string>>;

  const quotaOf = (name: string, spec: JsonRecord, labels: JsonRecord = {}): JsonRecord => ({
    ...{ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name, labels }, spec },
  });

  /** `newTestResourceQuota` */
  const hard: Quantities = {
    ...{ pods: '5', services: '10', 'services.nodeports': '1', 'services.loadbalancers': '1' },
    ...{ replicationcontrollers: '10', resourcequotas: '1', cpu: '1', memory: '500Mi', configmaps: '10' },
    ...{
      secrets: '10',
      persistentvolumeclaims: '10',
      'requests.storage': '10Gi',
      'ephemeral-storage': '50Gi',
    },
    'gold.storageclass.storage.k8s.io/persistentvolumeclaims': '10',
    'gold.storageclass.storage.k8s.io/requests.storage': '10Gi',
    'count/replicasets.apps': '5',
    'requests.example.com/dongle': '3',
  };

  async function createQuota(name: string, spec: JsonRecord): Promise<void> {
    const made = await client.call('POST', `${namespace}/resourcequotas`, { body: quotaOf(name, spec) });
    expect(made.status).toBe(201);
  }

  /** Waits until a quota's status shows this usage, of these resources. */
  async function untilUsed(name: string, used: Quantities): Promise<void> {
    await eventually(
      async () => client.call('GET', `${namespace}/resourcequotas/${name}`),
      ({ body }) =>
        Object.entries(used).every(
          ([resource, value]) => recordAt(body, 'status', 'used')[resource] === value,
        ),
    );
  }

  async function create(plural: string, body: JsonRecord, root = namespace): Promise<Answer> {
    return client.call('POST', `${root}/${plural}`, { body });
  }

  async function remove(
    plural: string,
    name: string,
    options: JsonRecord = {},
    root = namespace,
  ): Promise<void> {
    const body = deleteOptions(options);
    expect((await client.call('DELETE', `${root}/${plural}/${name}`, { body })).status).toBe(200);
  }

  /** Refused by a quota. */
  function expectRefused({ status, body }: Answer): void {
    expect([status, body['reason']]).toEqual([403, 'Forbidden']);
    expect(textAt(body, 'message')).toMatch(/exceeded quota: .*, requested: .*, used: .*, limited: /);
  }

  test('[sig-api-machinery] ResourceQuota should create a ResourceQuota and ensure its status is promptly calculated.', async () => {
    expect(listAt((await client.call('GET', `${namespace}/resourcequotas`)).body, 'items')).toEqual([]);
    await createQuota('test-quota', { hard });
    await untilUsed('test-quota', { resourcequotas: '1' });
  });

  test('[sig-api-machinery] ResourceQuota should create a ResourceQuota and capture the life of a service.', async () => {
    await createQuota('test-quota', { hard });
    await untilUsed('test-quota', { resourcequotas: '1' });
    const service = (name: string, type: string, allocateLoadBalancerNodePorts?: boolean): JsonRecord => ({
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name } },
      spec: { type, ports: [{ port: 80, targetPort: 80 }], allocateLoadBalancerNodePorts },
    });
    expect((await create('services', service('test-service', 'ClusterIP'))).status).toBe(201);
    expect((await create('services', service('test-service-np', 'NodePort'))).status).toBe(201);
    expectRefused(await create('services', service('test-service-lb', 'LoadBalancer', true)));
    await untilUsed('test-quota', { resourcequotas: '1', services: '2', 'services.nodeports': '1' });
    await remove('services', 'test-service');
    await remove('services', 'test-service-np');
    await untilUsed('test-quota', { resourcequotas: '1', services: '0', 'services.nodeports': '0' });
  });

  test.each([
    ['secret', 'secrets', 'Secret', { data: { 'data-1': 'dmFsdWUtMQ==' } }],
    ['configMap', 'configmaps', 'ConfigMap', { data: { a: 'b' } }],
  ])(
    '[sig-api-machinery] ResourceQuota should create a ResourceQuota and capture the life of a %s.',
    async (_, plural, kind, data) => {
      const found = listAt((await client.call('GET', `${namespace}/${plural}`)).body, 'items').length;
      await createQuota('test-quota', { hard: { ...hard, [plural]: `${found + 1}` } });
      await untilUsed('test-quota', { resourcequotas: '1', [plural]: `${found}` });
      const name = `test-${plural}`;
      expect((await create(plural, { apiVersion: 'v1', kind, metadata: { name }, ...data })).status).toBe(
        201,
      );
      await untilUsed('test-quota', { [plural]: `${found + 1}` });
      await remove(plural, name);
      await untilUsed('test-quota', { [plural]: `${found}` });
    },
  );

  const podOf = (name: string, resources: JsonRecord, spec: JsonRecord = {}): JsonRecord => ({
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name } },
    spec: {
      nodeSelector: { 'x-test.k8s.io/unsatisfiable': 'not-schedulable' },
      containers: [{ name: 'pause', image: 'registry.k8s.io/pause:3.10.1', resources }],
      ...spec,
    },
  });
  const gone = { gracePeriodSeconds: 0 };

  test('[sig-api-machinery] ResourceQuota should create a ResourceQuota and capture the life of a pod.', async () => {
    await createQuota('test-quota', { hard });
    await untilUsed('test-quota', { resourcequotas: '1' });
    const dongles = { 'example.com/dongle': '2' };
    const requests = { cpu: '500m', memory: '252Mi', 'ephemeral-storage': '30Gi', ...dongles };
    const made = await create('pods', podOf('test-pod', { requests, limits: dongles }));
    expect(made.status).toBe(201);
    const used = {
      ...{ resourcequotas: '1', pods: '1', cpu: '500m', memory: '252Mi', 'ephemeral-storage': '30Gi' },
      'requests.example.com/dongle': '2',
    };
    await untilUsed('test-quota', used);
    expectRefused(await create('pods', podOf('fail-pod', { requests: { cpu: '600m', memory: '100Mi' } })));
    expectRefused(
      await create(
        'pods',
        podOf('fail-pod-for-extended-resource', {
          ...{ requests: { ...requests, memory: '100Mi' }, limits: dongles },
        }),
      ),
    );
    const resources = {
      limits: dongles,
      requests: { cpu: '100m', memory: '100Mi', 'ephemeral-storage': '10Gi' },
    };
    // The scheduler and the kubelet may write the Pod in between.
    const changed = await eventually(
      async () => {
        const { body } = await client.call('GET', `${namespace}/pods/test-pod`);
        const [container] = listAt(body, 'spec', 'containers');
        const spec = { ...recordAt(body, 'spec'), containers: [{ ...recordAt(container), resources }] };
        return client.call('PUT', `${namespace}/pods/test-pod`, { body: { ...body, spec } });
      },
      ({ status }) => status !== 409,
    );
    expect([changed.status, changed.body['reason']]).toEqual([422, 'Invalid']);
    await untilUsed('test-quota', used);
    await remove('pods', 'test-pod', gone);
    await untilUsed('test-quota', {
      ...{ resourcequotas: '1', pods: '0', cpu: '0', memory: '0', 'ephemeral-storage': '0' },
      'requests.example.com/dongle': '0',
    });
  });

  const template = (name: string): JsonRecord => ({
    metadata: { labels: { name } },
    spec: { containers: [{ name, image: 'nginx' }] },
  });

  test('[sig-api-machinery] ResourceQuota should create a ResourceQuota and capture the life of a replication controller.', async () => {
    await createQuota('test-quota', { hard });
    await untilUsed('test-quota', { resourcequotas: '1', replicationcontrollers: '0' });
    const made = await create('replicationcontrollers', {
      ...{ apiVersion: 'v1', kind: 'ReplicationController', metadata: { name: 'test-rc' } },
      spec: { replicas: 0, selector: { name: 'test-rc' }, template: template('test-rc') },
    });
    expect(made.status).toBe(201);
    await untilUsed('test-quota', { replicationcontrollers: '1' });
    await remove('replicationcontrollers', 'test-rc', { propagationPolicy: 'Background' });
    await untilUsed('test-quota', { replicationcontrollers: '0' });
  });

  test('[sig-api-machinery] ResourceQuota should create a ResourceQuota and capture the life of a replica set.', async () => {
    const apps = namespace.replace('/api/v1', '/apis/apps/v1');
    await createQuota('test-quota', { hard });
    await untilUsed('test-quota', { resourcequotas: '1', 'count/replicasets.apps': '0' });
    const set = {
      ...{ apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: { name: 'test-rs' } },
      spec: { replicas: 0, selector: { matchLabels: { name: 'test-rs' } }, template: template('test-rs') },
    };
    expect((await create('replicasets', set, apps)).status).toBe(201);
    await untilUsed('test-quota', { 'count/replicasets.apps': '1' });
    await remove('replicasets', 'test-rs', {}, apps);
    await untilUsed('test-quota', { 'count/replicasets.apps': '0' });
  });

  test.each([
    ['persistent volume claim', undefined],
    ['persistent volume claim with a storage class', 'gold'],
  ])(
    '[sig-api-machinery] ResourceQuota should create a ResourceQuota and capture the life of a %s',
    async (_, storageClassName) => {
      const usage = (count: string, size: string): Quantities => ({
        ...{ persistentvolumeclaims: count, 'requests.storage': size },
        ...(storageClassName !== undefined && {
          'gold.storageclass.storage.k8s.io/persistentvolumeclaims': count,
          'gold.storageclass.storage.k8s.io/requests.storage': size,
        }),
      });
      await createQuota('test-quota', { hard });
      await untilUsed('test-quota', { resourcequotas: '1', ...usage('0', '0') });
      const resources = { requests: { storage: '1Gi' } };
      const made = await create('persistentvolumeclaims', {
        ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'test-claim' } },
        spec: { accessModes: ['ReadWriteOnce', 'ReadOnlyMany'], resources, storageClassName },
      });
      expect(made.status).toBe(201);
      await untilUsed('test-quota', usage('1', '1Gi'));
      await remove('persistentvolumeclaims', 'test-claim');
      await untilUsed('test-quota', usage('0', '0'));
    },
  );

  test('[sig-api-machinery] ResourceQuota should create a ResourceQuota and capture the life of a custom resource.', async () => {
    const names = {
      plural: 'quotatests',
      singular: 'quotatest',
      kind: 'QuotaTest',
      listKind: 'QuotaTestList',
    };
    const group = 'resourcequota.example.com';
    const openAPIV3Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    const definition = {
      ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
      metadata: { name: `quotatests.${group}` },
      spec: {
        ...{ group, names, scope: 'Namespaced' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
      },
    };
    const made = await client.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      body: definition,
    });
    expect(made.status).toBe(201);
    const counted = `count/quotatests.${group}`;
    await createQuota('quota-for-quotatests', { hard: { [counted]: '0' } });
    await untilUsed('quota-for-quotatests', { [counted]: '0' });
    await remove('resourcequotas', 'quota-for-quotatests');

    await createQuota('test-quota', { hard: { ...hard, [counted]: '1' } });
    await untilUsed('test-quota', { resourcequotas: '1', [counted]: '0' });
    const path = `${namespace.replace('/api/v1', `/apis/${group}/v1`)}/quotatests`;
    const custom = async (name: string): Promise<Answer> =>
      call(server.client, 'POST', path, {
        body: { apiVersion: `${group}/v1`, kind: 'QuotaTest', metadata: { name } },
      });
    await eventually(
      async () => call(server.client, 'GET', path),
      ({ status }) => status === 200,
    );
    expect((await custom('test-cr-1')).status).toBe(201);
    await untilUsed('test-quota', { [counted]: '1' });
    expectRefused(await custom('test-cr-2'));
    expect((await call(server.client, 'DELETE', `${path}/test-cr-1`)).status).toBe(200);
    await untilUsed('test-quota', { [counted]: '0' });
  });
}
