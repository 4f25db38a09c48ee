import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { at, listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import {
  changeDefinition,
  convertAt,
  type ConvertedPaths,
  convertHostPort,
  defineConverted,
  group,
  questionsAt,
} from '../support/conversion-webhook.ts';
import { eventually } from '../support/api-operations.ts';
import { type Answer, call } from '../support/test-server.ts';
import { WebhookServer } from '../support/webhook-server.ts';

/** Who is asked about what when a webhook converts custom objects (apiextensions `apiserver/conversion`). */
let server: TestServer;
let webhooks: WebhookServer;
beforeAll(async () => {
  server = await startApiServer();
  webhooks = await WebhookServer.start(['127.0.0.1', 'hook.default.svc']);
  convertAt(webhooks, '/convert');
});
afterAll(async () => {
  await server.stop();
  await webhooks.stop();
});
beforeEach(() => {
  webhooks.asked.length = 0;
});

interface Sent {
  readonly query?: Record<string, string>;
  readonly contentType?: string;
}

async function send(method: string, path: string, body?: unknown, sent: Sent = {}): Promise<Answer> {
  return call(server.client, method, path, { body, ...sent });
}

const merge = { contentType: 'application/merge-patch+json' };
const v1 = (name: string, kind: string, hostPort: string, more: JsonRecord = {}): JsonRecord => ({
  ...{ apiVersion: `${group}/v1`, kind, hostPort, ...more },
  metadata: { name, ...recordAt(more, 'metadata') },
});
const v2 = (name: string, kind: string, host: string, more: JsonRecord = {}): JsonRecord => ({
  ...{ apiVersion: `${group}/v2`, kind, host, port: '1', ...more },
  metadata: { name, ...recordAt(more, 'metadata') },
});
const asked = () => questionsAt(webhooks, '/convert');

describe('the webhook is asked', () => {
  let paths: ConvertedPaths;
  beforeAll(async () => {
    paths = await defineConverted(server, webhooks, { name: 'verb' });
  });

  test('nothing about objects in the version that is stored', async () => {
    expect((await send('POST', paths.v1, v1('same', 'verb', 'a:1'))).status).toBe(201);
    await send('GET', `${paths.v1}/same`);
    await send('GET', paths.v1);
    await send('PATCH', `${paths.v1}/same`, { hostPort: 'b:2' }, merge);
    expect((await send('DELETE', `${paths.v1}/same`)).status).toBe(200);
    expect(asked()).toEqual([]);
  });

  test('for a get, in the words of kube-apiserver', async () => {
    const made = await send('POST', paths.v1, v1('get', 'verb', 'a:1'));
    const got = await send('GET', `${paths.v2}/get`);
    expect(got.body).toEqual({
      ...{ apiVersion: `${group}/v2`, kind: 'verb', host: 'a', port: '1' },
      metadata: made.body['metadata'],
    });
    const { resourceVersion: _none, ...metadata } = recordAt(made.body, 'metadata');
    const [question] = webhooks.asked;
    const uid = textAt(question?.review, 'request', 'uid');
    expect(uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(question).toEqual({
      path: '/convert',
      timeout: '30s',
      review: {
        kind: 'ConversionReview',
        apiVersion: 'apiextensions.k8s.io/v1',
        request: {
          uid,
          desiredAPIVersion: `${group}/v2`,
          objects: [{ apiVersion: `${group}/v1`, kind: 'verb', hostPort: 'a:1', metadata }],
        },
        response: { uid: '', convertedObjects: null, result: { metadata: {} } },
      },
    });
    await send('DELETE', `${paths.v1}/get`);
  });

  test('for a create, on the way in and out, also when it is a dry run', async () => {
    const dry = await send('POST', paths.v2, v2('made', 'verb', 'a'), { query: { dryRun: 'All' } });
    expect(dry.body).toMatchObject({ apiVersion: `${group}/v2`, host: 'a' });
    const made = await send('POST', paths.v2, v2('made', 'verb', 'a'));
    expect(made.body).toMatchObject({ apiVersion: `${group}/v2`, host: 'a', port: '1' });
    expect(asked().flat()).toEqual(['made v2→v1', 'made v1→v2', 'made v2→v1', 'made v1→v2']);
    expect((await send('GET', `${paths.v1}/made`)).body).toMatchObject({ hostPort: 'a:1' });
    const again = await send('POST', paths.v2, v2('made', 'verb', 'a'));
    expect(again.body['reason']).toBe('AlreadyExists');
  });

  test('for updates and patches of the object and of its status', async () => {
    const put = await send('PUT', `${paths.v2}/made`, {
      ...v2('made', 'verb', 'b'),
      metadata: recordAt((await send('GET', `${paths.v2}/made`)).body, 'metadata'),
    });
    expect(put.body).toMatchObject({ host: 'b', metadata: { generation: 2 } });
    const patched = await send('PATCH', `${paths.v2}/made`, { port: '9' }, merge);
    expect(patched.body).toMatchObject({ host: 'b', port: '9', metadata: { generation: 3 } });
    const status = await send(
      'PATCH',
      `${paths.v2}/made/status`,
      { status: { ready: true }, host: 'no' },
      merge,
    );
    expect(status.body).toMatchObject({ host: 'b', status: { ready: true }, metadata: { generation: 3 } });
    expect((await send('GET', `${paths.v1}/made`)).body).toMatchObject({
      hostPort: 'b:9',
      status: { ready: true },
    });
    webhooks.asked.length = 0;
    const same = await send('PATCH', `${paths.v2}/made`, { port: '9' }, merge);
    expect(at(same.body, 'metadata', 'resourceVersion')).toBe(at(status.body, 'metadata', 'resourceVersion'));
    const dry = await send(
      'PATCH',
      `${paths.v2}/made`,
      { host: 'dry' },
      { ...merge, query: { dryRun: 'All' } },
    );
    expect(dry.body).toMatchObject({ host: 'dry', port: '9' });
    expect((await send('GET', `${paths.v1}/made`)).body).toMatchObject({ hostPort: 'b:9' });
  });

  test('for a delete, which keeps what has a finalizer', async () => {
    await send('PATCH', `${paths.v1}/made`, { metadata: { finalizers: ['example.com/keep'] } }, merge);
    webhooks.asked.length = 0;
    const kept = await send('DELETE', `${paths.v2}/made`);
    expect(kept.body).toMatchObject({ apiVersion: `${group}/v2`, host: 'b' });
    expect(textAt(kept.body, 'metadata', 'deletionTimestamp')).not.toBe('');
    expect(asked().flat()).toEqual(['made v1→v2', 'made v2→v1', 'made v1→v2']);
    const freed = await send('PATCH', `${paths.v2}/made`, { metadata: { finalizers: null } }, merge);
    expect(freed.status).toBe(200);
    expect((await send('GET', `${paths.v1}/made`)).status).toBe(404);
  });

  test('for all objects of a list at once, and only when they have changed', async () => {
    for (const name of ['a', 'b', 'c']) await send('POST', paths.v1, v1(name, 'verb', `${name}:1`));
    const list = async (query: Record<string, string> = {}) => {
      const { body } = await send('GET', paths.v2, undefined, { query });
      return listAt(body, 'items').map((item) => `${textAt(item, 'apiVersion')} ${textAt(item, 'host')}`);
    };
    const all = ['a', 'b', 'c'].map((host) => `${group}/v2 ${host}`);
    expect(await list()).toEqual(all);
    expect(asked()).toEqual([['a v1→v2', 'b v1→v2', 'c v1→v2']]);
    await send('PATCH', `${paths.v1}/b`, { hostPort: 'b:2' }, merge);
    expect(await list()).toEqual(all);
    expect(asked().slice(1)).toEqual([['b v1→v2']]);
    expect(await list({ limit: '2' })).toEqual(all.slice(0, 2));
    const table = await call(server.client, 'GET', paths.v2, {
      headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
    });
    expect(listAt(table.body, 'rows')).toHaveLength(3);
    expect((await send('DELETE', paths.v2)).status).toBe(200);
    expect(await list()).toEqual([]);
  });
});

test('ConversionReview is v1beta1 where the webhook names that first, and an answer need not name its question', async () => {
  webhooks.at('/old', (request) => ({
    review: {
      kind: 'ConversionReview',
      apiVersion: 'apiextensions.k8s.io/v1beta1',
      response: {
        uid: '',
        convertedObjects: listAt(request, 'objects').map((object) =>
          convertHostPort(recordAt(object), textAt(request, 'desiredAPIVersion')),
        ),
        result: { status: 'Success' },
      },
    },
  }));
  const paths = await defineConverted(server, webhooks, {
    name: 'old',
    path: '/old',
    reviewVersions: ['v7', 'v1beta1', 'v1'],
  });
  expect((await send('POST', paths.v2, v2('a', 'old', 'a'))).status).toBe(201);
  expect(webhooks.asked[0]?.review['apiVersion']).toBe('apiextensions.k8s.io/v1beta1');
});

test('a webhook behind a Service is asked under its name, where its ExternalName leads', async () => {
  const service = { namespace: 'default', name: 'hook', port: webhooks.port, path: '/convert' };
  const paths = await defineConverted(server, webhooks, { name: 'behind', clientConfig: { service } });
  const early = await send('POST', paths.v2, v2('a', 'behind', 'a'));
  expect(early.body['message']).toBe(
    `conversion webhook for ${group}/v2, Kind=behind failed: ` +
      `Post "https://hook.default.svc:${webhooks.port}/convert?timeout=30s": service "hook" not found`,
  );
  const spec = { type: 'ExternalName', externalName: 'localhost' };
  await send('POST', '/api/v1/namespaces/default/services', { metadata: { name: 'hook' }, spec });
  expect((await send('POST', paths.v2, v2('a', 'behind', 'a'))).status).toBe(201);
  const { body } = await send(
    'PATCH',
    paths.definition,
    {
      spec: { conversion: { webhook: { clientConfig: { service: { port: null } } } } },
    },
    merge,
  );
  expect(at(body, 'spec', 'conversion', 'webhook', 'clientConfig', 'service', 'port')).toBe(443);
});

test('what is stored in another version than today is converted from that, and is written in that of today', async () => {
  const paths = await defineConverted(server, webhooks, { name: 'moved' });
  await send('POST', paths.v1, v1('first', 'moved', 'a:1'));
  const versions = listAt((await send('GET', paths.definition)).body, 'spec', 'versions');
  const stored = versions.map((version) => ({
    ...recordAt(version),
    storage: textAt(version, 'name') === 'v2',
    served: textAt(version, 'name') === 'v1',
  }));
  const changed = await changeDefinition(server, paths.definition, { spec: { versions: stored } });
  expect(at(changed.body, 'status', 'storedVersions')).toEqual(['v1', 'v2']);
  await eventually(
    async () => send('GET', paths.v2),
    ({ status }) => status === 404,
  );
  webhooks.asked.length = 0;
  // The webhook is not asked about what is stored as it is wanted, though that is not how it would be stored now.
  expect((await send('GET', `${paths.v1}/first`)).body).toMatchObject({ hostPort: 'a:1' });
  expect(asked()).toEqual([]);
  await send('POST', paths.v1, v1('second', 'moved', 'b:1'));
  expect(asked().flat()).toEqual(['second v1→v2', 'second v2→v1']);
  // A write that changes nothing but where it is stored.
  const { body } = await send('GET', `${paths.v1}/first`);
  const put = await send('PUT', `${paths.v1}/first`, body);
  expect(at(put.body, 'metadata', 'resourceVersion')).not.toBe(at(body, 'metadata', 'resourceVersion'));
  const again = await send('PUT', `${paths.v1}/first`, put.body);
  expect(at(again.body, 'metadata', 'resourceVersion')).toBe(at(put.body, 'metadata', 'resourceVersion'));
  const list = await send('GET', paths.v1);
  expect(listAt(list.body, 'items').map((item) => textAt(item, 'hostPort'))).toEqual(['a:1', 'b:1']);
});

test('conversion changes from None to a webhook and back while there are objects', async () => {
  const paths = await defineConverted(server, webhooks, {
    name: 'turned',
    spec: { conversion: { strategy: 'None' } },
  });
  await send('POST', paths.v1, v1('a', 'turned', 'a:1'));
  expect((await send('GET', `${paths.v2}/a`)).body).not.toHaveProperty('host');
  // As envtest writes it: the server's own certificate, and two slashes.
  const clientConfig = { url: webhooks.url('//convert'), caBundle: webhooks.ownBundle };
  const webhook = { clientConfig, conversionReviewVersions: ['v1'] };
  await changeDefinition(server, paths.definition, {
    spec: { conversion: { strategy: 'Webhook', webhook } },
  });
  const got = await eventually(
    async () => send('GET', `${paths.v2}/a`),
    ({ body }) => 'host' in body,
  );
  expect(got.body).toMatchObject({ host: 'a', port: '1' });
  expect(got.body).not.toHaveProperty('hostPort');
  await changeDefinition(server, paths.definition, {
    spec: { conversion: { strategy: 'None', webhook: null } },
  });
  await eventually(
    async () => send('GET', `${paths.v2}/a`),
    ({ body }) => !('host' in body),
  );
});
