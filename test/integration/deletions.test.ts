import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { at, listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call, revisionOf, watchEvents } from '../support/test-server.ts';

/** Deletes of what is being deleted already (`rest.BeforeDelete`, `Store.updateForGracefulDeletionAndFinalizers`). */
let server: TestServer;
const services = '/api/v1/namespaces/default/services';
const pods = '/api/v1/namespaces/default/pods';
beforeAll(async () => {
  server = await startApiServer({ controllers: [] });
});
afterAll(async () => server.stop());

const remove = async (path: string, query: Record<string, string | number> = {}): Promise<JsonRecord> =>
  (await call(server.client, 'DELETE', path, { query })).body;
const graceOf = (object: JsonRecord): unknown => at(object, 'metadata', 'deletionGracePeriodSeconds');

async function addPod(name: string, grace: number): Promise<string> {
  const containers = [{ name: 'c', image: 'i' }];
  const body = {
    metadata: { name },
    spec: { nodeName: 'n', terminationGracePeriodSeconds: grace, containers },
  };
  await call(server.client, 'POST', pods, { body });
  return `${pods}/${name}`;
}

describe('an object that waits for the garbage collector', () => {
  test('goes as it is stored, in one event, when a later delete does not want to wait', async () => {
    const body = { metadata: { name: 'a', finalizers: ['orphan'] }, spec: { clusterIP: 'None' } };
    await call(server.client, 'POST', services, { body });
    expect(graceOf(await remove(`${services}/a`))).toBe(0);
    const resourceVersion = await revisionOf(server.client, services);
    const gone = await remove(`${services}/a`, { propagationPolicy: 'Background' });
    expect(at(gone, 'metadata', 'finalizers')).toEqual(['orphan']);
    const query = { resourceVersion, fieldSelector: 'metadata.name=a' };
    const [event] = await watchEvents(server.client, services, query, 1);
    expect(event).toMatchObject({ type: 'DELETED', object: { metadata: { finalizers: ['orphan'] } } });
  });

  test('still takes another propagation policy while others hold it', async () => {
    const body = { metadata: { name: 'b', finalizers: ['x/y'] }, spec: { clusterIP: 'None' } };
    await call(server.client, 'POST', services, { body });
    await remove(`${services}/b`, { propagationPolicy: 'Foreground' });
    const changed = await remove(`${services}/b`, { propagationPolicy: 'Orphan' });
    expect(at(changed, 'metadata', 'finalizers')).toEqual(['x/y', 'orphan']);
  });
});

describe('a Pod whose grace period runs', () => {
  test('takes no other propagation policy', async () => {
    const path = await addPod('policy', 30);
    const first = await remove(path);
    expect(graceOf(first)).toBe(30);
    expect(await remove(path, { propagationPolicy: 'Orphan' })).toEqual(first);
  });

  test('has it shortened to what is asked for, also when its containers have ended', async () => {
    const path = await addPod('shortened', 30);
    await remove(path);
    await call(server.client, 'PATCH', `${path}/status`, {
      body: { status: { phase: 'Failed' } },
      contentType: 'application/merge-patch+json',
    });
    expect(graceOf(await remove(path, { gracePeriodSeconds: 10 }))).toBe(10);
    expect(graceOf(await remove(path, { gracePeriodSeconds: -1 }))).toBe(1);
  });

  test('keeps a second of one that is over when it is shortened', async () => {
    const path = await addPod('over', 4);
    const end = Date.parse(textAt(await remove(path), 'metadata', 'deletionTimestamp'));
    while (Date.now() <= end - 2000) await sleep(50);
    const before = Date.now();
    const shortened = await remove(path, { gracePeriodSeconds: 2 });
    expect(graceOf(shortened)).toBe(1);
    const next = Date.parse(textAt(shortened, 'metadata', 'deletionTimestamp'));
    expect(next).toBeGreaterThan(before - 1000);
  });
});

test('a collection is deleted as it was at the version that is asked for', async () => {
  const configMaps = '/api/v1/namespaces/default/configmaps';
  const labels = { of: 'collection' };
  for (const name of ['a', 'b']) {
    await call(server.client, 'POST', configMaps, { body: { metadata: { name, labels } } });
    if (name === 'b') continue;
    await call(server.client, 'POST', configMaps, { body: { metadata: { name: 'other' } } });
  }
  const resourceVersion = textAt(
    (await call(server.client, 'GET', `${configMaps}/other`)).body,
    'metadata',
    'resourceVersion',
  );
  const { body } = await call(server.client, 'DELETE', configMaps, {
    query: { labelSelector: 'of=collection', resourceVersion },
  });
  expect(listAt(body, 'items').map((item) => textAt(item, 'metadata', 'name'))).toEqual(['a']);
  expect((await call(server.client, 'GET', `${configMaps}/b`)).status).toBe(200);
});

test("a Service goes without its Endpoints, which are their controller's", async () => {
  const endpoints = '/api/v1/namespaces/default/endpoints';
  const metadata = { name: 'left' };
  await call(server.client, 'POST', services, { body: { metadata, spec: { ports: [{ port: 80 }] } } });
  await call(server.client, 'POST', endpoints, { body: { metadata } });
  await remove(`${services}/left`);
  expect((await call(server.client, 'GET', `${services}/left`)).status).toBe(404);
  expect((await call(server.client, 'GET', `${endpoints}/left`)).status).toBe(200);
});
