import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { at, listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answer, call, revisionOf, untilFound, watchUntil } from '../support/test-server.ts';

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const boats = '/apis/example.com/v1/namespaces/default/boats';
const merge = 'application/merge-patch+json';

let server: TestServer;
beforeEach(async () => {
  server = await startApiServer();
  await send('POST', definitions, {
    metadata: { name: 'boats.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'boats', kind: 'Boat' },
      versions: [
        { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } },
      ],
    },
  });
  await untilFound(server.client, boats);
});
afterEach(async () => server.stop());

async function send(
  method: string,
  path: string,
  body?: unknown,
  contentType = 'application/json',
): Promise<Answer> {
  return call(server.client, method, path, { body, contentType });
}

function boat(name: string, metadata: object = {}): object {
  return { apiVersion: 'example.com/v1', kind: 'Boat', metadata: { name, ...metadata } };
}

/** The test's timeout bounds it. */
async function untilGone(path: string): Promise<void> {
  while ((await send('GET', path)).status !== 404);
}

describe('requests for custom objects', () => {
  /** Status and message; the plain "404 page not found" comes with what the client says of it. */
  async function answerOf(method: string, path: string, body?: unknown): Promise<unknown[]> {
    const { status, body: answer } = await send(method, path, body);
    return [status, String(answer['message']).replace(/^.*: (?=404 page)/, '')];
  }

  test('go by their verb, not by their path', async () => {
    await send('POST', `${boats}/elsewhere`, boat('a'));
    expect((await send('GET', `${boats}/a`)).status).toBe(200);
    expect((await server.client.request('HEAD', boats, {})).status).toBe(200);
    expect(await answerOf('PUT', boats, boat('a'))).toEqual([400, 'name must be provided']);
    const verbless = ' is not supported on resources of kind "boats.example.com"';
    expect(await answerOf('OPTIONS', boats)).toEqual([405, verbless]);
  });

  test('are listed in the kind that their definition says', async () => {
    const names = { spec: { names: { listKind: 'Fleet' } } };
    await send('PATCH', `${definitions}/boats.example.com`, names, merge);
    await expect.poll(async () => (await send('GET', boats)).body['kind']).toBe('Fleet');
  });

  test('find nothing where there is none, as if the group were unknown', async () => {
    expect(await answerOf('GET', '/apis/example.com/v1/ships')).toEqual([404, '404 page not found']);
    expect(await answerOf('POST', '/apis/example.com/v1/boats', boat('a'))).toEqual([
      404,
      '404 page not found',
    ]);
    expect(await answerOf('DELETE', '/apis/example.com/v1/boats')).toEqual([404, '404 page not found']);
    expect((await send('GET', '/apis/example.com/v1/boats')).status).toBe(200);
    const message = 'boats.example.com "a" not found';
    expect(await answerOf('GET', `${boats}/a/captain`)).toEqual([404, message]);
  });

  test('cannot move an object to another version', async () => {
    await send('POST', boats, boat('a'));
    const { status, body } = await send('PATCH', `${boats}/a`, { apiVersion: 'example.com/v2' }, merge);
    expect([status, body['message']]).toEqual([
      422,
      'Boat.example.com "a" is invalid: apiVersion: Invalid value: "example.com/v2": must be example.com/v1',
    ]);
  });

  test('see what discovery tells: the status before the scale', async () => {
    const path = `${definitions}/boats.example.com`;
    const scale = { specReplicasPath: '.spec.n', statusReplicasPath: '.status.n' };
    const value = { scale, status: {} };
    await send(
      'PATCH',
      path,
      [{ op: 'add', path: '/spec/versions/0/subresources', value }],
      'application/json-patch+json',
    );
    const names = async () =>
      listAt((await send('GET', '/apis/example.com/v1')).body, 'resources').map((row) => textAt(row, 'name'));
    await expect.poll(names).toEqual(['boats', 'boats/status', 'boats/scale']);
    const [row] = listAt((await send('GET', '/apis/example.com/v1')).body, 'resources');
    // SHA-256 of "example.com/v1/Boat", its first 8 bytes
    expect(textAt(row, 'storageVersionHash')).toBe('tqdf5nBpA9c=');
  });
});

