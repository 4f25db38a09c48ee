import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answer, call } from '../support/test-server.ts';

let server: TestServer;
let namespace = '';
let round = 0;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(async () => server.stop());
beforeEach(async () => {
  namespace = `quota-${++round}`;
  await send('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
});

async function send(
  method: string,
  path: string,
  body?: unknown,
  query: Record<string, string> = {},
): Promise<Answer> {
  return call(server.client, method, path, { body, query });
}

function url(plural: string, name = ''): string {
  return `/api/v1/namespaces/${namespace}/${plural}${name === '' ? '' : `/${name}`}`;
}

async function limit(hard: Record<string, string>, spec: object = {}): Promise<void> {
  expect(
    (await send('POST', url('resourcequotas'), { metadata: { name: 'q' }, spec: { hard, ...spec } })).status,
  ).toBe(201);
  await untilUsed(Object.fromEntries(Object.keys(hard).map((name) => [name, '0'])));
}

async function used(): Promise<object> {
  return recordAt((await send('GET', url('resourcequotas', 'q'))).body, 'status', 'used');
}

/** The test's timeout bounds it. */
async function untilUsed(expected: object): Promise<void> {
  await expect.poll(used).toEqual(expected);
}

function service(name: string, type: string, count = 1): object {
  const ports = Array.from({ length: count }, (_, i) => ({ name: `p${i}`, port: 80 + i }));
  return { metadata: { name }, spec: { type, ports } };
}

test('captures the life of Services', async () => {
  await limit({
    services: '3',
    'services.nodeports': '2',
    'services.loadbalancers': '1',
    'count/services': '10',
  });
  expect((await send('POST', url('services'), service('plain', 'ClusterIP'))).status).toBe(201);
  expect((await send('POST', url('services'), service('ported', 'NodePort'))).status).toBe(201);
  expect(await used()).toEqual({
    services: '2',
    'services.nodeports': '1',
    'services.loadbalancers': '0',
    'count/services': '2',
  });

  const refused = await send('POST', url('services'), service('balanced', 'LoadBalancer', 2));
  expect(refused.status).toBe(403);
  expect(refused.body).toMatchObject({
    reason: 'Forbidden',
    message:
      'services "balanced" is forbidden: exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=1, limited: services.nodeports=2',
    details: { name: 'balanced', kind: 'services' },
  });
  expect((await send('POST', url('services'), service('balanced', 'LoadBalancer'))).status).toBe(201);
  expect((await send('POST', url('services'), service('more', 'ClusterIP'))).body['message']).toContain(
    'exceeded quota: q, requested: services=1, used: services=3, limited: services=3',
  );
  const full = {
    services: '3',
    'services.nodeports': '2',
    'services.loadbalancers': '1',
    'count/services': '3',
  };
  expect(await used()).toEqual(full);

  expect(
    (await send('PUT', url('services', 'plain'), service('plain', 'NodePort'))).body['message'],
  ).toContain('services.nodeports=1');
  expect((await send('PUT', url('services', 'ported'), service('ported', 'ClusterIP'))).status).toBe(200);
  await untilUsed({ ...full, 'services.nodeports': '1' });
  await send('DELETE', url('services'));
  await untilUsed({
    services: '0',
    'services.nodeports': '0',
    'services.loadbalancers': '0',
    'count/services': '0',
  });
});

test('holds against many at once', async () => {
  await limit({ configmaps: '5' });
  const answers = await Promise.all(
    Array.from({ length: 20 }, async (_, i) =>
      send('POST', url('configmaps'), { metadata: { name: `c${i}` } }),
    ),
  );
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(5);
  expect(answers.filter(({ status }) => status === 403)).toHaveLength(15);
  expect(await used()).toEqual({ configmaps: '5' });
});

test('takes back what a create used that failed after all', async () => {
  await limit({ secrets: '5' });
  await send('POST', url('secrets'), { metadata: { name: 's' } });
  expect((await send('POST', url('secrets'), { metadata: { name: 's' } })).status).toBe(409);
  await untilUsed({ secrets: '1' });
});

test('counts what was there before it, and follows its own limits', async () => {
  for (const name of ['a', 'b']) await send('POST', url('configmaps'), { metadata: { name } });
  await send('POST', url('resourcequotas'), { metadata: { name: 'q' }, spec: { hard: { configmaps: '2' } } });
  await untilUsed({ configmaps: '2' });
  expect((await send('POST', url('configmaps'), { metadata: { name: 'c' } })).status).toBe(403);
  await send('PUT', url('resourcequotas', 'q'), {
    metadata: { name: 'q' },
    spec: { hard: { configmaps: '3', 'count/leases.coordination.k8s.io': '1' } },
  });
  await untilUsed({ configmaps: '2', 'count/leases.coordination.k8s.io': '0' });
  expect((await send('POST', url('configmaps'), { metadata: { name: 'c' } })).status).toBe(201);
});

test('a dry run uses nothing, but is refused where there is no room', async () => {
  await limit({ configmaps: '1' });
  expect((await send('POST', url('configmaps'), { metadata: { name: 'a' } }, { dryRun: 'All' })).status).toBe(
    201,
  );
  expect(await used()).toEqual({ configmaps: '0' });
  await send('POST', url('configmaps'), { metadata: { name: 'a' } });
  expect((await send('POST', url('configmaps'), { metadata: { name: 'b' } }, { dryRun: 'All' })).status).toBe(
    403,
  );
});

describe('Pods', () => {
  const pod = (name: string, requests: object = {}) => ({
    metadata: { name },
    spec: { containers: [{ name: 'c', image: 'x', resources: { requests } }] },
  });

  test('must say what they ask for', async () => {
    await limit({ 'requests.cpu': '1', 'requests.memory': '1Gi' });
    const { status, body } = await send('POST', url('pods'), pod('p', { cpu: '1' }));
    expect(status).toBe(403);
    expect(body['message']).toBe(
      'pods "p" is forbidden: failed quota: q: must specify requests.memory for: c',
    );
    expect((await send('POST', url('pods'), pod('p', { cpu: '750m', memory: '512Mi' }))).status).toBe(201);
    expect(await used()).toEqual({ 'requests.cpu': '750m', 'requests.memory': '512Mi' });
    expect(
      textAt((await send('POST', url('pods'), pod('q', { cpu: '500m', memory: '1Mi' }))).body, 'message'),
    ).toBe(
      'pods "q" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=750m, limited: requests.cpu=1',
    );
  });

  test('count from the update on that brings them into a scope', async () => {
    const matchExpressions = [{ scopeName: 'Terminating', operator: 'Exists' }];
    await limit({ pods: '1' }, { scopeSelector: { matchExpressions } });
    const bounded = (name: string, spec: object = { activeDeadlineSeconds: 3600 }): object => ({
      metadata: { name },
      spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
    });
    const first = await send('POST', url('pods'), bounded('first', {}));
    const changed = { ...first.body, spec: { ...recordAt(first.body, 'spec'), activeDeadlineSeconds: 3600 } };
    expect([first.status, (await send('PUT', url('pods', 'first'), changed)).status]).toEqual([201, 200]);
    // At once: the quota has not been counted again.
    expect((await send('POST', url('pods'), bounded('second'))).status).toBe(403);
    expect(await used()).toEqual({ pods: '1' });
  });

  test('count only for quotas whose scopes they are in', async () => {
    await limit({ pods: '1' }, { scopes: ['BestEffort'] });
    expect((await send('POST', url('pods'), pod('a', { cpu: '1' }))).status).toBe(201);
    expect((await send('POST', url('pods'), pod('b'))).status).toBe(201);
    expect((await send('POST', url('pods'), pod('c'))).status).toBe(403);
  });
});
