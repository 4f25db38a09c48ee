import { afterAll, beforeAll, expect, test } from 'vitest';
import { listAt, recordAt, textAt } from '../../src/objects/read.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { apiOperations, eventually, makeNamespace } from '../support/api-operations.ts';
import { call, watchEvents, watchUntil } from '../support/test-server.ts';

/** The calls of e2e tests of Endpoints and EndpointSlices, with our controllers at work; titles are theirs. */
let server: TestServer;
let namespace = '';
let core = '';
let slices = '';
beforeAll(async () => {
  server = await startApiServer({ controllers: ['*'] });
  namespace = await makeNamespace(server, 'e2e-endpoints');
  core = `/api/v1/namespaces/${namespace}`;
  slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
  await call(server.client, 'POST', '/api/v1/nodes', { body: { metadata: { name: 'node' } } });
});
afterAll(async () => server.stop());

const ports = [{ name: 'http', port: 80, targetPort: 80, protocol: 'TCP' }];

const get = async (path: string): ReturnType<typeof call> => call(server.client, 'GET', path);

const slicesOf = async (service: string, count: number): Promise<readonly unknown[]> => {
  const query = { labelSelector: `kubernetes.io/service-name=${service}` };
  const { body } = await eventually(
    async () => call(server.client, 'GET', slices, { query }),
    (answer) => listAt(answer.body, 'items').length === count,
  );
  return listAt(body, 'items');
};

const oneContainerPort = [{ name: 'example-name', containerPort: 3000 }];

async function runningPod(
  name: string,
  ip: string,
  labels: object,
  containerPorts: readonly object[] = oneContainerPort,
): Promise<void> {
  const { client } = server;
  const container = { name: 'c', image: 'nginx', ports: containerPorts };
  const made = await call(client, 'POST', `${core}/pods`, {
    body: { metadata: { name, labels }, spec: { nodeName: 'node', containers: [container] } },
  });
  expect(made.status).toBe(201);
  const status = {
    ...{ phase: 'Running', podIP: ip, podIPs: [{ ip }] },
    conditions: [{ type: 'Ready', status: 'True' }],
  };
  const ready = await call(client, 'PATCH', `${core}/pods/${name}/status`, {
    body: { status },
    contentType: 'application/merge-patch+json',
  });
  expect(ready.status).toBe(200);
}

test('[sig-network] Endpoints should test the lifecycle of an Endpoint', async () => {
  const { client } = server;
  const labels = { 'test-endpoint-static': 'true', 'endpointslice.kubernetes.io/skip-mirror': 'true' };
  const selector = { labelSelector: 'test-endpoint-static=true' };
  const subsets = [
    { addresses: [{ ip: '10.0.0.24' }], ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
  ];
  const start = textAt((await get(`${core}/endpoints`)).body, 'metadata', 'resourceVersion');
  const events = watchEvents(client, `${core}/endpoints`, { ...selector, resourceVersion: start }, 4);
  const made = await call(client, 'POST', `${core}/endpoints`, {
    body: { metadata: { name: 'testservice', labels }, subsets },
  });
  expect(made.status).toBe(201);
  const listed = await call(client, 'GET', '/api/v1/endpoints', { query: selector });
  expect(listAt(listed.body, 'items')).toHaveLength(1);
  const updated = await call(client, 'PUT', `${core}/endpoints/testservice`, {
    body: {
      ...made.body,
      metadata: { ...recordAt(made.body['metadata']), labels: { ...labels, updated: 'true' } },
    },
  });
  expect(textAt(updated.body, 'metadata', 'labels', 'updated')).toBe('true');
  const next = [
    { addresses: [{ ip: '10.0.0.25' }], ports: [{ name: 'http-test', port: 8080, protocol: 'TCP' }] },
  ];
  await call(client, 'PATCH', `${core}/endpoints/testservice`, {
    body: { metadata: { labels: { patched: 'true' } }, subsets: next },
    contentType: 'application/strategic-merge-patch+json',
  });
  const read = await get(`${core}/endpoints/testservice`);
  expect(read.body['subsets']).toEqual(next);
  expect((await call(client, 'DELETE', `${core}/endpoints`, { query: selector })).status).toBe(200);
  expect((await get(`${core}/endpoints/testservice`)).status).toBe(404);
  expect((await events).map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'MODIFIED', 'DELETED']);
});

test('[sig-network] EndpointsController should create and delete Endpoints for a Service with a selector that matches no pods', async () => {
  const { client } = server;
  await call(client, 'POST', `${core}/services`, {
    body: { metadata: { name: 'empty' }, spec: { selector: { 'does-not-match': 'anything' }, ports } },
  });
  const path = `${core}/endpoints/empty`;
  const { body } = await eventually(
    async () => get(path),
    ({ status }) => status === 200,
  );
  expect(listAt(body, 'subsets')).toEqual([]);
  await call(client, 'DELETE', `${core}/services/empty`);
  await eventually(
    async () => get(path),
    ({ status }) => status === 404,
  );
});