test('a definition without versions shows in its error what was sent: an empty list, or nothing', async () => {
  const names = { plural: 'ships', kind: 'Ship' };
  const errorOf = async (versions: unknown) => {
    const spec = { group: 'example.com', scope: 'Cluster', names, versions };
    const { body } = await send('POST', definitions, { metadata: { name: 'ships.example.com' }, spec });
    return textAt(listAt(body, 'details', 'causes')[0], 'message');
  };
  const must = 'must have exactly one version marked as storage version';
  expect(await errorOf([])).toBe(`Invalid value: []: ${must}`);
  expect(await errorOf(null)).toBe(`Invalid value: null: ${must}`);
});

describe('a definition that is deleted', () => {
  test('takes its objects along', async () => {
    for (const name of ['a', 'b']) await send('POST', boats, boat(name));
    await send('DELETE', `${definitions}/boats.example.com`);
    await untilGone(`${definitions}/boats.example.com`);
    expect((await send('GET', boats)).status).toBe(404);
  });

  test('waits for objects with finalizers, and takes no new ones', async () => {
    await send('POST', boats, boat('kept', { finalizers: ['example.com/x'] }));
    await send('POST', boats, boat('plain'));
    await send('DELETE', `${definitions}/boats.example.com`);
    await untilGone(`${boats}/plain`);
    await expect
      .poll(async () => {
        const { body } = await send('GET', `${definitions}/boats.example.com`);
        const found = listAt(body, 'status', 'conditions').find(
          (condition) => textAt(condition, 'type') === 'Terminating',
        );
        return textAt(found, 'reason');
      })
      .toBe('InstanceDeletionInProgress');
    const refused = await send('POST', boats, boat('late'));
    expect([refused.status, refused.body['message']]).toEqual([
      403,
      'boats.example.com "late" is forbidden: create not allowed while custom resource definition is terminating',
    ]);
    // A definition that goes can still be changed: its finalizer has no domain of its own.
    const labels = { metadata: { labels: { a: 'b' } } };
    expect((await send('PATCH', `${definitions}/boats.example.com`, labels, merge)).status).toBe(200);
    expect((await send('GET', `${boats}/kept`)).status).toBe(200);
    await send('PATCH', `${boats}/kept`, { metadata: { finalizers: null } }, merge);
    await untilGone(`${definitions}/boats.example.com`);
    expect((await send('GET', boats)).status).toBe(404);
  });

  /** The terminating condition, without its time. */
  async function terminating(): Promise<unknown> {
    const { body } = await send('GET', `${definitions}/boats.example.com`);
    const found = listAt(body, 'status', 'conditions').find(
      (condition) => textAt(condition, 'type') === 'Terminating',
    );
    return found === undefined ? undefined : [textAt(found, 'status'), textAt(found, 'reason')];
  }

  test('goes through the conditions that apiextensions writes, from the first name to the end', async () => {
    const revision = await revisionOf(server.client, definitions);
    await send('POST', definitions, {
      metadata: { name: 'ships.example.com', finalizers: ['example.com/kept'] },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'ships', kind: 'Ship' },
        versions: [
          { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } },
        ],
      },
    });
    await untilFound(server.client, '/apis/example.com/v1/ships');
    await send('DELETE', `${definitions}/ships.example.com`);
    const query = { fieldSelector: 'metadata.name=ships.example.com', resourceVersion: revision };
    const last = 'Terminating False InstanceDeletionCompleted';
    const seenConditions: string[][] = [];
    await watchUntil(server.client, definitions, query, (event) => {
      const conditions = listAt(event, 'object', 'status', 'conditions').map((condition) =>
        ['type', 'status', 'reason'].map((member) => textAt(condition, member)).join(' '),
      );
      seenConditions.push(conditions);
      return conditions.includes(last);
    });
    const named = 'NamesAccepted True NoConflicts';
    const established = 'Established True InitialNamesAccepted';
    expect(seenConditions).toEqual([
      [],
      [named, 'Established False Installing'],
      [named, established],
      [named, established, 'Terminating True InstanceDeletionPending'],
      [named, established, 'Terminating True InstanceDeletionInProgress'],
      [named, established, last],
    ]);
    const left = await send('GET', `${definitions}/ships.example.com`);
    expect(at(left.body, 'metadata', 'finalizers')).toEqual(['example.com/kept']);
  });

  test('says which precondition fails, waits without a grace period, and has one when it is deleted again', async () => {
    const path = `${definitions}/boats.example.com`;
    await send('PATCH', path, { metadata: { finalizers: ['a.b/c'] } }, merge);
    const { body } = await send('GET', path);
    for (const [member, name] of [
      ['uid', 'UID'],
      ['resourceVersion', 'ResourceVersion'],
    ] as const) {
      const refused = await send('DELETE', path, { preconditions: { [member]: '1' } });
      const present = textAt(body, 'metadata', member);
      expect([refused.status, refused.body['message'], at(refused.body, 'details', 'kind')]).toEqual([
        409,
        `Operation cannot be fulfilled on customresourcedefinitions.apiextensions.k8s.io "boats.example.com": precondition failed: ${name} in precondition: 1, ${name} in object meta: ${present}`,
        'customresourcedefinitions',
      ]);
    }
    const first = await send('DELETE', `${path}?propagationPolicy=Orphan`);
    const cleanup = 'customresourcecleanup.apiextensions.k8s.io';
    expect(at(first.body, 'metadata', 'finalizers')).toEqual(['a.b/c', cleanup]);
    expect(at(first.body, 'metadata', 'deletionGracePeriodSeconds')).toBeUndefined();
    const second = await send('DELETE', path);
    expect(at(second.body, 'metadata', 'deletionGracePeriodSeconds')).toBe(0);
    expect(at(second.body, 'metadata', 'generation')).toBe(1);
  });

  test('takes no objects either when all have gone and another finalizer keeps it', async () => {
    await send('PATCH', `${definitions}/boats.example.com`, { metadata: { finalizers: ['a.b/c'] } }, merge);
    await send('DELETE', `${definitions}/boats.example.com`);
    await expect.poll(terminating).toEqual(['False', 'InstanceDeletionCompleted']);
    const late = await send('POST', boats, boat('late'));
    expect([late.status, textAt(late.body, 'message')]).toEqual([
      403,
      'boats.example.com "late" is forbidden: create not allowed while custom resource definition is terminating',
    ]);
  });

  test('gets the names that it asks for while it waits', async () => {
    await send('POST', boats, boat('kept', { finalizers: ['example.com/x'] }));
    await send('DELETE', `${definitions}/boats.example.com`);
    const names = { spec: { names: { shortNames: ['bo'] } } };
    await send('PATCH', `${definitions}/boats.example.com`, names, merge);
    const accepted = async () =>
      at(
        (await send('GET', `${definitions}/boats.example.com`)).body,
        'status',
        'acceptedNames',
        'shortNames',
      );
    await expect.poll(accepted).toEqual(['bo']);
  });

  test('was never established: nothing of it is deleted', async () => {
    await send('POST', definitions, {
      metadata: { name: 'dinghies.example.com', finalizers: ['a.b/c'] },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'dinghies', kind: 'Boat' },
        versions: [
          { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } },
        ],
      },
    });
    await send('DELETE', `${definitions}/dinghies.example.com`);
    const reason = async () =>
      textAt(
        listAt((await send('GET', `${definitions}/dinghies.example.com`)).body, 'status', 'conditions').find(
          (condition) => textAt(condition, 'type') === 'Terminating',
        ),
        'reason',
      );
    await expect.poll(reason).toBe('NeverEstablished');
  });

  test('whose conditions were removed is not served, until it is established again', async () => {
    const status = `${definitions}/boats.example.com/status`;
    const patched = await send('PATCH', status, { status: { conditions: [], storedVersions: [] } }, merge);
    expect(at(patched.body, 'status', 'storedVersions')).toEqual(['v1']);
    await untilGone(boats);
    await send('PATCH', status, { status: { acceptedNames: { plural: '', kind: '' } } }, merge);
    await untilFound(server.client, boats);
  });

  test('can be made again', async () => {
    const { body } = await send('GET', `${definitions}/boats.example.com`);
    await send('POST', boats, boat('old'));
    await send('DELETE', `${definitions}/boats.example.com`);
    await untilGone(`${definitions}/boats.example.com`);
    await send('POST', definitions, { metadata: { name: 'boats.example.com' }, spec: body['spec'] });
    await untilFound(server.client, boats);
    expect(listAt((await send('GET', boats)).body, 'items')).toEqual([]);
  });
});
