/** What requests for custom objects are answered with; the texts are those of apiextensions-apiserver 1.36.4, asked the same. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { listAt, recordAt } from '../../src/objects/json.ts';
import { type Answer, call, untilFound } from '../support/test-server.ts';

const boats = '/apis/example.com/v1/namespaces/default/boats';
const text = { type: 'string' };
const spec = {
  type: 'object',
  properties: {
    free: { type: 'object', additionalProperties: text },
    part: {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
    },
  },
};
const status = { type: 'object', properties: { at: text } };

let server: TestServer;

beforeAll(async () => {
  server = await startApiServer();
  const made = await call(server.client, 'POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    body: {
      metadata: { name: 'boats.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'boats', singular: 'boat', kind: 'Boat', listKind: 'BoatList' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            subresources: { status: {} },
            schema: { openAPIV3Schema: { type: 'object', properties: { spec, status } } },
          },
        ],
      },
    },
  });
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  await untilFound(server.client, boats);
});
afterAll(async () => server.stop());

async function apply(name: string, manager: string, rest: object, subresource = ''): Promise<Answer> {
  return call(server.client, 'PATCH', `${boats}/${name}${subresource}`, {
    body: { apiVersion: 'example.com/v1', kind: 'Boat', metadata: { name }, ...rest },
    query: { fieldManager: manager },
    contentType: 'application/apply-patch+yaml',
  });
}

test('protobuf is refused, and JSON taken where it is accepted as well', async () => {
  const protobuf = 'application/vnd.kubernetes.protobuf';
  const refused = await call(server.client, 'GET', boats, { headers: { accept: protobuf } });
  expect(refused.status).toBe(406);
  const taken = await call(server.client, 'GET', boats, {
    headers: { accept: `${protobuf}, application/json` },
  });
  expect([taken.status, taken.body['kind']]).toEqual([200, 'BoatList']);
});

test('an apply that empties a map makes it null, which is refused', async () => {
  expect((await apply('a', 'one', { spec: { free: { x: '1' } } })).status).toBe(201);
  const emptied = await apply('a', 'one', { spec: { free: {} } });
  expect(emptied.status).toBe(422);
  expect(emptied.body['message']).toBe(
    'Boat.example.com "a" is invalid: spec.free: Invalid value: "null": spec.free in body must be of type object: "null"',
  );
});

test('who comes to own what is there already has no time', async () => {
  expect((await apply('b', 'one', { spec: { free: { x: '1' } } })).status).toBe(201);
  const { body } = await apply('b', 'two', { spec: { free: { x: '1' } } });
  expect(
    listAt(body, 'metadata', 'managedFields').map((entry) => [
      recordAt(entry)['manager'],
      'time' in recordAt(entry),
    ]),
  ).toEqual([
    ['two', false],
    ['one', true],
  ]);
});

test('an apply names no uid of an object that is not there, and makes none through its status', async () => {
  const uid = await call(server.client, 'PATCH', `${boats}/none`, {
    body: { apiVersion: 'example.com/v1', kind: 'Boat', metadata: { name: 'none', uid: 'u' } },
    query: { fieldManager: 'one' },
    contentType: 'application/apply-patch+yaml',
  });
  expect([uid.status, uid.body['message']]).toEqual([
    409,
    'Operation cannot be fulfilled on boats.example.com "none": uid mismatch: the provided object specified uid u, and no existing object was found',
  ]);
  expect((await apply('none', 'one', { status: { at: 'sea' } }, '/status')).status).toBe(404);
});

test('a status is checked for itself', async () => {
  expect((await apply('c', 'one', {})).status).toBe(201);
  const wrong = await call(server.client, 'PATCH', `${boats}/c/status`, {
    body: { status: { at: 1 } },
    contentType: 'application/merge-patch+json',
  });
  expect(listAt(wrong.body, 'details', 'causes')[0]).toEqual({
    reason: 'FieldValueTypeInvalid',
    message: 'Invalid value: "integer": at in body must be of type string: "integer"',
    field: 'status.at',
  });
});

test('the metadata of what is embedded is checked', async () => {
  const embedded = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', labels: { 'a b': 'c' } } };
  const wrong = await apply('d', 'one', { spec: { part: embedded } });
  expect(wrong.status).toBe(422);
  expect(recordAt(listAt(wrong.body, 'details', 'causes')[0])['field']).toBe('spec.part.metadata.labels');
});

test('the server owns what it says of a definition', async () => {
  const { body } = await call(
    server.client,
    'GET',
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boats.example.com',
  );
  expect(listAt(body, 'metadata', 'managedFields')).toContainEqual(
    expect.objectContaining({ manager: 'kube-apiserver', operation: 'Update', subresource: 'status' }),
  );
});

test('a list from a version that is no number is a bad request', async () => {
  const listed = await call(server.client, 'GET', '/api/v1/services', { query: { resourceVersion: 'x' } });
  expect([listed.status, listed.body['message']]).toEqual([
    400,
    'invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax',
  ]);
});

test('options of a delete may be of any group and version', async () => {
  expect((await apply('gone', 'one', {})).status).toBe(201);
  for (const apiVersion of ['v1', 'example.com/v1', 'nothing.example.com/v7']) {
    const body = { apiVersion, kind: 'DeleteOptions', dryRun: ['All'] };
    expect((await call(server.client, 'DELETE', `${boats}/gone`, { body })).status).toBe(200);
  }
  const other = await call(server.client, 'DELETE', `${boats}/gone`, {
    body: { apiVersion: 'v1', kind: 'Pod' },
  });
  expect(other.status).toBe(400);
});

test('what only the server sets has no owner, also if a client sends it with a new object', async () => {
  const made = await call(server.client, 'POST', boats, {
    body: {
      apiVersion: 'example.com/v1',
      kind: 'Boat',
      metadata: { name: 'wiped', uid: 'mine', deletionTimestamp: '2020-01-01T00:00:00Z' },
      spec: { free: { a: 'b' } },
    },
  });
  expect(made.status).toBe(201);
  const [entry] = listAt(made.body, 'metadata', 'managedFields');
  expect(Object.keys(recordAt(recordAt(entry)['fieldsV1']))).toEqual(['f:spec']);
  expect(recordAt(made.body['metadata'])['deletionTimestamp']).toBeUndefined();
});