test('[sig-network] EndpointSlice should create and delete EndpointSlices for a Service with a selector that matches no pods', async () => {
  const { client } = server;
  await call(client, 'POST', `${core}/services`, {
    body: { metadata: { name: 'empty-slices' }, spec: { selector: { 'does-not-match': 'anything' }, ports } },
  });
  const [slice] = await slicesOf('empty-slices', 1);
  expect(slice).toMatchObject({ endpoints: null, ports: null, addressType: 'IPv4' });
  await call(client, 'DELETE', `${core}/services/empty-slices`);
  await slicesOf('empty-slices', 0);
});

test('[sig-network] EndpointSlice should support creating EndpointSlice API operations', async () => {
  await apiOperations(server, {
    ...{ root: '/apis/discovery.k8s.io/v1', plural: 'endpointslices', kind: 'EndpointSlice', namespace },
    objects: new Map(
      ['a', 'b', 'c'].map((name) => [
        name,
        { addressType: 'IPv4', endpoints: [{ addresses: ['1.2.3.4', '5.6.7.8'] }] },
      ]),
    ),
  });
});

test('[sig-network] EndpointSliceMirroring should mirror a custom Endpoints resource through create update and delete', async () => {
  const { client } = server;
  await call(client, 'POST', `${core}/services`, {
    body: { metadata: { name: 'mirrored' }, spec: { ports } },
  });
  const subsets = (ip: string): object[] => [{ addresses: [{ ip }], ports: [{ port: 80 }] }];
  await call(client, 'POST', `${core}/endpoints`, {
    body: { metadata: { name: 'mirrored' }, subsets: subsets('10.1.2.3') },
  });
  const [made] = await slicesOf('mirrored', 1);
  expect(made).toMatchObject({
    endpoints: [{ addresses: ['10.1.2.3'] }],
    ports: [{ name: '', port: 80 }],
  });
  await call(client, 'PUT', `${core}/endpoints/mirrored`, {
    body: { metadata: { name: 'mirrored' }, subsets: subsets('10.2.3.4') },
  });
  await eventually(
    async () =>
      call(client, 'GET', slices, { query: { labelSelector: 'kubernetes.io/service-name=mirrored' } }),
    ({ body }) => JSON.stringify(body).includes('10.2.3.4'),
  );
  await call(client, 'DELETE', `${core}/endpoints/mirrored`);
  await slicesOf('mirrored', 0);
});

test('[sig-network] EndpointsController should create Endpoints for Pods matching a Service', async () => {
  const { client } = server;
  await call(client, 'POST', `${core}/services`, {
    body: {
      metadata: { name: 'named' },
      spec: {
        selector: { test: 'endpoints' },
        publishNotReadyAddresses: true,
        ports: [{ name: 'example', port: 80, targetPort: 'example-name' }],
      },
    },
  });
  await runningPod('pod-1', '10.4.0.1', { test: 'endpoints' });
  await runningPod('pod-2', '10.4.0.2', { test: 'endpoints' });
  const { body } = await eventually(
    async () => get(`${core}/endpoints/named`),
    (answer) => listAt(listAt(answer.body, 'subsets')[0], 'addresses').length === 2,
  );
  expect(listAt(body, 'subsets')).toMatchObject([
    { addresses: [{ ip: '10.4.0.1' }, { ip: '10.4.0.2' }], ports: [{ name: 'example', port: 3000 }] },
  ]);
});

/** Waits until a Service has so many addresses in both kinds; returns its subsets and slices as `port: addresses`. */
async function published(
  service: string,
  addresses: number,
): Promise<{ subsets: string[]; slices: string[] }> {
  const texts = (groups: readonly unknown[], list: (group: unknown) => unknown[]): string[] =>
    groups.map((group) => `${portsOf(group)}: ${list(group).map(String).sort().join()}`).sort();
  const portsOf = (group: unknown): string =>
    listAt(group, 'ports')
      .map((port) => `${textAt(port, 'name')}=${String(recordAt(port)['port'])}`)
      .join();
  const query = { labelSelector: `kubernetes.io/service-name=${service}` };
  const count = (found: readonly string[]): number =>
    found.flatMap((text) => text.split(': ')[1]?.split(',') ?? []).filter((text) => text !== '').length;
  let found = { subsets: [''], slices: [''] };
  await expect
    .poll(
      async () => {
        const endpoints = await get(`${core}/endpoints/${service}`);
        const list = await call(server.client, 'GET', slices, { query });
        found = {
          subsets: texts(listAt(endpoints.body, 'subsets'), (subset) =>
            listAt(subset, 'addresses').map((address) => textAt(address, 'ip')),
          ),
          slices: texts(listAt(list.body, 'items'), (slice) =>
            listAt(slice, 'endpoints').flatMap((endpoint) => listAt(endpoint, 'addresses')),
          ),
        };
        const made = endpoints.status === 200 && found.slices.length > 0;
        return made && count(found.subsets) === addresses && count(found.slices) === addresses;
      },
      { timeout: 30_000 },
    )
    .toBe(true);
  return found;
}

