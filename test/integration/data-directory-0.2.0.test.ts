import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, chmodSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { at, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

/**
 * What `up --data-dir` of version 0.2.0 left when it ended: a snapshot, two logs and the identity of a cluster of its
 * own. Its Services, custom objects and the rest were created with kubectl and by the controllers of that version.
 */
const kept = 'test/fixtures/data-dir-0.2.0';
/** What that version's own server answered for each object of that folder, an object a line. */
const answers = readFileSync(`${kept}.jsonl`, 'utf8')
  .trimEnd()
  .split('\n')
  .map((line): unknown => JSON.parse(line))
  .map((line) => ({ path: textAt(line, 'path'), object: recordAt(line, 'object') }));

let folder = '';
let server: TestServer;
const start = async (): Promise<TestServer> =>
  startApiServer({
    dataDirectory: join(folder, 'data'),
    serviceClusterIpRange: '10.96.0.0/16,fd00:10:96::/112',
  });

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'servicenet-data-'));
  cpSync(kept, join(folder, 'data'), { recursive: true });
  chmodSync(join(folder, 'data'), 0o700);
  for (const name of readdirSync(join(folder, 'data'))) chmodSync(join(folder, 'data', name), 0o600);
  server = await start();
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

test('the data has all kinds of objects', () => {
  expect(new Set(answers.map(({ object }) => textAt(object, 'kind'))).size).toBeGreaterThan(25);
});

test.each(answers)('$path is as it was', async ({ path, object }) => {
  const { status, body } = await call(server.client, 'GET', path);
  expect(status).toBe(200);
  expect(body).toEqual(object);
});

test('clients go on with the token and the authority that they have', () => {
  const identity: unknown = JSON.parse(readFileSync(`${kept}/identity.json`, 'utf8'));
  expect([server.token, server.ca]).toEqual([
    textAt(identity, 'adminToken'),
    textAt(identity, 'caCertificate'),
  ]);
});

test('what is kept has its effect: allocated addresses, policies, quotas, schemas and finalizers', async () => {
  const { client } = server;
  const namespace = '/api/v1/namespaces/shop';
  const services = `${namespace}/services`;
  const { body: cart } = await call(client, 'GET', `${services}/cart`);
  const taken = {
    metadata: { name: 'twin' },
    spec: { clusterIP: at(cart, 'spec', 'clusterIP'), ports: [{ port: 80 }] },
  };
  const twin = await call(client, 'POST', services, { body: taken });
  expect([twin.status, textAt(twin.body, 'message')]).toEqual([
    422,
    expect.stringContaining('already allocated'),
  ]);
  const forbidden = { metadata: { name: 'forbidden' } };
  const refused = await call(client, 'POST', `${namespace}/configmaps`, { body: forbidden });
  expect([refused.status, textAt(refused.body, 'message')]).toEqual([
    422,
    expect.stringContaining('that name is forbidden'),
  ]);
  const widgets = '/apis/example.com/v1/namespaces/shop/widgets';
  const large = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'l' }, spec: { size: 10 } };
  expect((await call(client, 'POST', widgets, { body: large })).status).toBe(422);
  const patch = { body: { metadata: { finalizers: null } }, contentType: 'application/merge-patch+json' };
  expect((await call(client, 'PATCH', `${widgets}/first`, patch)).status).toBe(200);
  expect((await call(client, 'GET', `${widgets}/first`)).status).toBe(404);
  await server.stop();
  server = await start();
  expect((await call(server.client, 'GET', `${widgets}/first`)).status).toBe(404);
  expect((await call(server.client, 'GET', `${widgets}/second`)).status).toBe(200);
});
