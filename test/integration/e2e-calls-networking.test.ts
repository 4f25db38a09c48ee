import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../src/objects/read.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { apiOperations, makeNamespace } from '../support/api-operations.ts';
import { call, watchEvents } from '../support/test-server.ts';

/** The calls of e2e tests of networking.k8s.io kinds and of the API server's own Service; titles are theirs. */
let server: TestServer;
let namespace = '';
beforeAll(async () => {
  server = await startApiServer();
  namespace = await makeNamespace(server, 'e2e-networking');
});
afterAll(async () => server.stop());

const root = '/apis/networking.k8s.io/v1';
/** The same object three times, as the tests have it. */
const thrice = (object: JsonRecord): Map<string, JsonRecord> =>
  new Map(['first', 'second', 'third'].map((name) => [name, object]));

test('[sig-network] Ingress API should support creating Ingress API operations', async () => {
  const service = { name: 'default-backend', port: { number: 80 } };
  await apiOperations(server, {
    ...{ root, plural: 'ingresses', kind: 'Ingress', namespace },
    objects: thrice({ spec: { defaultBackend: { service } } }),
    status: { loadBalancer: { ingress: [{ ip: '169.1.1.1' }] } },
  });
});

test('[sig-network] IngressClass API should support creating IngressClass API operations', async () => {
  await apiOperations(server, {
    ...{ root, plural: 'ingressclasses', kind: 'IngressClass', namespace: undefined },
    objects: thrice({ spec: { controller: 'example.com/controller' } }),
  });
});

const policy = { podSelector: {}, ingress: [{ from: [{ podSelector: { matchLabels: { a: 'b' } } }] }] };

test('[sig-network] Netpol API should support creating NetworkPolicy API operations', async () => {
  await apiOperations(server, {
    ...{ root, plural: 'networkpolicies', kind: 'NetworkPolicy', namespace },
    objects: thrice({ spec: policy }),
  });
});

test('[sig-network] Netpol API should support creating NetworkPolicy API with endport field', async () => {
  const path = `${root}/namespaces/${namespace}/networkpolicies`;
  const egress = [{ ports: [{ port: 30000, endPort: 32768, protocol: 'TCP' }] }];
  await call(server.client, 'POST', path, {
    body: { metadata: { name: 'endport' }, spec: { podSelector: {}, egress } },
  });
  const { body } = await call(server.client, 'GET', `${path}/endport`);
  expect(listAt(body, 'spec', 'egress')).toEqual(egress);
  expect(listAt(body, 'spec', 'policyTypes')).toEqual(['Ingress', 'Egress']);
});

test('[sig-network] ServiceCIDR and IPAddress API should support ServiceCIDR API operations', async () => {
  const { client } = server;
  const found = await call(client, 'GET', `${root}/servicecidrs/kubernetes`);
  expect(listAt(found.body, 'spec', 'cidrs')).toEqual(['10.96.0.0/16']);
  expect((await call(client, 'GET', `${root}/servicecidrs/kubernetes/status`)).status).toBe(200);
  const list = await call(client, 'GET', `${root}/servicecidrs`);
  expect(list.body['kind']).toBe('ServiceCIDRList');
  const resourceVersion = textAt(list.body, 'metadata', 'resourceVersion');
  const events = watchEvents(client, `${root}/servicecidrs`, { resourceVersion }, 1);
  await call(client, 'PATCH', `${root}/servicecidrs/kubernetes`, {
    body: { metadata: { annotations: { watched: 'true' } } },
    contentType: 'application/merge-patch+json',
  });
  expect((await events).map(({ type }) => type)).toEqual(['MODIFIED']);
});

test('[sig-network] ServiceCIDR and IPAddress API should support IPAddress API operations', async () => {
  const parentRef = { group: '', resource: 'services', name: 'dummy', namespace: 'dummy' };
  await apiOperations(server, {
    ...{ root, plural: 'ipaddresses', kind: 'IPAddress', namespace: undefined },
    objects: new Map(
      ['255.255.255.255', 'fe80::42:1dff:fe84:f9e2'].map((name) => [name, { spec: { parentRef } }]),
    ),
  });
});

