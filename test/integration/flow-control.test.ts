import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { eventually } from '../support/api-operations.ts';
import { call } from '../support/test-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(async () => server.stop());

const path = '/apis/flowcontrol.apiserver.k8s.io/v1';
const merge = 'application/merge-patch+json';
const get = async (what: string, accept?: string) =>
  call(server.client, 'GET', what, accept === undefined ? {} : { headers: { accept } });

describe('priority and fairness', () => {
  test('a cluster starts with what kube-apiserver makes, shown in the order in which requests are compared', async () => {
    const table = 'application/json;as=Table;g=meta.k8s.io;v=v1';
    const schemas = await get(`${path}/flowschemas`, table);
    const cells = listAt(schemas.body, 'rows').map((row) => listAt(row, 'cells'));
    expect(cells.map(([name, level, precedence]) => [name, level, precedence])).toEqual([
      ['exempt', 'exempt', 1],
      ['probes', 'exempt', 2],
      ['system-leader-election', 'leader-election', 100],
      ['system-node-high', 'node-high', 400],
      ['system-nodes', 'system', 500],
      ['kube-controller-manager', 'workload-high', 800],
      ['kube-scheduler', 'workload-high', 800],
      ['kube-system-service-accounts', 'workload-high', 900],
      ['service-accounts', 'workload-low', 9000],
      ['global-default', 'global-default', 9900],
      ['catch-all', 'catch-all', 10_000],
    ]);
    const levels = await get(`${path}/prioritylevelconfigurations`, table);
    expect(listAt(levels.body, 'rows').map((row) => listAt(row, 'cells').slice(0, 6))).toEqual([
      ['catch-all', 'Limited', 5, '<none>', '<none>', '<none>'],
      ['exempt', 'Exempt', '<none>', '<none>', '<none>', '<none>'],
      ['global-default', 'Limited', 20, 128, 6, 50],
      ['leader-election', 'Limited', 10, 16, 4, 50],
      ['node-high', 'Limited', 40, 64, 6, 50],
      ['system', 'Limited', 30, 64, 6, 50],
      ['workload-high', 'Limited', 40, 128, 6, 50],
      ['workload-low', 'Limited', 100, 128, 6, 50],
    ]);
  });

  test('what is changed of it or deleted comes back, unless its annotation gives it to others', async () => {
    const levels = `${path}/prioritylevelconfigurations`;
    const change = async (name: string, body: object) =>
      call(server.client, 'PATCH', `${levels}/${name}`, { body, contentType: merge });
    const spec = { limited: { nominalConcurrencyShares: 77 } };
    const mine = { metadata: { annotations: { 'apf.kubernetes.io/autoupdate-spec': 'false' } }, spec };
    expect((await change('workload-high', mine)).status).toBe(200);
    expect((await change('exempt', { spec: { exempt: { lendablePercent: 50 } } })).status).toBe(200);
    expect((await change('system', { spec })).status).toBe(200);
    expect((await call(server.client, 'DELETE', `${levels}/node-high`)).status).toBe(200);
    const shares = (body: unknown) => recordAt(body, 'spec', 'limited')['nominalConcurrencyShares'];
    await eventually(
      () => get(`${levels}/system`),
      ({ body }) => shares(body) === 30,
    );
    await eventually(
      () => get(`${levels}/node-high`),
      ({ status }) => status === 200,
    );
    expect(shares((await get(`${levels}/workload-high`)).body)).toBe(77);
    expect(recordAt((await get(`${levels}/exempt`)).body, 'spec', 'exempt')['lendablePercent']).toBe(50);
  }, 30_000);

  test.each([
    ['admin', '', '/api/v1/pods', 'exempt', 'exempt'],
    ['jane', '', '/readyz', 'probes', 'exempt'],
    ['jane', '', '/api/v1/pods', 'global-default', 'global-default'],
    ['system:node:node-1', 'system:nodes', '/api/v1/nodes', 'system-node-high', 'node-high'],
    ['system:node:node-1', 'system:nodes', '/api/v1/pods', 'system-nodes', 'system'],
    [
      ...['system:kube-scheduler', '', '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases'],
      ...['kube-scheduler', 'workload-high'],
    ],
    [
      ...['system:serviceaccount:kube-system:x', 'system:serviceaccounts', '/api/v1/pods'],
      ...['kube-system-service-accounts', 'workload-high'],
    ],
    [
      ...['system:serviceaccount:shop:x', 'system:serviceaccounts', '/api/v1/namespaces/shop/pods'],
      ...['service-accounts', 'workload-low'],
    ],
  ] as const)('a request of %s in %j for %s is of %s', async (user, group, target, schema, level) => {
    const headers: Record<string, string> =
      user === 'admin'
        ? {}
        : { 'impersonate-user': user, 'impersonate-group': group === '' ? 'system:authenticated' : group };
    const answer = await server.client.request('GET', target, { headers });
    const uid = async (what: string) => textAt((await get(`${path}/${what}`)).body, 'metadata', 'uid');
    expect([
      answer.headers['x-kubernetes-pf-flowschema-uid'],
      answer.headers['x-kubernetes-pf-prioritylevel-uid'],
    ]).toEqual([await uid(`flowschemas/${schema}`), await uid(`prioritylevelconfigurations/${level}`)]);
  });

  test('a schema of a user’s own counts from its creation to its end', async () => {
    const of = async () =>
      (
        await server.client.request('GET', '/version', {
          headers: { 'impersonate-user': 'jane', 'impersonate-group': 'system:authenticated' },
        })
      ).headers['x-kubernetes-pf-flowschema-uid'];
    const before = await of();
    const created = await call(server.client, 'POST', `${path}/flowschemas`, {
      body: {
        apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
        kind: 'FlowSchema',
        metadata: { name: 'versions' },
        spec: {
          priorityLevelConfiguration: { name: 'workload-low' },
          matchingPrecedence: 50,
          rules: [
            {
              subjects: [{ kind: 'User', user: { name: 'jane' } }],
              nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz/*', '/version'] }],
            },
          ],
        },
      },
    });
    expect(created).toMatchObject({ status: 201 });
    expect(await of()).toBe(textAt(created.body, 'metadata', 'uid'));
    expect((await call(server.client, 'DELETE', `${path}/flowschemas/versions`)).status).toBe(200);
    expect(await of()).toBe(before);
  });
});

test('extension API servers find in a ConfigMap whose client certificates are good', async () => {
  const map = await get('/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication');
  expect(Object.keys(recordAt(map.body, 'data'))).toEqual([
    'client-ca-file',
    ...['allowed-names', 'client-ca-file', 'extra-headers-prefix', 'group-headers', 'uid-headers'].map(
      (name) => `requestheader-${name}`,
    ),
    'requestheader-username-headers',
  ]);
  expect(textAt(map.body, 'data', 'client-ca-file').trim()).toBe(server.ca.trim());
});
