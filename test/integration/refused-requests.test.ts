import { afterEach, expect, test } from 'vitest';
import type { Refusal } from '../../src/apiserver/http/exchange.ts';
import { offerAddresses } from '../../src/commands/default-pool.ts';
import { at } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

let server: TestServer | undefined;
afterEach(async () => server?.stop());

/** A server that refuses the first requests to some paths. */
async function start(refusals: Record<string, Refusal[]>): Promise<TestServer['client']> {
  server = await startApiServer({ refuse: ({ method, path }) => refusals[`${method} ${path}`]?.shift() });
  return server.client;
}

const pools = '/apis/servicenet.dev/v1alpha1/addresspools';
const initializing: Refusal = { code: 429, retryAfterSeconds: 1 };

test('the server refuses what a test wants refused, in the words of kube-apiserver', async () => {
  const client = await start({
    'GET /api/v1/services': [initializing, { code: 503, retryAfterSeconds: 0, message: 'later' }],
  });
  expect((await call(client, 'GET', '/api/v1/services')).body).toMatchObject({
    kind: 'Status',
    message: 'storage is (re)initializing',
    reason: 'TooManyRequests',
    details: { retryAfterSeconds: 1 },
    code: 429,
  });
  const { status, body } = await call(client, 'GET', '/api/v1/services');
  expect([status, body['reason'], body['message']]).toEqual([503, 'ServiceUnavailable', 'later']);
  expect((await call(client, 'GET', '/api/v1/services')).status).toBe(200);
});

test('a pool is made in spite of a definition whose storage is being initialized', async () => {
  const soon: Refusal = { code: 429, retryAfterSeconds: 0 };
  const refusals = { [`POST ${pools}`]: [soon, initializing, soon], [`GET ${pools}`]: [soon] };
  const client = await start(refusals);
  await offerAddresses(client, ['192.0.2.0/24']);
  const pool = (await client.request('GET', `${pools}/default`)).json();
  expect(at(pool, 'spec', 'addresses')).toEqual(['192.0.2.0/24']);
  expect(refusals[`POST ${pools}`]).toEqual([]);
});
