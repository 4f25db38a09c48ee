import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { recordAt } from '../../src/objects/json.ts';
import { type Answer, call } from '../support/test-server.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';

const many = <T>(count: number, item: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => item(i));

/**
 * Requests within all limits whose cost once grew with the square of their size: each took minutes, in which no one
 * else was answered. Now each takes a second or two.
 */
describe('one large request', () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await startApiServer({});
    const values = { type: 'array', items: { type: 'string', enum: many(2000, (i) => `right-${i}`) } };
    const schema = { openAPIV3Schema: { type: 'object', properties: { values } } };
    await server.client.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      body: {
        metadata: { name: 'lists.example.com' },
        spec: {
          group: 'example.com',
          scope: 'Namespaced',
          names: { plural: 'lists', kind: 'List1' },
          versions: [{ name: 'v1', served: true, storage: true, schema }],
        },
      },
    });
    for (let i = 0; i < 200 && (await answerOf('GET', lists)).status !== 200; i++) await sleep(20);
  });

  afterAll(() => server.stop());

  const core = '/api/v1/namespaces/default/configmaps';
  const lists = '/apis/example.com/v1/namespaces/default/lists';

  const answerOf = (method: 'GET' | 'POST', path: string, body?: object): Promise<Answer> =>
    call(server.client, method, path, body === undefined ? {} : { body });

  test('of values that are all wrong is a 422', async () => {
    const { status } = await answerOf('POST', lists, {
      apiVersion: 'example.com/v1',
      kind: 'List1',
      metadata: { name: 'wrong' },
      values: many(15_000, (i) => `wrong-${i}`),
    });
    expect(status).toBe(422);
  });

  test('of labels that are all wrong is a 422', async () => {
    const labels = Object.fromEntries(many(15_000, (i) => [`k${i}!`, 'v!']));
    const { status } = await answerOf('POST', core, { metadata: { name: 'labels', labels } });
    expect(status).toBe(422);
  });

  test('of managers that are too many is answered', async () => {
    const managedFields = many(1_500, (i) => ({
      manager: `m${i}`,
      operation: 'Update',
      apiVersion: 'v1',
      time: '2020-01-01T00:00:00Z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:data': { [`f:k${i}`]: {} } },
    }));
    const data = Object.fromEntries(many(1_500, (i) => [`k${i}`, 'v']));
    const { status, body } = await answerOf('POST', core, {
      metadata: { name: 'managers', managedFields },
      data,
    });
    expect(status).toBe(201);
    // The creator of an object owns all of it: the others' rows are merged, and then taken away.
    expect(recordAt(body, 'metadata')['managedFields']).toMatchObject([{ manager: 'servicenet' }]);
  });

  test('for a path of slashes is answered', async () => {
    expect((await answerOf('GET', `/openapi/v3${'/'.repeat(500_000)}x`)).status).toBe(404);
  });
});
