import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { at, listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import {
  answerAt,
  convertAt,
  type ConvertedPaths,
  convertHostPort,
  defineConverted,
  group,
} from '../support/conversion-webhook.ts';
import { type Answer, call } from '../support/test-server.ts';
import { WebhookServer } from '../support/webhook-server.ts';

/** What a conversion webhook may answer, and what comes of it (apiextensions `apiserver/conversion/webhook_converter.go`). */
let server: TestServer;
let webhooks: WebhookServer;
beforeAll(async () => {
  server = await startApiServer();
  webhooks = await WebhookServer.start();
});
afterAll(async () => {
  await server.stop();
  await webhooks.stop();
});

const merge = 'application/merge-patch+json';
async function send(method: string, path: string, body?: unknown, contentType?: string): Promise<Answer> {
  return call(server.client, method, path, { body, ...(contentType !== undefined && { contentType }) });
}

const v1 = (kind: string, name: string, more: JsonRecord = {}): JsonRecord => ({
  ...{ apiVersion: `${group}/v1`, kind, hostPort: 'a:1', ...more },
  metadata: { name, ...recordAt(more, 'metadata') },
});
const v2 = (kind: string, name: string, more: JsonRecord = {}): JsonRecord => ({
  ...{ apiVersion: `${group}/v2`, kind, host: 'a', port: '1', ...more },
  metadata: { name, ...recordAt(more, 'metadata') },
});

/** The converted objects, changed. */
const changing =
  (change: (object: JsonRecord) => unknown) =>
  (request: JsonRecord): JsonRecord => ({
    convertedObjects: listAt(request, 'objects').map((object) =>
      change(convertHostPort(recordAt(object), textAt(request, 'desiredAPIVersion'))),
    ),
    result: { status: 'Success' },
  });
const withMetadata = (metadata: JsonRecord) =>
  changing((object) => ({ ...object, metadata: { ...recordAt(object, 'metadata'), ...metadata } }));

describe('an answer that is none', () => {
  let paths: ConvertedPaths;
  beforeAll(async () => {
    convertAt(webhooks, '/broken');
    paths = await defineConverted(server, webhooks, {
      name: 'broken',
      path: '/broken',
      v2: {
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
        },
      },
    });
    await send('POST', paths.v1, v1('broken', 'a', { spec: { replicas: 1 } }));
  });

  const failed = `conversion webhook for ${group}/v1, Kind=broken`;
  const message = async (): Promise<unknown> => {
    const { status, body } = await send('GET', `${paths.v2}/a`);
    expect(status).toBe(500);
    return body['message'];
  };

  test.each<[string, (request: JsonRecord) => JsonRecord, string]>([
    [
      'has no objects',
      () => ({ convertedObjects: [], result: { status: 'Success' } }),
      `${failed} returned 0 objects, expected 1`,
    ],
    [
      'tells why it failed',
      () => ({ result: { status: 'Failure', message: 'not on Sundays' } }),
      `${failed} failed: not on Sundays`,
    ],
    [
      'tells that it failed',
      () => ({ result: { status: 'Failure' } }),
      `${failed} failed: response.result.status was 'Failure', not 'Success'`,
    ],
    ['tells nothing', () => ({}), `${failed} failed: response.result.status was '', not 'Success'`],
    [
      'answers another question',
      () => ({ uid: 'x', result: { status: 'Success' } }),
      `${failed} failed: expected response.uid="`,
    ],
    [
      'has objects of the old version',
      changing((object) => ({ ...object, apiVersion: `${group}/v1` })),
      `${failed} returned invalid object at index 0: invalid groupVersion (expected ${group}/v2, received ${group}/v1)`,
    ],
    [
      'has objects of another kind',
      changing((object) => ({ ...object, kind: 'Other' })),
      `${failed} returned invalid object at index 0: invalid kind (expected broken, received Other)`,
    ],
    [
      'has objects without a kind',
      changing(({ apiVersion }) => ({ apiVersion })),
      `Object 'Kind' is missing in '{"apiVersion":"${group}/v2"}'`,
    ],
    ['has no object', changing(() => null), 'unexpected end of JSON input'],
    [
      'renames',
      withMetadata({ name: 'b' }),
      `${failed} returned invalid object: must have the same name: a != b`,
    ],
    [
      'moves',
      withMetadata({ namespace: 'kube-system' }),
      `${failed} returned invalid object: must have the same namespace: default != kube-system`,
    ],
    [
      'makes it another object',
      withMetadata({ uid: 'x' }),
      `${failed} returned invalid object: must have the same UID: `,
    ],
    [
      'has wrong labels',
      withMetadata({ labels: { a: 1 } }),
      `${failed} returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object`,
    ],
    [
      'has labels that are none',
      withMetadata({ labels: ['a'] }),
      `${failed} returned invalid metadata: invalid metadata.labels of type []interface {} in converted object`,
    ],
    [
      'has labels that no object may have',
      withMetadata({ labels: { a: '?' } }),
      `${failed} returned invalid metadata: metadata.labels: Invalid value: "?": a valid label must be`,
    ],
    [
      'has annotations that no object may have',
      withMetadata({ annotations: { '?': '' } }),
      `${failed} returned invalid metadata: metadata.annotation: Invalid value: "?": name part must consist of`,
    ],
  ])('%s', async (_name, respond, expected) => {
    answerAt(webhooks, '/broken', respond);
    expect(await message()).toContain(expected);
  });

  test.each([
    [
      'is of another kind',
      { kind: 'Status', apiVersion: 'v1' },
      'no kind "Status" is registered for version "v1"',
    ],
    [
      'is of another version',
      { kind: 'ConversionReview', apiVersion: 'apiextensions.k8s.io/v1beta1' },
      'converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion',
    ],
    [
      'does not say what it is',
      { response: {} },
      'expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=',
    ],
    [
      'is empty',
      { kind: 'ConversionReview', apiVersion: 'apiextensions.k8s.io/v1' },
      `${failed} failed: no response provided`,
    ],
    [
      'has a list that is none',
      { kind: 'ConversionReview', apiVersion: 'apiextensions.k8s.io/v1', response: { convertedObjects: 1 } },
      'json: cannot unmarshal number into Go struct field ConversionResponse.response.convertedObjects of type []runtime.RawExtension',
    ],
  ])('%s', async (_name, review, expected) => {
    webhooks.at('/broken', () => ({ review }));
    expect(await message()).toContain(expected);
  });

  test('is an error of HTTP, or the end of the connection', async () => {
    webhooks.at('/broken', () => ({ status: 500, text: 'boom', contentType: 'text/plain' }));
    expect(await message()).toBe(
      `${failed} failed: an error on the server ("boom") has prevented the request from succeeding`,
    );
    webhooks.at('/broken', () => 'cut');
    expect(await message()).toBe(`${failed} failed: Post "${webhooks.url('/broken')}?timeout=30s": EOF`);
  });

  test.each<[string, string, () => Promise<Answer>]>([
    ['get', 'v1', async () => send('GET', `${paths.v2}/a`)],
    ['list', 'v1', async () => send('GET', paths.v2)],
    ['create', 'v2', async () => send('POST', paths.v2, v2('broken', 'b'))],
    ['update', 'v1', async () => send('PUT', `${paths.v2}/a`, v2('broken', 'a'))],
    ['patch', 'v1', async () => send('PATCH', `${paths.v2}/a`, { host: 'x' }, merge)],
    ['delete', 'v1', async () => send('DELETE', `${paths.v2}/a`)],
    ['deletecollection', 'v1', async () => send('DELETE', paths.v2)],
    ['status get', 'v1', async () => send('GET', `${paths.v2}/a/status`)],
    ['status patch', 'v1', async () => send('PATCH', `${paths.v2}/a/status`, { status: { a: 1 } }, merge)],
    ['scale get', 'v1', async () => send('GET', `${paths.v2}/a/scale`)],
    ['scale patch', 'v1', async () => send('PATCH', `${paths.v2}/a/scale`, { spec: { replicas: 3 } }, merge)],
  ])('fails a %s', async (_verb, from, request) => {
    answerAt(webhooks, '/broken', () => ({ result: { status: 'Failure', message: 'no' } }));
    const { status, body } = await request();
    expect([status, body['message']]).toEqual([
      500,
      `conversion webhook for ${group}/${from}, Kind=broken failed: no`,
    ]);
    expect((await send('GET', `${paths.v1}/a`)).body).toMatchObject({
      hostPort: 'a:1',
      spec: { replicas: 1 },
    });
  });

  test('is not remembered: the next one counts, and the Scale of an object is that of its version', async () => {
    convertAt(webhooks, '/broken');
    expect(listAt((await send('GET', paths.v2)).body, 'items')).toHaveLength(1);
    const scaled = await send('PATCH', `${paths.v2}/a/scale`, { spec: { replicas: 3 } }, merge);
    expect(scaled.body).toMatchObject({ kind: 'Scale', spec: { replicas: 3 } });
    expect((await send('GET', `${paths.v1}/a`)).body).toMatchObject({ spec: { replicas: 3 } });
  });
});

