import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { at } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call, type Answer } from '../support/test-server.ts';

/** What new objects bring along of what the server sets (`Store.create`, `DryRunnableStorage`, etcd3's `Create`). */
let server: TestServer;
const configMaps = '/api/v1/namespaces/default/configmaps';
const services = '/api/v1/namespaces/default/services';
beforeAll(async () => {
  server = await startApiServer({ controllers: [] });
});
afterAll(async () => server.stop());

const create = async (metadata: JsonRecord, query: Record<string, string> = {}): Promise<Answer> =>
  call(server.client, 'POST', configMaps, { body: { metadata }, query });
const put = async (metadata: JsonRecord, query: Record<string, string> = {}): Promise<Answer> =>
  call(server.client, 'PUT', `${services}/${String(metadata['name'])}`, {
    body: { metadata, spec: { clusterIP: 'None' } },
    query,
  });

describe('a resourceVersion', () => {
  test('is refused on a create only if it is a number', async () => {
    const refused = await create({ name: 'versioned', resourceVersion: '7' });
    expect([refused.status, refused.body['message']]).toEqual([
      500,
      'resourceVersion should not be set on objects to be created',
    ]);
    const made = await create({ name: 'versioned', resourceVersion: 'x' });
    expect(made.status).toBe(201);
    expect(at(made.body, 'metadata', 'resourceVersion')).toMatch(/^\d+$/);
  });

  test('comes back from a dry run, which refuses a name that is taken before', async () => {
    const dryRun = { dryRun: 'All' };
    const made = await create({ name: 'dry', resourceVersion: '7' }, dryRun);
    expect([made.status, at(made.body, 'metadata', 'resourceVersion')]).toEqual([201, '7']);
    const replaced = await put({ name: 'dry', resourceVersion: '7' }, dryRun);
    expect([replaced.status, at(replaced.body, 'metadata', 'resourceVersion')]).toEqual([201, '7']);
    await create({ name: 'taken' });
    expect((await create({ name: 'taken', resourceVersion: '7' }, dryRun)).status).toBe(409);
  });

  test('of an object that a PUT creates must be a number', async () => {
    const refused = await put({ name: 'put', resourceVersion: 'x' });
    expect([refused.status, refused.body['message']]).toEqual([
      500,
      'strconv.ParseUint: parsing "x": invalid syntax',
    ]);
    const tooLong = await put({ name: 'put', resourceVersion: '99999999999999999999' });
    expect(tooLong.body['message']).toBe(
      'strconv.ParseUint: parsing "99999999999999999999": value out of range',
    );
    expect((await put({ name: 'put', resourceVersion: '7' })).status).toBe(201);
  });
});

test('a taken name beside a generateName has the error of a generated one', async () => {
  await create({ name: 'both', generateName: 'web-' });
  const { status, body } = await create({ name: 'both', generateName: 'web-' });
  expect(status).toBe(409);
  expect(body).toMatchObject({
    message:
      'configmaps "both" already exists, the server was not able to generate a unique name for the object',
    details: { name: 'both', kind: 'configmaps', retryAfterSeconds: 1 },
  });
});

test.each([
  ['POST', 'application/json'],
  ['PUT', 'application/json'],
  ['PATCH', 'application/apply-patch+yaml'],
])(
  'an object that a %s creates brings nothing along of what the server sets',
  async (method, contentType) => {
    const name = `brings-${method.toLowerCase()}`;
    const metadata = {
      name,
      creationTimestamp: '2001-01-01T00:00:00Z',
      deletionTimestamp: '2001-01-01T00:00:00Z',
      deletionGracePeriodSeconds: 5,
      selfLink: '/x',
    };
    const body = { apiVersion: 'v1', kind: 'Service', metadata, spec: { clusterIP: 'None' } };
    const path = method === 'POST' ? services : `${services}/${name}`;
    const query = { fieldManager: 'm' };
    const made = await call(server.client, method, path, { body, contentType, query });
    expect(made.status).toBe(201);
    expect(at(made.body, 'metadata', 'creationTimestamp')).not.toBe(metadata.creationTimestamp);
    for (const field of ['deletionTimestamp', 'deletionGracePeriodSeconds', 'selfLink'])
      expect(at(made.body, 'metadata', field)).toBeUndefined();
  },
);

