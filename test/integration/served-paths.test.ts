import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { at, listAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call, watchEvents } from '../support/test-server.ts';

/** Paths that look like those of objects but lead nowhere, and watches that name too much or too new a version. */
let server: TestServer;
const configMaps = '/api/v1/namespaces/default/configmaps';
beforeAll(async () => {
  server = await startApiServer();
  await call(server.client, 'POST', configMaps, { body: { metadata: { name: 'a' } } });
});
afterAll(async () => server.stop());

describe('paths without a route', () => {
  test.each([
    '/api/v1/proxy/services',
    '/api/v1/proxy/namespaces/default/configmaps/a',
    '/api/v1/watch/namespaces/default/services/kubernetes/status',
    '/api/v1/watch/nodes/n/proxy',
    '/api/v1/namespaces/default/namespaces',
    '/api/v1/namespaces/default/namespaces/default',
    '/api/v1/watch/namespaces/default/namespaces',
  ])('%s is not found', async (path) => {
    const answer = await call(server.client, 'GET', path);
    expect(answer.status).toBe(404);
    expect(answer.body).toMatchObject({
      message: 'the server could not find the requested resource',
      details: {},
    });
  });
});

describe('a token to go on with', () => {
  const tokenOf = (rv: number): string =>
    Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv, start: 'a\0' })).toString('base64url');

  test('waits for its version to come, too', async () => {
    const query = { limit: 1, continue: tokenOf(999_999_999) };
    const { status, body } = await call(server.client, 'GET', configMaps, { query });
    expect([status, at(body, 'details', 'retryAfterSeconds')]).toEqual([504, 1]);
    expect(body['message']).toMatch(/^Timeout: Too large resource version: 999999999, current: \d+$/);
  });

  test('goes on without a limit at version 0', async () => {
    for (const name of ['b', 'c'])
      await call(server.client, 'POST', configMaps, { body: { metadata: { name } } });
    const query = { limit: 1, resourceVersion: '0', continue: tokenOf(-1) };
    const { body } = await call(server.client, 'GET', configMaps, { query });
    expect(listAt(body, 'items').map((item) => at(item, 'metadata', 'name'))).toEqual(
      expect.arrayContaining(['b', 'c']),
    );
  });
});

test('a get with `export` is refused', async () => {
  const path = `${configMaps}/a`;
  const { status, body } = await call(server.client, 'GET', path, { query: { export: true } });
  expect([status, body['message']]).toEqual([
    400,
    'the export parameter, deprecated since v1.14, is no longer supported',
  ]);
  expect((await call(server.client, 'GET', path, { query: { export: false } })).status).toBe(200);
});

describe('a version beyond 64 bits', () => {
  const resourceVersion = String(2n ** 64n);
  const why = `resourceVersion: Invalid value: "${resourceVersion}": strconv.ParseUint: parsing "${resourceVersion}": value out of range`;

  test.each([
    ['a list', configMaps, {}, 400, `invalid resource version: ${why}`],
    [
      'a list of just this one',
      configMaps,
      { resourceVersionMatch: 'Exact' },
      400,
      `invalid resource version: ${why}`,
    ],
    ['a get', `${configMaps}/a`, {}, 500, why],
    ['a watch', configMaps, { watch: true }, 500, why],
  ])('is none for %s', async (_, path, query, status, message) => {
    const answer = await call(server.client, 'GET', path, { query: { ...query, resourceVersion } });
    expect([answer.status, answer.body['message']]).toEqual([status, message]);
  });

  test('is none, but the last one below it has not come yet', async () => {
    const query = { resourceVersion: String(2n ** 64n - 1n) };
    const { status, body } = await call(server.client, 'GET', configMaps, { query });
    expect(status).toBe(504);
    expect(body['message']).toMatch(
      /^Timeout: Too large resource version: 18446744073709551615, current: \d+$/,
    );
  });
});

describe('watches', () => {
  test('of one object take a field selector for its name only', async () => {
    const path = `/api/v1/watch/namespaces/default/configmaps/a`;
    const refused = await call(server.client, 'GET', path, { query: { fieldSelector: 'metadata.name=b' } });
    expect([refused.status, refused.body['message']]).toEqual([
      400,
      "fieldSelector metadata.name doesn't match requested name",
    ]);
    const byNamespace = { fieldSelector: 'metadata.namespace=default' };
    expect((await call(server.client, 'GET', path, { query: byNamespace })).status).toBe(400);
    const [event] = await watchEvents(server.client, path, { fieldSelector: 'metadata.name=a' }, 1);
    expect(event).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'a' } } });
  });

  test('that want the initial events of a version that does not come say so in their stream', async () => {
    const query = {
      sendInitialEvents: true,
      resourceVersionMatch: 'NotOlderThan',
      allowWatchBookmarks: true,
      resourceVersion: '999999999',
    };
    const [event] = await watchEvents(server.client, configMaps, query, 1);
    expect(event).toMatchObject({
      type: 'ERROR',
      object: {
        code: 504,
        reason: 'Timeout',
        message: expect.stringMatching(
          /^Timeout: Too large resource version: 999999999, current: \d+$/,
        ) as string,
        details: { causes: [{ reason: 'ResourceVersionTooLarge' }], retryAfterSeconds: 1 },
      },
    });
  });

  test('as tables without objects still show the bookmark that ends the initial events', async () => {
    const query = {
      watch: true,
      includeObject: 'None',
      fieldSelector: 'metadata.name=a',
      allowWatchBookmarks: true,
    };
    const headers = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
    const stream = await server.client.stream(configMaps, { query, headers });
    let text = '';
    for await (const chunk of stream.chunks) {
      text += chunk.toString();
      if (text.includes('BOOKMARK') && text.endsWith('\n')) break;
    }
    const objects = text
      .trim()
      .split('\n')
      .map((line) => at(listAt(JSON.parse(line), 'object', 'rows')[0], 'object'));
    expect(objects).toEqual([
      null,
      expect.objectContaining({
        metadata: expect.objectContaining({
          annotations: { 'k8s.io/initial-events-end': 'true' },
        }) as unknown,
      }),
    ]);
  });
});
