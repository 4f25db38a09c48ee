import { expect, it, onTestFinished } from 'vitest';
import { at, textAt } from '../../src/objects/json.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

const core = '/api/v1/namespaces/default';

it('binds no Pod but the one that is meant, where a Binding says which', async () => {
  const server = await startApiServer();
  onTestFinished(() => server.stop());
  const { client } = server;
  const containers = [{ name: 'c', image: 'i' }];
  const { body: pod } = await call(client, 'POST', `${core}/pods`, {
    body: { metadata: { name: 'p' }, spec: { containers } },
  });
  const [uid, resourceVersion] = [textAt(pod, 'metadata', 'uid'), textAt(pod, 'metadata', 'resourceVersion')];
  const bind = (path: string, meant: object) =>
    call(client, 'POST', `${core}/${path}`, {
      body: { metadata: { name: 'p', ...meant }, target: { kind: 'Node', name: 'n' } },
    });
  const refused = (field: string, wanted: string, found: string): object => ({
    status: 409,
    body: {
      reason: 'Conflict',
      details: { name: 'p', kind: 'pods' },
      message:
        'Operation cannot be fulfilled on pods "p": StorageError: invalid object, Code: 4, ' +
        'Key: /registry/pods/default/p, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ' +
        `${field} in precondition: ${wanted}, ${field} in object meta: ${found}`,
    },
  });
  expect(await bind('pods/p/binding', { uid: 'another' })).toMatchObject(refused('UID', 'another', uid));
  expect(await bind('pods/p/binding', { uid, resourceVersion: '1' })).toMatchObject(
    refused('ResourceVersion', '1', resourceVersion),
  );
  expect((await bind('pods/p/binding', { uid, resourceVersion })).status).toBe(201);
  // A Pod that is gone comes before one that is bound already.
  expect(await bind('pods/p/binding', { uid: 'another' })).toMatchObject(refused('UID', 'another', uid));
  await call(client, 'POST', `${core}/pods`, { body: { metadata: { name: 'q' }, spec: { containers } } });
  expect((await bind('bindings', { name: 'q', uid: 'another' })).status).toBe(201);
  const { body: bound } = await call(client, 'GET', `${core}/pods/q`);
  expect(at(bound, 'spec', 'nodeName')).toBe('n');
});