test.each(['PUT', 'PATCH'])(
  'a %s to the /status of a Service that there is not creates it without an address',
  async (method) => {
    const name = `status-${method.toLowerCase()}`;
    const body = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { ports: [{ port: 80 }] },
      status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
    };
    const contentType = method === 'PUT' ? 'application/json' : 'application/apply-patch+yaml';
    const query = { fieldManager: 'm' };
    const created = await call(server.client, method, `${services}/${name}/status`, {
      body,
      contentType,
      query,
    });
    expect(created.status).toBe(201);
    expect(created.body).toMatchObject({ spec: { type: 'ClusterIP' }, status: { loadBalancer: {} } });
    expect(at(created.body, 'spec', 'clusterIP')).toBeUndefined();
  },
);

describe('a namespace that terminates', () => {
  const namespace = '/api/v1/namespaces/going';
  beforeAll(async () => {
    const body = { metadata: { name: 'going' } };
    await call(server.client, 'POST', '/api/v1/namespaces', { body });
    const spec = { containers: [{ name: 'c', image: 'i' }] };
    await call(server.client, 'POST', `${namespace}/pods`, { body: { metadata: { name: 'p' }, spec } });
    await call(server.client, 'DELETE', namespace);
  });

  const refusal = (subject: string): string =>
    `${subject} is forbidden: unable to create new content in namespace going because it is being terminated`;

  test.each([
    [{ generateName: 'web-' }, 'configmaps "web-"'],
    [{}, 'configmaps "Unknown"'],
    [{ name: 'a', generateName: 'web-' }, 'configmaps "a"'],
  ])('takes no object with the metadata %j', async (metadata, subject) => {
    const { status, body } = await call(server.client, 'POST', `${namespace}/configmaps`, {
      body: { metadata },
    });
    expect([status, body['message']]).toEqual([403, refusal(subject)]);
  });

  test.each([
    ['eviction', { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p' } }],
    [
      'binding',
      { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'p' }, target: { kind: 'Node', name: 'n' } },
    ],
  ])('takes no %s of its Pods', async (subresource, sent) => {
    const path = `${namespace}/pods/p/${subresource}`;
    const { status, body } = await call(server.client, 'POST', path, { body: sent });
    expect([status, body['message']]).toEqual([403, refusal('pods "p"')]);
    expect(body).toMatchObject({ details: { causes: [{ reason: 'NamespaceTerminating' }] } });
  });
});

describe('owner references that are repeated', () => {
  const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'o', uid: 'u' };
  const repeated = { ownerReferences: [owner, owner] };
  const warning = (where: string): string =>
    `.metadata.ownerReferences contains duplicate entries${where}; API server dedups owner references in 1.20+, and ` +
    'may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u';

  test('are dropped of what a PUT creates and updates, with a warning', async () => {
    for (const status of [201, 200]) {
      const answer = await put({ name: 'owned', ...repeated });
      expect([answer.status, answer.warnings]).toEqual([status, [warning('')]]);
      expect(at(answer.body, 'metadata', 'ownerReferences')).toEqual([owner]);
    }
  });

  test('are reported as admission left them when a patch brings them', async () => {
    await put({ name: 'patched' });
    const patched = await call(server.client, 'PATCH', `${services}/patched`, {
      body: { metadata: repeated },
      contentType: 'application/merge-patch+json',
    });
    expect(patched.warnings).toEqual([warning(' after mutating admission happens')]);
    expect(at(patched.body, 'metadata', 'ownerReferences')).toEqual([owner]);
  });
});
