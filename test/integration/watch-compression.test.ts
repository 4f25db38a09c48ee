import { constants, createGunzip, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Agent, request } from 'undici';
import { parseRecord, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { makeNamespace } from '../support/api-operations.ts';
import { call } from '../support/test-server.ts';

let server: TestServer;
let dispatcher: Agent;
beforeAll(async () => {
  server = await startApiServer();
  dispatcher = new Agent({ connect: { ca: server.ca } });
});
afterAll(async () => {
  await dispatcher.close();
  await server.stop();
});

async function watch(path: string, query: string): ReturnType<typeof request> {
  return request(`${server.url}${path}?watch=1&timeoutSeconds=60&${query}`, {
    dispatcher,
    headers: { authorization: `Bearer ${server.token}`, 'accept-encoding': 'gzip' },
  });
}

test('a watch that begins with a list is compressed, each piece on its own', async () => {
  const path = `/api/v1/namespaces/${await makeNamespace(server, 'compressed')}/configmaps`;
  await call(server.client, 'POST', path, { body: { metadata: { name: 'before' } } });
  const initial = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
  const { headers, body } = await watch(path, initial);
  expect(headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
  const names: string[] = [];
  let text = '';
  for await (const chunk of body.pipe(createGunzip())) {
    text += String(chunk);
    names.length = 0;
    for (const line of text.trimEnd().split('\n')) {
      const event = parseRecord(line) ?? {};
      names.push(`${textAt(event, 'type')} ${textAt(event, 'object', 'metadata', 'name')}`.trimEnd());
    }
    if (names.includes('ADDED after')) break;
    if (names.at(-1) !== 'BOOKMARK') continue;
    await call(server.client, 'POST', path, { body: { metadata: { name: 'after' } } });
  }
  body.destroy();
  expect(names.filter((name) => !name.endsWith('kube-root-ca.crt'))).toEqual([
    'ADDED before',
    'BOOKMARK',
    'ADDED after',
  ]);
});

// Go's gzip.Reader reads on for the next member before it gives what a last block has.
test('all of a piece is there before its last block', async () => {
  const path = `/api/v1/namespaces/${await makeNamespace(server, 'pieces')}/configmaps`;
  const initial = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
  const { body } = await watch(path, initial);
  let bytes = Buffer.alloc(0);
  for await (const chunk of body) {
    bytes = Buffer.concat([bytes, Buffer.from(chunk)]);
    if (gunzipSync(bytes).includes('BOOKMARK')) break;
  }
  const lastBlock = Buffer.from([3, 0]);
  const end = bytes.length - 8 - lastBlock.length;
  expect(bytes.subarray(end, end + lastBlock.length)).toEqual(lastBlock);
  const before = gunzipSync(bytes.subarray(0, end), { finishFlush: constants.Z_SYNC_FLUSH });
  expect(String(before)).toBe(String(gunzipSync(bytes)));
});

test('other watches are not compressed', async () => {
  const path = `/api/v1/namespaces/${await makeNamespace(server, 'plain')}/configmaps`;
  const { headers, body } = await watch(path, 'resourceVersion=1');
  expect(headers).not.toHaveProperty('content-encoding');
  body.destroy();
});
