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

it.each(['policy/v1', 'policy/v1beta1'])(
  'evicts by a body of %s, and says what a budget waits for',
  async (apiVersion) => {
    const server = await startApiServer();
    onTestFinished(() => server.stop());
    const { client } = server;
    const metadata = { name: 'p', labels: { app: 'x' } };
    const body = { metadata, spec: { containers: [{ name: 'c', image: 'i' }] } };
    await call(client, 'POST', `${core}/pods`, { body });
    const running = { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } };
    await call(client, 'PATCH', `${core}/pods/p/status`, {
      body: running,
      contentType: 'application/merge-patch+json',
    });
    const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
    const budget = {
      metadata: { name: 'b' },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'x' } } },
    };
    await call(client, 'POST', budgets, { body: budget });
    const evict = () =>
      call(client, 'POST', `${core}/pods/p/eviction`, {
        body: { apiVersion, kind: 'Eviction', metadata: { name: 'p' } },
      });
    // No controller has seen the budget.
    expect(await evict()).toMatchObject({ status: 429, body: { details: { retryAfterSeconds: 10 } } });
    const seen = async (disruptionsAllowed: number) => {
      const status = {
        observedGeneration: 1,
        disruptionsAllowed,
        currentHealthy: 1,
        desiredHealthy: 1,
        expectedPods: 1,
      };
      await call(client, 'PATCH', `${budgets}/b/status`, {
        body: { status },
        contentType: 'application/merge-patch+json',
      });
    };
    await seen(0);
    const refused = await evict();
    expect(refused.status).toBe(429);
    expect(at(refused.body, 'details')).not.toHaveProperty('retryAfterSeconds');
    await seen(1);
    expect((await evict()).status).toBe(201);
    const { body: used } = await call(client, 'GET', `${budgets}/b`);
    expect(used).toMatchObject({
      status: {
        disruptionsAllowed: 0,
        disruptedPods: { p: expect.any(String) as string },
        conditions: [{ type: 'DisruptionAllowed', status: 'False', reason: 'InsufficientPods' }],
      },
    });
  },
);
