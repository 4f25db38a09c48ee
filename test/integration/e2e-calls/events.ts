import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { makeNamespace } from '../../support/api-operations.ts';
import type { TypedClient } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls of e2e tests of Events (`instrumentation/core_events.go`, `instrumentation/events.go`). */
export function events(shared: () => E2eCluster): void {
  let server: TestServer;
  let client: TypedClient;
  let namespace = '';
  let coreEvents = '';
  let events = '';
  let made = 0;
  beforeAll(() => {
    ({ server, client } = shared());
  });
  beforeEach(async () => {
    namespace = await makeNamespace(server, `events-${++made}`);
    coreEvents = `/api/v1/namespaces/${namespace}/events`;
    events = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
  });

  const coreEvent = (name: string, label: string): JsonRecord => ({
    ...{ apiVersion: 'v1', kind: 'Event', metadata: { name, labels: { [label]: 'true' } } },
    ...{ message: `This is ${name}`, reason: 'Test', type: 'Normal', count: 1 },
    involvedObject: { namespace },
  });

  const newEvent = (name: string, label: string): JsonRecord => ({
    ...{ apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { name, labels: { [label]: 'true' } } },
    ...{ regarding: { namespace }, eventTime: '2017-09-19T13:49:16.000000Z', note: `This is ${name}` },
    ...{ action: 'Do', reason: 'Test', type: 'Normal' },
    ...{ reportingController: 'test-controller', reportingInstance: 'test-node' },
  });

  async function namesIn(path: string, query: Record<string, string>): Promise<string[]> {
    const { status, body } = await client.call('GET', path, { query });
    expect(status).toBe(200);
    return listAt(body, 'items').map((item) => textAt(item, 'metadata', 'name'));
  }

  const constant = { labelSelector: 'testevent-constant=true' };
  const inSet = { labelSelector: 'testevent-set=true' };
  const everywhere = (path: string): string => path.replace(/\/namespaces\/[^/]+/, '');

  /** Compared as the tests do: without what every write changes. */
  function settled({ metadata, ...event }: JsonRecord): JsonRecord {
    const { resourceVersion: _version, managedFields: _managed, ...rest } = recordAt(metadata);
    return { ...event, metadata: rest };
  }

  test('[sig-instrumentation] Events should manage the lifecycle of an event', async () => {
    const path = `${coreEvents}/event-test`;
    expect(
      (await client.call('POST', coreEvents, { body: coreEvent('event-test', 'testevent-constant') })).status,
    ).toBe(201);
    expect(await namesIn(everywhere(coreEvents), constant)).toEqual(['event-test']);
    const message = 'This is a test event - patched';
    const patched = await client.call('PATCH', path, { body: { message }, patch: 'strategic-merge' });
    expect(patched.status).toBe(200);
    const { body } = await client.call('GET', path);
    expect(body['message']).toBe(message);
    // updated without a resourceVersion and without managedFields
    const series = { count: 100, lastObservedTime: '2017-09-19T13:49:16.000000Z' };
    const wanted = { ...settled(body), series };
    expect((await client.call('PUT', path, { body: wanted })).status).toBe(200);
    expect(settled((await client.call('GET', path)).body)).toEqual(wanted);
    expect((await client.call('DELETE', path)).status).toBe(200);
    expect(await namesIn(everywhere(coreEvents), constant)).toEqual([]);
  });

  test('[sig-instrumentation] Events should delete a collection of events', async () => {
    for (let n = 1; n <= 3; n++)
      await client.call('POST', coreEvents, { body: coreEvent(`test-event-${n}`, 'testevent-set') });
    expect(await namesIn(coreEvents, inSet)).toHaveLength(3);
    expect((await client.call('DELETE', coreEvents, { query: inSet })).status).toBe(200);
    expect(await namesIn(coreEvents, inSet)).toEqual([]);
  });

  test('[sig-instrumentation] Events API should ensure that an event can be fetched, patched, deleted, and listed', async () => {
    const path = `${events}/event-test`;
    expect(
      (await client.call('POST', events, { body: newEvent('event-test', 'testevent-constant') })).status,
    ).toBe(201);
    for (const list of [everywhere(events), events])
      expect(await namesIn(list, constant)).toEqual(['event-test']);
    expect(await namesIn(coreEvents, { fieldSelector: 'source=test-controller' })).toEqual(['event-test']);
    expect(await namesIn(events, { fieldSelector: 'reportingController=test-controller' })).toEqual([
      'event-test',
    ]);
    const before = await client.call('GET', path);
    const series = { count: 2, lastObservedTime: '2017-09-19T13:49:11.000000Z' };
    const patch = { body: { series }, patch: 'strategic-merge' as const };
    expect((await client.call('PATCH', path, patch)).status).toBe(200);
    const patched = await client.call('GET', path);
    expect(settled(patched.body)).toEqual(settled({ ...before.body, series }));

    // updated without a resourceVersion and without managedFields
    const wanted = {
      ...settled(before.body),
      series: { count: 100, lastObservedTime: '2017-09-19T13:49:16.000000Z' },
    };
    expect((await client.call('PUT', path, { body: wanted })).status).toBe(200);
    expect(settled((await client.call('GET', path)).body)).toEqual(wanted);
    expect((await client.call('DELETE', path)).status).toBe(200);
    for (const list of [everywhere(events), events]) expect(await namesIn(list, constant)).toEqual([]);
  });

  test('[sig-instrumentation] Events API should delete a collection of events', async () => {
    for (let n = 1; n <= 3; n++)
      await client.call('POST', events, { body: newEvent(`test-event-${n}`, 'testevent-set') });
    expect(await namesIn(events, inSet)).toHaveLength(3);
    expect((await client.call('DELETE', events, { query: inSet })).status).toBe(200);
    expect(await namesIn(events, inSet)).toEqual([]);
  });
}
