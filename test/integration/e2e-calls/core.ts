import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { makeNamespace } from '../../support/api-operations.ts';
import { deleteOptions } from '../../support/e2e-framework.ts';
import type { TypedClient } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls of e2e tests of ConfigMaps, Secrets, PodTemplates, Leases and LimitRanges; titles are theirs. */
export function core(shared: () => E2eCluster): void {
  let server: TestServer;
  let client: TypedClient;
  let name = '';
  let namespace = '';
  let made = 0;
  beforeAll(() => {
    ({ server, client } = shared());
  });
  beforeEach(async () => {
    name = await makeNamespace(server, `core-${++made}`);
    namespace = `/api/v1/namespaces/${name}`;
  });

  async function itemsOf(path: string, labelSelector?: string): Promise<JsonRecord[]> {
    const { status, body } = await client.call('GET', path, { query: { labelSelector } });
    expect(status).toBe(200);
    return listAt(body, 'items').map((item) => recordAt(item));
  }

  async function create(path: string, body: JsonRecord): Promise<JsonRecord> {
    const { status, body: answer } = await client.call('POST', path, { body });
    expect([status, answer['message']]).toEqual([201, undefined]);
    return answer;
  }

  async function deleteCollection(path: string, labelSelector: string): Promise<void> {
    expect((await client.call('DELETE', path, { query: { labelSelector } })).status).toBe(200);
  }

  const kind = (word: string, rest: JsonRecord): JsonRecord => ({ apiVersion: 'v1', kind: word, ...rest });

  test('[sig-node] ConfigMap should fail to create ConfigMap with empty key', async () => {
    const body = kind('ConfigMap', { metadata: { name: 'emptykey' }, data: { '': 'value-1' } });
    const refused = await client.call('POST', `${namespace}/configmaps`, { body });
    expect([refused.status, refused.body['reason']]).toEqual([422, 'Invalid']);
  });

  test('[sig-node] Secrets should fail to create secret due to empty secret key', async () => {
    const body = kind('Secret', { metadata: { name: 'emptykey' }, data: { '': 'dmFsdWUtMQo=' } });
    const refused = await client.call('POST', `${namespace}/secrets`, { body });
    expect([refused.status, refused.body['reason']]).toEqual([422, 'Invalid']);
  });

  test('[sig-node] ConfigMap should update ConfigMap successfully', async () => {
    const maps = `${namespace}/configmaps`;
    const map = kind('ConfigMap', {
      metadata: { name: 'configmap-test', namespace: name },
      data: { 'data-1': 'value-1', 'data-2': 'value-2', 'data-3': 'value-3' },
    });
    await create(maps, map);
    const updated = await client.call('PUT', `${maps}/configmap-test`, {
      body: { ...map, data: { data: 'value' } },
    });
    expect(updated.status).toBe(200);
    const { body } = await client.call('GET', `${maps}/configmap-test`);
    expect(body['data']).toEqual({ data: 'value' });
  });

  test('[sig-node] ConfigMap should run through a ConfigMap lifecycle', async () => {
    const maps = `${namespace}/configmaps`;
    const labels = { 'test-configmap-static': 'true' };
    await create(maps, kind('ConfigMap', { metadata: { name: 'm', labels }, data: { valueName: 'value' } }));
    const { body } = await client.call('GET', `${maps}/m`);
    expect([body['data'], recordAt(body, 'metadata')['labels']]).toEqual([{ valueName: 'value' }, labels]);
    const patch = {
      metadata: { creationTimestamp: null, labels: { 'test-configmap': 'patched' } },
      data: { valueName: 'value1' },
    };
    const patched = await client.call('PATCH', `${maps}/m`, { body: patch, patch: 'strategic-merge' });
    expect(patched.status).toBe(200);
    expect(await itemsOf('/api/v1/configmaps', 'test-configmap=patched')).toMatchObject([
      {
        metadata: { name: 'm', namespace: name, labels: { ...labels, 'test-configmap': 'patched' } },
        data: { valueName: 'value1' },
      },
    ]);
    await deleteCollection(maps, 'test-configmap-static=true');
    expect(await itemsOf(maps, 'test-configmap-static=true')).toEqual([]);
  });

  test('[sig-node] Secrets should patch a secret', async () => {
    const secrets = `${namespace}/secrets`;
    await create(
      secrets,
      kind('Secret', {
        metadata: { name: 's', labels: { 'testsecret-constant': 'true' } },
        ...{ data: { key: 'dmFsdWU=' }, type: 'Opaque' },
      }),
    );
    expect(await itemsOf('/api/v1/secrets', 'testsecret-constant=true')).toHaveLength(1);
    const value = Buffer.from('dmFsdWUx').toString('base64');
    const patched = await client.call('PATCH', `${secrets}/s`, {
      body: { metadata: { labels: { testsecret: 'true' } }, data: { key: value } },
      patch: 'strategic-merge',
    });
    expect(patched.status).toBe(200);
    const { body } = await client.call('GET', `${secrets}/s`);
    const once = Buffer.from(textAt(body, 'data', 'key'), 'base64').toString();
    expect(Buffer.from(once, 'base64').toString()).toBe('value1');
    await deleteCollection(secrets, 'testsecret=true');
    expect(await itemsOf('/api/v1/secrets', 'testsecret-constant=true')).toEqual([]);
  });

  const podTemplate = (templateName: string, label: string): JsonRecord =>
    kind('PodTemplate', {
      metadata: { name: templateName, labels: { [label]: 'true' } },
      template: { spec: { containers: [{ name: 'nginx', image: 'nginx' }] } },
    });

  test('[sig-node] PodTemplates should run the lifecycle of PodTemplates', async () => {
    const templates = `${namespace}/podtemplates`;
    const selector = 'podtemplate-static=true';
    expect(await itemsOf('/api/v1/podtemplates', selector)).toEqual([]);
    await create(templates, podTemplate('nginx', 'podtemplate-static'));
    expect(textAt((await client.call('GET', `${templates}/nginx`)).body, 'metadata', 'name')).toBe('nginx');
    const body = { metadata: { labels: { podtemplate: 'patched' } } };
    expect(
      (await client.call('PATCH', `${templates}/nginx`, { body, patch: 'strategic-merge' })).status,
    ).toBe(200);
    const read = await client.call('GET', `${templates}/nginx`);
    expect(textAt(read.body, 'metadata', 'labels', 'podtemplate')).toBe('patched');
    expect((await client.call('DELETE', `${templates}/nginx`)).status).toBe(200);
    expect(await itemsOf('/api/v1/podtemplates', selector)).toEqual([]);
  });

  test('[sig-node] PodTemplates should delete a collection of pod templates', async () => {
    const templates = `${namespace}/podtemplates`;
    for (let n = 1; n <= 3; n++)
      await create(templates, podTemplate(`test-podtemplate-${n}`, 'podtemplate-set'));
    expect(await itemsOf(templates, 'podtemplate-set=true')).toHaveLength(3);
    await deleteCollection(templates, 'podtemplate-set=true');
    expect(await itemsOf(templates, 'podtemplate-set=true')).toEqual([]);
  });

  test('[sig-node] Lease lease API should be available', async () => {
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${name}/leases`;
    const lease = (leaseName: string, spec: JsonRecord, labels?: JsonRecord): JsonRecord => ({
      ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
      ...{ metadata: { name: leaseName, ...(labels && { labels }) }, spec },
    });
    // Go's zero time and a few seconds
    const spec = (
      holder: string,
      duration: number,
      acquired: string,
      renewed: string,
      transitions: number,
    ) => ({
      ...{ holderIdentity: holder, leaseDurationSeconds: duration },
      acquireTime: `0001-01-01T00:00:${acquired}.000000Z`,
      renewTime: `0001-01-01T00:${renewed}.000000Z`,
      leaseTransitions: transitions,
    });
    const first = spec('holder', 30, '02', '00:05', 0);
    const path = `${leases}/lease`;
    const read = async (): Promise<unknown> => (await client.call('GET', path)).body['spec'];
    const created = await create(leases, lease('lease', first));
    expect(await read()).toEqual(first);
    const second = spec('holder2', 30, '20', '00:50', 1);
    expect((await client.call('PUT', path, { body: { ...created, spec: second } })).status).toBe(200);
    expect(await read()).toEqual(second);
    const third = spec('holder3', 60, '50', '01:10', 2);
    const patch = { body: { spec: third }, patch: 'strategic-merge' as const };
    expect((await client.call('PATCH', path, patch)).status).toBe(200);
    expect(await read()).toEqual(third);
    await create(leases, lease('lease2', first, { deletecollection: 'true' }));
    expect(await itemsOf(leases)).toHaveLength(2);
    await deleteCollection(leases, 'deletecollection=true');
    expect(await itemsOf(leases)).toHaveLength(1);
    expect((await client.call('DELETE', path)).status).toBe(200);
    const gone = await client.call('GET', path);
    expect([gone.status, gone.body['reason']]).toEqual([404, 'NotFound']);
    await itemsOf('/apis/coordination.k8s.io/v1/leases');
  });

  const amounts = (cpu: string, memory: string, storage: string): JsonRecord => ({
    ...{ ...(cpu !== '' && { cpu }), ...(memory !== '' && { memory }) },
    ...(storage !== '' && { 'ephemeral-storage': storage }),
  });
  const limitRange = (rangeName: string, labels: JsonRecord): JsonRecord =>
    kind('LimitRange', {
      metadata: { name: rangeName, labels },
      spec: {
        limits: [
          {
            ...{
              type: 'Container',
              min: amounts('50m', '100Mi', '100Gi'),
              max: amounts('500m', '500Mi', '500Gi'),
            },
            default: amounts('500m', '500Mi', '500Gi'),
            defaultRequest: amounts('100m', '200Mi', '200Gi'),
          },
        ],
      },
    });
  const pod = (podName: string, requests: JsonRecord, limits: JsonRecord): JsonRecord =>
    kind('Pod', {
      metadata: { name: podName },
      spec: {
        containers: [
          { name: 'pause', image: 'registry.k8s.io/pause:3.10.1', resources: { requests, limits } },
        ],
      },
    });

  test('[sig-scheduling] LimitRange should create a LimitRange with defaults and ensure pod has those defaults applied.', async () => {
    const ranges = `${namespace}/limitranges`;
    const pods = `${namespace}/pods`;
    const labelSelector = 'time=now';
    const { body: list } = await client.call('GET', ranges, { query: { labelSelector } });
    expect(listAt(list, 'items')).toEqual([]);
    const resourceVersion = textAt(list, 'metadata', 'resourceVersion');
    const watch = await client.watch(ranges, { labelSelector, resourceVersion, allowWatchBookmarks: true });
    const range = await create(ranges, limitRange('limit-range', { time: 'now' }));
    expect(await watch.next()).toEqual({ type: 'ADDED', object: range });
    watch.stop();
    const [limits] = listAt((await client.call('GET', `${ranges}/limit-range`)).body, 'spec', 'limits');
    expect(limits).toMatchObject({
      ...{ defaultRequest: amounts('100m', '200Mi', '200Gi'), default: amounts('500m', '500Mi', '500Gi') },
    });
    const resourcesOf = async (podName: string): Promise<unknown> =>
      recordAt(
        listAt((await client.call('GET', `${pods}/${podName}`)).body, 'spec', 'containers')[0],
        'resources',
      );
    await create(pods, pod('pod-no-resources', {}, {}));
    expect(await resourcesOf('pod-no-resources')).toEqual({
      ...{ requests: amounts('100m', '200Mi', '200Gi'), limits: amounts('500m', '500Mi', '500Gi') },
    });
    await create(pods, pod('pod-partial-resources', amounts('', '150Mi', '150Gi'), amounts('300m', '', '')));
    expect(await resourcesOf('pod-partial-resources')).toEqual({
      ...{ requests: amounts('300m', '150Mi', '150Gi'), limits: amounts('300m', '500Mi', '500Gi') },
    });
    const refused = async (requests: JsonRecord): Promise<void> => {
      const answer = await client.call('POST', pods, { body: pod('pfpod', requests, {}) });
      expect([answer.status, answer.body['reason']]).toEqual([403, 'Forbidden']);
    };
    await refused(amounts('10m', '50Mi', '50Gi'));
    const tooLarge = amounts('600m', '600Mi', '600Gi');
    const large = await client.call('POST', pods, { body: pod('pfpod', tooLarge, {}) });
    expect(large.status).toBe(422);
    const newMin = amounts('9m', '49Mi', '49Gi');
    const updated = await client.call('PUT', `${ranges}/limit-range`, {
      body: { ...range, spec: { limits: [{ ...recordAt(limits), min: newMin }] } },
    });
    expect(recordAt(listAt(updated.body, 'spec', 'limits')[0], 'min')).toEqual(newMin);
    await create(pods, pod('pfpod', amounts('10m', '50Mi', '50Gi'), {}));
    const body = deleteOptions({ gracePeriodSeconds: 30 });
    expect((await client.call('DELETE', `${ranges}/limit-range`, { body })).status).toBe(200);
    expect(await itemsOf(ranges)).toEqual([]);
    await create(pods, pod('pfpod2', tooLarge, {}));
  });

  test('[sig-scheduling] LimitRange should list, patch and delete a LimitRange by collection', async () => {
    const rangeName = 'e2e-limitrange';
    const ranges = `${namespace}/limitranges`;
    const labels = { 'e2e-test': rangeName, [rangeName]: 'created' };
    const range = await create(ranges, limitRange(rangeName, labels));
    const other = await makeNamespace(server, `${rangeName}-other`);
    await create(`/api/v1/namespaces/${other}/limitranges`, limitRange(rangeName, labels));
    expect(await itemsOf('/api/v1/limitranges', `e2e-test=${rangeName}`)).toHaveLength(2);
    const newMin = amounts('9m', '49Mi', '49Gi');
    const [limits] = listAt(range, 'spec', 'limits');
    const { creationTimestamp } = recordAt(range, 'metadata');
    const patched = await client.call('PATCH', `${ranges}/${rangeName}`, {
      body: {
        metadata: { creationTimestamp, labels: { [rangeName]: 'patched' } },
        spec: { limits: [{ ...recordAt(limits), min: newMin }] },
      },
      patch: 'strategic-merge',
    });
    expect([patched.status, textAt(patched.body, 'metadata', 'labels', rangeName)]).toEqual([200, 'patched']);
    expect(recordAt(listAt(patched.body, 'spec', 'limits')[0], 'min')).toEqual(newMin);
    await deleteCollection(ranges, `${rangeName}=patched`);
    expect(await itemsOf('/api/v1/limitranges', `${rangeName}=patched`)).toEqual([]);
    expect(await itemsOf('/api/v1/limitranges', `e2e-test=${rangeName}`)).toHaveLength(1);
  });
}
