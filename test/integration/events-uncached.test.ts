import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { at, listAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call, watchEvents } from '../support/test-server.ts';

/** Events are the only kind without a watch cache (`cachesize.NewHeuristicWatchCacheSizes`), which shows in answers. */
let server: TestServer;
const future = '999999999';
const paths = ['/api/v1', '/apis/events.k8s.io/v1'].map((root) => `${root}/namespaces/default/events`);
const [events = ''] = paths;
beforeAll(async () => {
  server = await startApiServer({ controllers: [] });
  for (const name of ['a', 'b']) {
    const involvedObject = { kind: 'Pod', namespace: 'default', name: 'p' };
    await call(server.client, 'POST', events, { body: { metadata: { name }, involvedObject } });
  }
});
afterAll(async () => server.stop());

describe.each(paths)('%s', (path) => {
  test('limits lists at version 0 too', async () => {
    const { body } = await call(server.client, 'GET', path, { query: { limit: 1, resourceVersion: '0' } });
    expect(listAt(body, 'items')).toHaveLength(1);
    expect(at(body, 'metadata', 'remainingItemCount')).toBe(1);
  });

  test.each(['', '/a'])('waits for no version: %s', async (name) => {
    const { status, body } = await call(server.client, 'GET', `${path}${name}`, {
      query: { resourceVersion: future },
    });
    expect(status).toBe(504);
    expect(at(body, 'details')).toEqual({
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    });
  });

  test('tells of a version that is too old in the words of the store', async () => {
    const [event] = await watchEvents(server.client, path, { resourceVersion: '1' }, 1);
    expect(at(event, 'object', 'message')).toBe('The resourceVersion for the provided watch is too old.');
  });

  test('sends the initial events whatever the version, and no bookmark but theirs', async () => {
    const query = {
      ...{ sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: true },
      ...{ resourceVersion: future, timeoutSeconds: 3 },
    };
    const sent = await watchEvents(server.client, path, query, 10);
    expect(sent.map(({ type }) => type)).toEqual(['ADDED', 'ADDED', 'BOOKMARK']);
  });
});
