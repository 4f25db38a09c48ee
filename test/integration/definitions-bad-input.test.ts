import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answer, call, untilFound } from '../support/test-server.ts';

/** Definitions of custom resources whose schemas are not structural, recursive or enormous, and objects of them. */
let server: TestServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(async () => server.stop());

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
let made = 0;

interface Kind {
  readonly kind: string;
  readonly path: string;
  readonly answer: Answer;
}

/** Creates a definition of a kind of its own. */
async function define(schema: object): Promise<Kind> {
  const plural = `things${++made}`;
  const kind = `Thing${made}`;
  const answer = await call(server.client, 'POST', definitions, {
    body: {
      metadata: { name: `${plural}.example.com` },
      spec: {
        ...{ group: 'example.com', scope: 'Namespaced', names: { plural, kind } },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      },
    },
  });
  return { kind, path: `/apis/example.com/v1/namespaces/default/${plural}`, answer };
}

async function served(schema: object): Promise<Kind> {
  const kind = await define(schema);
  expect(kind.answer.status, JSON.stringify(kind.answer.body).slice(0, 1000)).toBe(201);
  await untilFound(server.client, kind.path);
  return kind;
}

async function create({ kind, path }: Kind, name: string, members: object): Promise<Answer> {
  return call(server.client, 'POST', path, {
    body: { apiVersion: 'example.com/v1', kind, metadata: { name }, ...members },
  });
}

const causes = ({ body }: Answer): string[] =>
  listAt(body, 'details', 'causes').map((cause) => `${textAt(cause, 'field')}: ${textAt(cause, 'message')}`);

const nested = (depth: number): JsonRecord => {
  let schema: JsonRecord = { type: 'string' };
  for (let i = 0; i < depth; i++) schema = { type: 'object', properties: { x: schema } };
  return schema;
};
const root = 'spec.validation.openAPIV3Schema';

describe('a schema that is', () => {
  test('recursive by a reference is refused', async () => {
    const { answer } = await define({
      type: 'object',
      definitions: { tree: { type: 'object' } },
      properties: { tree: { $ref: '#/definitions/tree' } },
    });
    expect([answer.status, causes(answer)]).toEqual([
      422,
      expect.arrayContaining([
        `${root}.definitions: Forbidden: definitions is not supported`,
        `${root}.properties[tree].$ref: Forbidden: $ref is not supported`,
      ]),
    ]);
  });

  test('not structural in thousands of places is refused with all of them', async () => {
    const properties = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`p${i}`, {}]));
    const { answer } = await define({ type: 'object', properties });
    expect(answer.status).toBe(422);
    const wanted = 'Required value: must not be empty for specified object fields';
    expect(new Set(causes(answer))).toEqual(
      new Set(Object.keys(properties).map((name) => `${root}.properties[${name}].type: ${wanted}`)),
    );
  });

  test.each([120, 480])('nested %d levels deep is refused', async (depth) => {
    const { answer } = await define(nested(depth));
    expect([answer.status, causes(answer)]).toEqual([
      422,
      [expect.stringContaining('schemas may be nested 100 levels deep')],
    ]);
  });

  test('nested a thousand levels deep is no JSON', async () => {
    const { answer } = await define(nested(1000));
    expect([answer.status, answer.body['message']]).toEqual([
      400,
      expect.stringContaining('exceeded max depth'),
    ]);
  });

  test('larger than a request may be is refused', async () => {
    const { answer } = await define({ type: 'object', description: 'x'.repeat(3 * 2 ** 20) });
    expect([answer.status, answer.body['message']]).toEqual([
      413,
      'Request entity too large: limit is 3145728',
    ]);
  });
});

