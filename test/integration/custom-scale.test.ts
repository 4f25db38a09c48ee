import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answer, call, untilFound } from '../support/test-server.ts';

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const fleets = '/apis/example.com/v1/namespaces/default/fleets';

let server: TestServer;
beforeAll(async () => {
  server = await startApiServer();
  expect((await send('POST', definitions, definition())).status).toBe(201);
  await untilFound(server.client, fleets);
});
afterAll(async () => server.stop());

async function send(
  method: string,
  path: string,
  body?: unknown,
  contentType = 'application/json',
): Promise<Answer> {
  return call(server.client, method, path, { body, contentType });
}

function definition(scale: object = {}): object {
  const integer = { type: 'integer' };
  const text = { type: 'string' };
  return {
    metadata: { name: 'fleets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'fleets', kind: 'Fleet', shortNames: ['fl'], categories: ['all', 'ships'] },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: {
            status: {},
            scale: {
              specReplicasPath: '.spec.ships',
              statusReplicasPath: '.status.ships',
              labelSelectorPath: '.status.selector',
              ...scale,
            },
          },
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                spec: { type: 'object', properties: { ships: integer, flag: text } },
                status: { type: 'object', properties: { ships: integer, selector: text } },
              },
            },
          },
        },
      ],
    },
  };
}