test('an answer may change labels and annotations, and nothing else of the metadata', async () => {
  const path = '/metadata';
  answerAt(
    webhooks,
    path,
    changing((object) => ({
      ...object,
      metadata: {
        ...recordAt(object, 'metadata'),
        ...{ labels: { to: textAt(object, 'apiVersion').slice(-2) }, annotations: null },
        ...{ finalizers: ['example.com/x'], generation: 42, creationTimestamp: null, garbage: true },
      },
    })),
  );
  const paths = await defineConverted(server, webhooks, { name: 'meta', path });
  const metadata = { annotations: { a: 'b' }, labels: { c: 'd' } };
  const made = await send('POST', paths.v1, v1('meta', 'a', { metadata }));
  const got = await send('GET', `${paths.v2}/a`);
  const { annotations: _gone, ...rest } = recordAt(made.body, 'metadata');
  expect(got.body['metadata']).toEqual({ ...rest, labels: { to: 'v2' } });
  const selected = await call(server.client, 'GET', paths.v2, { query: { labelSelector: 'to=v2' } });
  expect(listAt(selected.body, 'items')).toHaveLength(1);
  const old = await call(server.client, 'GET', paths.v1, { query: { labelSelector: 'c=d' } });
  expect(listAt(old.body, 'items')).toHaveLength(1);
  const none = await call(server.client, 'GET', paths.v2, { query: { labelSelector: 'c=d' } });
  expect(listAt(none.body, 'items')).toEqual([]);
});