test('[sig-network] EndpointSlice should create Endpoints and EndpointSlices for Pods matching a Service', async () => {
  const { client } = server;
  await runningPod('slice-pod1', '10.4.1.1', { pod1: 'on', shared12: 'on' });
  const others = [
    { name: 'example-name', containerPort: 3001 },
    { name: 'other-port', containerPort: 3002 },
  ];
  await runningPod('slice-pod2', '10.4.1.2', { pod2: 'on', shared12: 'on' }, others);
  const service = async (name: string, label: string, port: object): Promise<void> => {
    const made = await call(client, 'POST', `${core}/services`, {
      body: {
        metadata: { name },
        spec: { selector: { [label]: 'on' }, publishNotReadyAddresses: true, ports: [{ port: 80, ...port }] },
      },
    });
    expect(made.status).toBe(201);
  };
  await service('example-int-port', 'pod1', { name: 'example', targetPort: 3000 });
  await service('example-named-port', 'shared12', { name: 'http', targetPort: 'example-name' });
  await service('example-no-match', 'pod3', { name: 'example-no-match', targetPort: 8080 });

  const single = ['example=3000: 10.4.1.1'];
  expect(await published('example-int-port', 1)).toEqual({ subsets: single, slices: single });
  const twice = ['http=3000: 10.4.1.1', 'http=3001: 10.4.1.2'];
  expect(await published('example-named-port', 2)).toEqual({ subsets: twice, slices: twice });
  expect(await published('example-no-match', 0)).toEqual({ subsets: [], slices: [': '] });

  const query = { labelSelector: 'kubernetes.io/service-name=example-named-port' };
  const before = listAt((await call(client, 'GET', slices, { query })).body, 'items');
  expect((await call(client, 'DELETE', slices, { query })).status).toBe(200);
  expect(await published('example-named-port', 2)).toEqual({ subsets: twice, slices: twice });
  const after = listAt((await call(client, 'GET', slices, { query })).body, 'items');
  const uids = (items: readonly unknown[]): string[] => items.map((item) => textAt(item, 'metadata', 'uid'));
  expect(uids(after).filter((uid) => uids(before).includes(uid))).toEqual([]);
  expect(after[0]).toMatchObject({
    metadata: { labels: { 'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io' } },
    endpoints: [{ conditions: { ready: true }, targetRef: { kind: 'Pod', namespace } }],
  });
});

test('[sig-network] Services should serve endpoints on same port and different protocols', async () => {
  const { client } = server;
  await runningPod('protocols', '10.4.3.1', { test: 'protocols' });
  const both = [
    { name: 'tcp-port', port: 80, protocol: 'TCP', targetPort: 80 },
    { name: 'udp-port', port: 80, protocol: 'UDP', targetPort: 80 },
  ];
  const path = `${core}/services/multiprotocol`;
  await call(client, 'POST', `${core}/services`, {
    body: { metadata: { name: 'multiprotocol' }, spec: { selector: { test: 'protocols' }, ports: both } },
  });
  for (const wanted of [both, both.slice(0, 1), both.slice(1)]) {
    const { body } = await get(path);
    const spec = { ...recordAt(body, 'spec'), ports: wanted };
    expect((await call(client, 'PUT', path, { body: { ...body, spec } })).status).toBe(200);
    const names = wanted.map(({ name, protocol }) => `${name} ${protocol} 80`).sort();
    const told = (group: unknown): string[] =>
      listAt(group, 'ports')
        .map(
          (port) => `${textAt(port, 'name')} ${textAt(port, 'protocol')} ${String(recordAt(port)['port'])}`,
        )
        .sort();
    const query = { labelSelector: 'kubernetes.io/service-name=multiprotocol' };
    await expect
      .poll(
        async () => {
          const endpoints = await get(`${core}/endpoints/multiprotocol`);
          const list = await call(client, 'GET', slices, { query });
          return [listAt(endpoints.body, 'subsets').map(told), listAt(list.body, 'items').map(told)];
        },
        { timeout: 30_000 },
      )
      .toEqual([[names], [names]]);
  }
});

