import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answer, call } from '../support/test-server.ts';

/** `metadata.managedFields` that no client should send, and ownership of more fields than objects have. */
let server: TestServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(async () => server.stop());

const configMaps = '/api/v1/namespaces/default/configmaps';
let made = 0;

const configMap = (name: string, metadata: object = {}, data: object = { a: '1', b: '2' }): JsonRecord => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, data },
});

const entry = (changes: object = {}): JsonRecord => ({
  ...{ manager: 'x', operation: 'Update', apiVersion: 'v1', time: '2026-01-01T00:00:00Z' },
  ...{ fieldsType: 'FieldsV1', fieldsV1: { 'f:data': { 'f:a': {} } }, ...changes },
});

async function apply(name: string, body: JsonRecord, query: Record<string, string> = {}): Promise<Answer> {
  return call(server.client, 'PATCH', `${configMaps}/${name}`, {
    body,
    query: { fieldManager: 'applier', ...query },
    contentType: 'application/apply-patch+yaml',
  });
}

/** Rows as `manager apiVersion fieldsV1`. */
function rows({ body }: Answer): string[] {
  return listAt(body, 'metadata', 'managedFields').map((row) =>
    [textAt(row, 'manager'), textAt(row, 'apiVersion'), JSON.stringify(recordAt(row)['fieldsV1'])].join(' '),
  );
}

/** Creates a ConfigMap and puts it with managedFields. */
async function putWith(managedFields: readonly unknown[]): Promise<Answer> {
  const name = `put-${++made}`;
  await call(server.client, 'POST', configMaps, { body: configMap(name) });
  return call(server.client, 'PUT', `${configMaps}/${name}`, { body: configMap(name, { managedFields }) });
}

describe('a write whose managedFields', () => {
  const stored = 'servicenet v1 {"f:data":{".":{},"f:a":{},"f:b":{}}}';

  test.each([
    ['have an operation that is none', { operation: 'Eat' }],
    ['have no operation', { operation: undefined }],
    ['are of a type that is none', { fieldsType: 'FieldsV9' }],
    ['are of no type', { fieldsType: undefined }],
    ['have no version', { apiVersion: undefined }],
    ['have keys that are no JSON', { fieldsV1: { 'f:a': { 'k:{"a"': {} } } }],
    ['have an index that is none', { fieldsV1: { 'f:a': { 'i:one': {} } } }],
    ['have a value that is none', { fieldsV1: { 'f:a': { 'v:': {} } } }],
    ['are a text', { fieldsV1: 'f:data' }],
    ['are a list', { fieldsV1: ['f:data'] }],
    ['hold a number', { fieldsV1: { 'f:data': 7 } }],
  ])('%s keeps those that are stored', async (_name, changes) => {
    const answer = await putWith([entry(), entry(changes)]);
    expect([answer.status, rows(answer)]).toEqual([200, [stored]]);
  });

  test.each([
    ['name no manager', { manager: '' }, ' v1 {"f:data":{"f:a":{}}}'],
    ['are of another group', { apiVersion: 'apps/v9' }, 'x apps/v9 {"f:data":{"f:a":{}}}'],
    ['own what is not there', { fieldsV1: { 'f:nope': {} } }, 'x v1 {"f:nope":{}}'],
  ])('%s are taken as they are', async (_name, changes, row) => {
    const answer = await putWith([entry(changes)]);
    expect([answer.status, rows(answer)]).toEqual([200, [row]]);
  });

  test('have elements of a later version own nothing by them', async () => {
    expect(rows(await putWith([entry({ fieldsV1: { 'x:y': {}, 'f:data': { 'f:a': {} } } })]))).toEqual([
      'x v1 {"f:data":{"f:a":{}}}',
    ]);
    expect(rows(await putWith([entry({ fieldsV1: { 'x:y': {} } })]))).toEqual([]);
  });

  test('name a manager twice has the last of its rows', async () => {
    const other = entry({ fieldsV1: { 'f:data': { 'f:b': {} } } });
    expect(rows(await putWith([entry(), other]))).toEqual(['x v1 {"f:data":{"f:b":{}}}']);
  });

  test('own nothing leaves no row', async () => {
    expect(rows(await putWith([entry(), entry({ manager: 'y', fieldsV1: {} })]))).toEqual([
      'x v1 {"f:data":{"f:a":{}}}',
    ]);
  });

  test.each([
    [
      'name a manager too long',
      { manager: 'x'.repeat(129) },
      'metadata.managedFields[0].manager: Too long: may not be more than 128 bytes',
    ],
    [
      'name a manager that cannot be printed',
      { manager: 'a\u0000' },
      'metadata.managedFields[0].manager: Invalid value: "a\\x00": invalid character U+0000 (at position 1)',
    ],
    [
      'name a subresource too long',
      { subresource: 's'.repeat(257) },
      'metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes',
    ],
  ])('%s is refused', async (_name, changes, message) => {
    const { status, body } = await putWith([entry(changes)]);
    expect([status, textAt(body, 'message').replace(/^.*? is invalid: /, '')]).toEqual([422, message]);
  });

  test('have a time that is none is refused', async () => {
    const { status, body } = await putWith([entry({ time: 'yesterday' })]);
    expect([status, body['message']]).toEqual([
      400,
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
    ]);
  });

  test('nest deeper than JSON may is refused', async () => {
    let fieldsV1: JsonRecord = {};
    for (let depth = 0; depth < 1000; depth++) fieldsV1 = { 'f:x': fieldsV1 };
    const { status, body } = await putWith([entry({ fieldsV1 })]);
    expect([status, body['message']]).toEqual([400, expect.stringContaining('exceeded max depth')]);
  });
});