test('objects have the defaults of the stored version, and lose what a version does not declare', async () => {
  const path = '/defaults';
  const flags = (own: string) => ({
    properties: {
      flags: {
        type: 'object',
        properties: {
          v1: { type: 'boolean' },
          v2: { type: 'boolean' },
          [own]: { type: 'boolean', default: true },
        },
      },
    },
  });
  convertAt(webhooks, path, (object, apiVersion) => ({
    ...convertHostPort(object, apiVersion),
    ...{ garbage: 1, ...(object['status'] === undefined && { status: null }) },
  }));
  const paths = await defineConverted(server, webhooks, {
    ...{ name: 'default', path, v1: flags('v1'), v2: flags('v2') },
  });
  const made = await send('POST', paths.v2, v2('default', 'a', { flags: {} }));
  expect(made.body).toMatchObject({ flags: { v1: true, v2: true } });
  expect(made.body).not.toHaveProperty('garbage');
  expect(made.body).not.toHaveProperty('status');
  await send('POST', paths.v1, v1('default', 'b', { flags: {} }));
  const other = await send('GET', `${paths.v2}/b`);
  expect(other.body['flags']).toEqual({ v1: true });
  expect((await send('GET', `${paths.v1}/a`)).body['flags']).toEqual({ v1: true, v2: true });
  const list = await send('GET', paths.v1);
  expect(listAt(list.body, 'items').map((item) => at(item, 'flags'))).toEqual([
    { v1: true, v2: true },
    { v1: true },
  ]);
});

test('fields are selected in the version of the request', async () => {
  convertAt(webhooks, '/fields');
  const paths = await defineConverted(server, webhooks, {
    ...{ name: 'field', path: '/fields', v2: { selectableFields: [{ jsonPath: '.host' }] } },
  });
  for (const host of ['x', 'y']) await send('POST', paths.v1, v1('field', host, { hostPort: `${host}:1` }));
  const select = async (version: string) =>
    call(server.client, 'GET', version, { query: { fieldSelector: 'host=y' } });
  const { body } = await select(paths.v2);
  expect(listAt(body, 'items').map((item) => textAt(item, 'metadata', 'name'))).toEqual(['y']);
  expect((await select(paths.v1)).body['message']).toBe('field label not supported: host');
});