test.each(['multiple ports', 'multiple endpoint IPs'])(
  '[sig-network] EndpointSlice should support a Service with %s specified in multiple EndpointSlices',
  async (title) => {
    const { client } = server;
    const name = `custom-${title.replaceAll(' ', '-').toLowerCase()}`;
    await call(client, 'POST', `${core}/services`, {
      body: {
        metadata: { name },
        spec: {
          ports: [
            { name: 'port80', port: 80 },
            { name: 'port81', port: 81 },
          ],
        },
      },
    });
    const labels = {
      'kubernetes.io/service-name': name,
      'endpointslice.kubernetes.io/managed-by': `e2e-test${namespace}`,
    };
    for (const [i, port] of ['port80', 'port81'].entries()) {
      const made = await call(client, 'POST', slices, {
        body: {
          ...{ metadata: { generateName: 'e2e-custom-slice', labels }, addressType: 'IPv4' },
          endpoints: [{ addresses: [`10.4.4.${i + 1}`], conditions: { ready: true } }],
          ports: [{ name: port, port: 8090 + i, protocol: 'TCP' }],
        },
      });
      expect([made.status, textAt(made.body, 'metadata', 'name')]).toEqual([
        201,
        expect.stringMatching(/^e2e-custom-slice.{5}$/),
      ]);
    }
    // Nobody else writes slices of a Service without a selector.
    expect(await slicesOf(name, 2)).toHaveLength(2);
  },
);

test('[sig-network] EndpointSliceMirroring should mirror a custom Endpoint with multiple subsets and same IP address', async () => {
  const { client } = server;
  await call(client, 'POST', `${core}/services`, {
    body: {
      metadata: { name: 'subsets' },
      spec: {
        ports: [
          { name: 'port80', port: 80 },
          { name: 'port81', port: 81 },
        ],
      },
    },
  });
  const subset = (name: string, port: number): object => ({
    ...{ addresses: [{ ip: '10.4.5.1' }], ports: [{ name, port }] },
  });
  await call(client, 'POST', `${core}/endpoints`, {
    body: { metadata: { name: 'subsets' }, subsets: [subset('port80', 8090), subset('port81', 9090)] },
  });
  // The API server packs subsets of the same addresses into one (`RepackSubsets`).
  const [slice] = await slicesOf('subsets', 1);
  expect(listAt(slice, 'endpoints')).toMatchObject([{ addresses: ['10.4.5.1'] }]);
  const ports = listAt(slice, 'ports').map(
    (port) => `${textAt(port, 'name')} ${String(recordAt(port)['port'])}`,
  );
  // Their order is that of a hash.
  expect(new Set(ports)).toEqual(new Set(['port80 8090', 'port81 9090']));
  await call(client, 'DELETE', `${core}/endpoints/subsets`);
  await slicesOf('subsets', 0);
});

test('[sig-network] [Feature:ServiceCIDRs] should create Services and serve on different Service CIDRs', async () => {
  const { client } = server;
  const path = '/apis/networking.k8s.io/v1/servicecidrs';
  await call(client, 'POST', path, {
    body: { metadata: { name: 'test-svc-cidr' }, spec: { cidrs: ['10.196.196.0/24'] } },
  });
  await eventually(
    async () => get(`${path}/test-svc-cidr`),
    ({ body }) =>
      listAt(body, 'status', 'conditions').some(
        (condition) => textAt(condition, 'type') === 'Ready' && textAt(condition, 'status') === 'True',
      ),
  );
  const made = await call(client, 'POST', `${core}/services`, {
    body: {
      metadata: { name: 'cidr1-test' },
      spec: {
        clusterIP: '10.196.196.77',
        type: 'NodePort',
        ports: [{ name: 'http', port: 80, targetPort: 9376 }],
      },
    },
  });
  expect([made.status, textAt(made.body, 'spec', 'clusterIP')]).toEqual([201, '10.196.196.77']);
});

test('[sig-network] Service endpoints latency should not be very high', async () => {
  const { client } = server;
  await runningPod('latency', '10.4.2.1', { test: 'latency' });
  const count = 50;
  const names = Array.from({ length: count }, (_, n) => `latency-${n}`);
  const start = textAt((await get(`${core}/endpoints`)).body, 'metadata', 'resourceVersion');
  const waiting = new Set(names);
  const filled = watchUntil(client, `${core}/endpoints`, { resourceVersion: start }, ({ object }) => {
    waiting.delete(textAt(object, 'metadata', 'name'));
    return waiting.size === 0;
  });
  await Promise.all(
    names.map(async (name) =>
      call(client, 'POST', `${core}/services`, {
        body: { metadata: { name }, spec: { selector: { test: 'latency' }, ports } },
      }),
    ),
  );
  await filled;
  expect(waiting).toEqual(new Set());
});