test.each([
  ['with an owner', [entry()]],
  ['without an owner', []],
])('an apply that has managedFields itself is refused, even %s', async (_name, managedFields) => {
  const { status, body } = await apply('fresh', configMap('fresh', { managedFields }));
  expect([status, body['message']]).toEqual([400, 'metadata.managedFields must be nil']);
});

describe('very many owners', () => {
  const count = 1_500;
  const keys = Array.from({ length: count }, (_, i) => `k${i}`);
  const owners = (operation: string): JsonRecord[] =>
    keys.map((key, i) =>
      entry({ manager: `m${i}`, operation, fieldsV1: { 'f:data': { [`f:${key}`]: {} } } }),
    );

  test('of updates become ten, and none of their fields is lost', async () => {
    const body = configMap('updaters', { managedFields: owners('Update') });
    const answer = await call(server.client, 'POST', configMaps, { body });
    const entries = listAt(answer.body, 'metadata', 'managedFields');
    expect(entries).toHaveLength(10);
    const owned = entries.flatMap((row) => Object.keys(recordAt(row, 'fieldsV1', 'f:data')));
    expect(new Set(owned)).toEqual(new Set(['.', 'f:a', 'f:b', ...keys.map((key) => `f:${key}`)]));
    const refused = await apply('updaters', configMap('updaters', {}, { k1: 'mine' }));
    expect([refused.status, refused.body['message']]).toEqual([
      409,
      'Apply failed with 1 conflict: conflict with "ancient-changes" using v1: .data.k1',
    ]);
    expect(
      (await apply('updaters', configMap('updaters', {}, { k1: 'mine' }), { force: 'true' })).status,
    ).toBe(200);
  });

  test('that apply all stay, and others can still apply and take back', async () => {
    const body = configMap('appliers', { managedFields: owners('Apply') });
    const { body: created } = await call(server.client, 'POST', configMaps, { body });
    expect(listAt(created, 'metadata', 'managedFields')).toHaveLength(count + 1);
    expect((await apply('appliers', configMap('appliers', {}, { own: '1' }))).status).toBe(200);
    const back = await apply('appliers', configMap('appliers', {}, {}));
    expect(back.status).toBe(200);
    expect(back.body['data']).toEqual({ a: '1', b: '2' });
  });
});

test('19,000 fields are applied, taken over and taken back', async () => {
  const data = (value: string): JsonRecord =>
    Object.fromEntries(Array.from({ length: 19_000 }, (_, i) => [`k${i}`, value]));
  expect((await apply('wide', configMap('wide', {}, data('1')))).status).toBe(201);
  const mine = await apply('wide', configMap('wide', {}, data('2')), {
    fieldManager: 'other',
    force: 'true',
  });
  expect(rows(mine).map((row) => row.split(' ')[0])).toEqual(['other']);
  const back = await apply('wide', configMap('wide', {}, { last: '1' }), { fieldManager: 'other' });
  expect(back.body['data']).toEqual({ last: '1' });
});