describe('/scale of a custom resource', () => {
  test('reads and writes the fields that the definition names', async () => {
    const made = await send('POST', fleets, {
      apiVersion: 'example.com/v1',
      kind: 'Fleet',
      metadata: { name: 'a' },
      spec: { ships: 3, flag: 'red' },
    });
    const status = { ships: 2, selector: 'fleet=a' };
    await send('PATCH', `${fleets}/a/status`, { status }, 'application/merge-patch+json');
    const scale = await send('GET', `${fleets}/a/scale`);
    expect(scale.body).toEqual({
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      metadata: {
        name: 'a',
        namespace: 'default',
        uid: textAt(made.body, 'metadata', 'uid'),
        resourceVersion: textAt(scale.body, 'metadata', 'resourceVersion'),
        creationTimestamp: textAt(made.body, 'metadata', 'creationTimestamp'),
      },
      spec: { replicas: 3 },
      status: { replicas: 2, selector: 'fleet=a' },
    });
    const patched = await send(
      'PATCH',
      `${fleets}/a/scale`,
      { spec: { replicas: 5 } },
      'application/merge-patch+json',
    );
    expect([patched.status, patched.body['spec']]).toEqual([200, { replicas: 5 }]);
    const put = await send('PUT', `${fleets}/a/scale`, {
      ...scale.body,
      metadata: { name: 'a', namespace: 'default' },
      spec: { replicas: 7 },
    });
    expect(put.status).toBe(200);
    expect((await send('GET', `${fleets}/a`)).body['spec']).toEqual({ ships: 7, flag: 'red' });
    expect((await send('PUT', `${fleets}/a/scale`, scale.body)).status).toBe(409);
    const other = { ...scale.body, metadata: { name: 'a', namespace: 'default', uid: 'other' } };
    expect((await send('PUT', `${fleets}/a/scale`, other)).body['message']).toContain(
      'Operation cannot be fulfilled on fleets.example.com "a": StorageError: invalid object, Code: 4, Key: /registry/example.com/fleets/default/a',
    );
    const refusals: [object, string][] = [
      [{ metadata: { name: 'b' } }, 'the name of the object (b) does not match the name on the URL (a)'],
      [{ metadata: {} }, 'the name of the object (a based on URL) was undeterminable: name must be provided'],
      [
        { metadata: { name: 'a', namespace: 'other' } },
        'the namespace of the provided object does not match the namespace sent on the request',
      ],
      [
        { metadata: { name: 'a' }, spec: { replicas: 'x' } },
        'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"',
      ],
    ];
    for (const [rest, message] of refusals) {
      const refused = await send('PUT', `${fleets}/a/scale`, {
        kind: 'Scale',
        apiVersion: 'autoscaling/v1',
        spec: { replicas: 1 },
        ...rest,
      });
      expect([refused.status, refused.body['message']]).toEqual([400, message]);
    }
    const renamed = await send(
      'PATCH',
      `${fleets}/a/scale`,
      { metadata: { name: 'b' } },
      'application/merge-patch+json',
    );
    expect(renamed.status).toBe(400);
    const strategic = await send('PATCH', `${fleets}/a/scale`, {}, 'application/strategic-merge-patch+json');
    expect(strategic.status).toBe(415);
    const table = await call(server.client, 'GET', `${fleets}/a/scale`, {
      headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
    });
    expect(recordAt(listAt(table.body, 'rows')[0])['cells']).toEqual(['a', 7, 2, expect.any(String)]);
    const metadata = await call(server.client, 'GET', `${fleets}/a/scale`, {
      headers: { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' },
    });
    expect([metadata.body['kind'], metadata.body['spec']]).toEqual(['PartialObjectMetadata', undefined]);
    const negative = await send(
      'PATCH',
      `${fleets}/a/scale`,
      { spec: { replicas: -1 } },
      'application/merge-patch+json',
    );
    expect(negative.status).toBe(422);
    expect(negative.body['message']).toBe(
      'Fleet.example.com "a" is invalid: .spec.ships: Invalid value: -1: should be a non-negative integer',
    );
  });

  test('of an object that does not say how many it wants is an error to read, and can be set', async () => {
    await send('POST', fleets, { apiVersion: 'example.com/v1', kind: 'Fleet', metadata: { name: 'b' } });
    const { status, body } = await send('GET', `${fleets}/b/scale`);
    expect([status, body['message']]).toEqual([
      500,
      'Internal error occurred: the spec replicas field ".spec.ships" does not exist',
    ]);
    expect(
      (await send('PATCH', `${fleets}/b/scale`, { spec: { replicas: 1 } }, 'application/merge-patch+json'))
        .status,
    ).toBe(200);
    expect((await send('GET', `${fleets}/b`)).body['spec']).toEqual({ ships: 1 });
    expect((await send('GET', `${fleets}/none/scale`)).status).toBe(404);
  });

  test('is discovered, with the categories', async () => {
    const rows = listAt((await send('GET', '/apis/example.com/v1')).body, 'resources');
    expect(rows.map((row) => textAt(row, 'name'))).toEqual(['fleets', 'fleets/status', 'fleets/scale']);
    expect(rows.find((row) => textAt(row, 'name') === 'fleets/scale')).toMatchObject({
      group: 'autoscaling',
      version: 'v1',
      kind: 'Scale',
      verbs: ['get', 'patch', 'update'],
    });
    expect(rows[0]).toMatchObject({ categories: ['all', 'ships'], shortNames: ['fl'] });
  });

  test.each([
    [{ specReplicasPath: '' }, 'spec.subresources.scale.specReplicasPath: Required value'],
    [
      { specReplicasPath: '.status.ships' },
      'spec.subresources.scale.specReplicasPath: Invalid value: ".status.ships": should be a json path under .spec',
    ],
    [
      { statusReplicasPath: 'status' },
      'spec.subresources.scale.statusReplicasPath: Invalid value: "status": must be a simple json path starting with .',
    ],
    [
      { labelSelectorPath: '.metadata.x' },
      'spec.subresources.scale.labelSelectorPath: Invalid value: ".metadata.x": should be a json path under either .spec or .status',
    ],
  ])('with paths %j is refused', async (scale, message) => {
    const { status, body } = await call(server.client, 'POST', definitions, {
      body: definition(scale),
      query: { dryRun: 'All' },
    });
    expect(status).toBe(422);
    expect(body['message']).toContain(message);
  });
});