describe('an enormous schema of', () => {
  const count = 4_500;
  const names = Array.from({ length: count }, (_, i) => `p${i}`);

  test('4,500 properties judges every one of them, and is in OpenAPI', async () => {
    const description = 'This text is here for its length only.';
    const kind = await served({
      type: 'object',
      properties: Object.fromEntries(
        names.map((name) => [name, { type: 'string', description, pattern: '^a+$' }]),
      ),
    });
    const good = await create(kind, 'good', Object.fromEntries(names.map((name) => [name, 'aaa'])));
    expect(good.status).toBe(201);
    // So many that the client still reads the whole Status.
    const wrong = names.slice(-1000);
    const bad = await create(kind, 'bad', {
      ...Object.fromEntries(names.map((name) => [name, 'aaa'])),
      ...Object.fromEntries(wrong.map((name) => [name, 'b'])),
    });
    expect([bad.status, new Set(causes(bad).map((text) => text.split(':')[0]))]).toEqual([
      422,
      new Set(wrong),
    ]);
    const document = (await server.client.request('GET', '/openapi/v3/apis/example.com/v1')).json();
    const component = recordAt(document, 'components', 'schemas', `com.example.v1.${kind.kind}`);
    const published = Object.keys(recordAt(component, 'properties'));
    expect(new Set(published)).toEqual(new Set(['apiVersion', 'kind', 'metadata', ...names]));
  });

  test('15,000 required members says which are missing', async () => {
    const required = Array.from({ length: 15_000 }, (_, i) => `r${i}`);
    const kind = await served({
      type: 'object',
      properties: { a: { type: 'object', required, 'x-kubernetes-preserve-unknown-fields': true } },
    });
    expect((await create(kind, 'none', { a: {} })).status).toBe(422);
    const missing = required.slice(0, 1000);
    const most = await create(kind, 'most', {
      a: Object.fromEntries(required.slice(missing.length).map((name) => [name, 1])),
    });
    expect([most.status, new Set(causes(most))]).toEqual([
      422,
      new Set(missing.map((name) => `a.${name}: Required value`)),
    ]);
    expect((await create(kind, 'b', {})).status).toBe(201);
  });

  test('15,000 allowed values knows them all', async () => {
    const values = Array.from({ length: 15_000 }, (_, i) => `value-${i}`);
    const kind = await served({ type: 'object', properties: { a: { type: 'string', enum: values } } });
    expect((await create(kind, 'last', { a: values.at(-1) })).status).toBe(201);
    const refused = await create(kind, 'none', { a: 'value' });
    expect([refused.status, refused.body['message']]).toEqual([
      422,
      expect.stringContaining('Unsupported value'),
    ]);
  });
});

describe('defaults', () => {
  test('that make a gigabyte of a small object are not stored, and others are served on', async () => {
    const kind = await served({
      type: 'object',
      properties: {
        list: {
          type: 'array',
          items: { type: 'object', properties: { text: { type: 'string', default: 'y'.repeat(10_000) } } },
        },
      },
    });
    const { status, body } = await create(kind, 'bomb', {
      list: Array.from({ length: 9_000 }, () => ({})),
    });
    expect([status, body['message']]).toEqual([500, 'etcdserver: request is too large']);
    expect(listAt((await call(server.client, 'GET', kind.path)).body, 'items')).toEqual([]);
    const few = await create(kind, 'few', { list: [{}, {}] });
    expect(listAt(few.body, 'list').map((item) => textAt(item, 'text').length)).toEqual([10_000, 10_000]);
  });

  test('that are objects keep their own fields', async () => {
    const kind = await served({
      type: 'object',
      properties: {
        spec: { type: 'object', default: { a: { b: ['c'] } }, 'x-kubernetes-preserve-unknown-fields': true },
      },
    });
    await create(kind, 'one', {});
    const patched = await call(server.client, 'PATCH', `${kind.path}/one`, {
      body: [{ op: 'add', path: '/spec/a/b/-', value: 'd' }],
      contentType: 'application/json-patch+json',
    });
    expect(patched.body['spec']).toEqual({ a: { b: ['c', 'd'] } });
    expect((await create(kind, 'two', {})).body['spec']).toEqual({ a: { b: ['c'] } });
  });
});