describe('the default IngressClass', () => {
  const isDefault = { 'ingressclass.kubernetes.io/is-default-class': 'true' };
  const makeClass = async (name: string, annotations: object = isDefault): Promise<void> => {
    const made = await call(server.client, 'POST', `${root}/ingressclasses`, {
      body: { metadata: { name, annotations }, spec: { controller: `example.com/${name}` } },
    });
    expect(made.status).toBe(201);
  };
  const classOf = async (name: string): Promise<unknown> => {
    const service = { name: 'a', port: { number: 80 } };
    const made = await call(server.client, 'POST', `${root}/namespaces/${namespace}/ingresses`, {
      body: { metadata: { name }, spec: { defaultBackend: { service } } },
    });
    expect(made.status).toBe(201);
    return recordAt(made.body['spec'])['ingressClassName'];
  };
  const clear = async (): Promise<unknown> => call(server.client, 'DELETE', `${root}/ingressclasses`);

  test('[sig-network] IngressClass [Feature:Ingress] should set default value on new IngressClass [Serial]', async () => {
    await makeClass('default-class');
    expect(await classOf('gets-default')).toBe('default-class');
    await clear();
  });

  test('[sig-network] IngressClass [Feature:Ingress] should not set default value if no default IngressClass [Serial]', async () => {
    await makeClass('plain-class', {});
    expect(await classOf('gets-none')).toBeUndefined();
    await clear();
  });

  test('[sig-network] IngressClass [Feature:Ingress] should choose the one with the later CreationTimestamp, if equal the one with the lower name when two ingressClasses are marked as default [Serial]', async () => {
    await makeClass('b-class');
    await makeClass('a-class');
    // made within the same second most of the time: then the lower name, else the later one, is the same class
    expect(await classOf('gets-one')).toBe('a-class');
    await clear();
  });

  test('[sig-network] IngressClass [Feature:Ingress] should allow IngressClass to have Namespace-scoped parameters [Serial]', async () => {
    const parameters = { scope: 'Namespace', namespace: 'params', kind: 'Service', name: 'p' };
    const made = await call(server.client, 'POST', `${root}/ingressclasses`, {
      body: { metadata: { name: 'with-parameters' }, spec: { controller: 'example.com/x', parameters } },
    });
    expect(made.status).toBe(201);
    expect(recordAt(made.body, 'spec', 'parameters')).toMatchObject({
      scope: 'Namespace',
      namespace: 'params',
    });
    await clear();
  });
});

test('[sig-network] API Server should provide secure master service', async () => {
  const { body } = await call(server.client, 'GET', '/api/v1/namespaces/default/services/kubernetes');
  expect(listAt(body, 'spec', 'ports')).toMatchObject([{ name: 'https', port: 443 }]);
});

test('[sig-network] API Server should have Endpoints and EndpointSlices pointing to API Server', async () => {
  const { client } = server;
  const endpoints = await call(client, 'GET', '/api/v1/namespaces/default/endpoints/kubernetes');
  const slice = await call(
    client,
    'GET',
    '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes',
  );
  const [subset] = listAt(endpoints.body, 'subsets');
  const [endpoint] = listAt(slice.body, 'endpoints');
  expect(listAt(subset, 'addresses').map((address) => textAt(address, 'ip'))).toEqual(
    listAt(endpoint, 'addresses'),
  );
  expect(listAt(subset, 'ports')).toEqual(listAt(slice.body, 'ports'));
  expect(textAt(slice.body, 'metadata', 'labels', 'kubernetes.io/service-name')).toBe('kubernetes');
});

test('[sig-network] Networking should provide unchanging, static URL paths for kubernetes api services', async () => {
  for (const path of ['/healthz', '/api', '/apis', '/metrics', '/openapi/v2', '/version']) {
    const response = await server.client.request('GET', path);
    expect([path, response.status, response.bytes.length > 0]).toEqual([path, 200, true]);
  }
});

describe('two families', () => {
  let dual: TestServer;
  beforeAll(async () => {
    dual = await startApiServer({ serviceClusterIpRange: '10.96.0.0/16,fd00:10:96::/112' });
  });
  afterAll(async () => dual.stop());

  test.each([
    [
      'should create a single stack service with cluster ip from primary service range',
      {},
      'SingleStack',
      ['IPv4'],
    ],
    ['should create service with ipv4 cluster ip', { ipFamilies: ['IPv4'] }, 'SingleStack', ['IPv4']],
    ['should create service with ipv6 cluster ip', { ipFamilies: ['IPv6'] }, 'SingleStack', ['IPv6']],
    [
      'should create service with ipv4,v6 cluster ip',
      { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv4', 'IPv6'] },
      'RequireDualStack',
      ['IPv4', 'IPv6'],
    ],
    [
      'should create service with ipv6,v4 cluster ip',
      { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6', 'IPv4'] },
      'RequireDualStack',
      ['IPv6', 'IPv4'],
    ],
  ])('[sig-network] [Feature:IPv6DualStack] %s', async (_title, fields, policyWanted, families) => {
    const path = '/api/v1/namespaces/default/services';
    const made = await call(dual.client, 'POST', path, {
      body: { metadata: { generateName: 'dual-' }, spec: { ports: [{ port: 80 }], ...fields } },
    });
    expect(made.status).toBe(201);
    expect(textAt(made.body, 'spec', 'ipFamilyPolicy')).toBe(policyWanted);
    expect(listAt(made.body, 'spec', 'ipFamilies')).toEqual(families);
    const addresses = listAt(made.body, 'spec', 'clusterIPs').map(String);
    expect(addresses.map((address) => (address.includes(':') ? 'IPv6' : 'IPv4'))).toEqual(families);
    expect(textAt(made.body, 'spec', 'clusterIP')).toBe(addresses[0]);
  });
});
