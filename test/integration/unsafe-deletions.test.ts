import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

/** `ignoreStoreReadErrorWithClusterBreakingPotential` deletes nothing that can be read, and everything here can be. */
let server: TestServer;
const configMaps = '/api/v1/namespaces/default/configmaps';
const unsafe = { ignoreStoreReadErrorWithClusterBreakingPotential: true };
beforeAll(async () => {
  server = await startApiServer({ controllers: [], authorizationMode: 'RBAC' });
  await call(server.client, 'POST', configMaps, { body: { metadata: { name: 'a' } } });
});
afterAll(async () => server.stop());

test.each([{ dryRun: ['All'] }, {}])('a readable object is kept: %j', async (more) => {
  const { status, body } = await call(server.client, 'DELETE', `${configMaps}/a`, {
    body: { kind: 'DeleteOptions', apiVersion: 'v1', ...unsafe, ...more },
  });
  expect([status, body['message']]).toEqual([
    409,
    'Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: unsafe deletion is not allowed because the object is decodable from storage',
  ]);
  expect((await call(server.client, 'GET', `${configMaps}/a`)).status).toBe(200);
  expect((await call(server.client, 'DELETE', `${configMaps}/b`, { query: unsafe })).status).toBe(404);
});

test('it needs a verb of its own', async () => {
  const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default';
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['delete'] }];
  await call(server.client, 'POST', `${rbac}/roles`, { body: { metadata: { name: 'r' }, rules } });
  await call(server.client, 'POST', `${rbac}/rolebindings`, {
    body: {
      metadata: { name: 'r' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'r' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'jane' }],
    },
  });
  const { status, body } = await call(server.client, 'DELETE', `${configMaps}/a`, {
    query: unsafe,
    headers: { 'impersonate-user': 'jane' },
  });
  expect(status).toBe(403);
  expect(body['message']).toMatch(
    /^configmaps "a" is forbidden: not permitted to do "unsafe-delete-ignore-read-errors", reason: /,
  );
});

test.each([
  [
    'DELETE',
    `${configMaps}/a`,
    { propagationPolicy: 'Orphan', gracePeriodSeconds: 1, preconditions: {} },
    ['propagationPolicy', 'gracePeriodSeconds', 'preconditions'].map((member) => ({
      field: 'ignoreStoreReadErrorWithClusterBreakingPotential',
      reason: 'FieldValueInvalid',
      message: `Invalid value: true: cannot be set together with .${member}`,
    })),
  ],
  [
    'DELETE',
    configMaps,
    {},
    [
      {
        field: 'ignoreStoreReadErrorWithClusterBreakingPotential',
        reason: 'FieldValueInvalid',
        message:
          'Invalid value: true: is not allowed with DELETECOLLECTION, try again after removing the option',
      },
    ],
  ],
] as const)('%s %s with %j is invalid', async (method, path, more, causes) => {
  const { status, body } = await call(server.client, method, path, {
    body: { kind: 'DeleteOptions', apiVersion: 'v1', ...unsafe, ...more },
  });
  expect(status).toBe(422);
  expect(body).toHaveProperty('details.causes', causes);
});
