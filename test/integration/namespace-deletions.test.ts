import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { at } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

/** How Namespaces take what a delete says of their dependents (`pkg/registry/core/namespace/storage`). */
let server: TestServer;
const namespaces = '/api/v1/namespaces';
beforeAll(async () => {
  server = await startApiServer({ controllers: ['namespace-controller', 'garbage-collector-controller'] });
});
afterAll(async () => server.stop());

async function remove(name: string, body: JsonRecord, finalizers?: string[]): Promise<JsonRecord> {
  const metadata = { name, ...(finalizers === undefined ? {} : { finalizers }) };
  await call(server.client, 'POST', namespaces, { body: { metadata } });
  return (await call(server.client, 'DELETE', `${namespaces}/${name}`, { body })).body;
}

describe('a delete', () => {
  test.each([
    ['foreground', { propagationPolicy: 'Foreground' }, undefined, ['foregroundDeletion']],
    ['orphan', { propagationPolicy: 'Orphan' }, ['x/y'], ['x/y', 'orphan']],
    ['background', { propagationPolicy: 'Background' }, ['orphan'], undefined],
    ['old-words', { orphanDependents: false }, ['orphan'], ['foregroundDeletion']],
    ['old-orphan', { orphanDependents: true }, undefined, ['orphan']],
    ['no-word', {}, ['orphan'], ['orphan']],
  ])('%s: %j', async (name, options, before, after) => {
    const marked = await remove(name, { ...options, dryRun: ['All'] }, before);
    expect(at(marked, 'metadata', 'finalizers')).toEqual(after);
    expect(at(marked, 'status', 'phase')).toBe('Terminating');
  });

  test('with Foreground ends, as the garbage collector takes its finalizer', async () => {
    await remove('ends', { propagationPolicy: 'Foreground' });
    while ((await call(server.client, 'GET', `${namespaces}/ends`)).status !== 404) await setImmediate();
  });

  test('of a system namespace with another uid is a conflict first', async () => {
    const body = { preconditions: { uid: 'x' }, dryRun: ['All'] };
    expect((await call(server.client, 'DELETE', `${namespaces}/default`, { body })).status).toBe(409);
  });
});
