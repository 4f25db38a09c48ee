import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listAt, textAt } from '../../src/objects/read.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answer, call, untilFound } from '../support/test-server.ts';

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
  return call(server.client, method, path, { ...(body === undefined ? {} : { body }), contentType });
}

function boat(name: string, metadata: object = {}): object {
  return { apiVersion: 'example.com/v1', kind: 'Boat', metadata: { name, ...metadata } };
}

/** The test's timeout bounds it. */
async function untilGone(path: string): Promise<void> {
  while ((await send('GET', path)).status !== 404);
}

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
      405,
      'create not allowed while custom resource definition is terminating',
    ]);
    expect((await send('GET', `${boats}/kept`)).status).toBe(200);
    await send('PATCH', `${boats}/kept`, { metadata: { finalizers: null } }, merge);
    await untilGone(`${definitions}/boats.example.com`);
    expect((await send('GET', boats)).status).toBe(404);
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
