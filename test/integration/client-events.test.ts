import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTransport } from '../../src/client/connect.ts';
import { EventSender } from '../../src/client/events/event-sender.ts';
import type { Transport } from '../../src/client/transport.ts';
import { isRecord } from '../../src/objects/json.ts';
import type { KubeObject } from '../../src/objects/meta.ts';
import { textAt } from '../../src/objects/json.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { type Exchange, ScriptedServer } from '../support/scripted-server.ts';

const service: KubeObject = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace: 'default', name: 'web', uid: 'u', resourceVersion: '7' },
};

let server: ScriptedServer;
let transport: Transport;
let clock: FakeClock;
let metrics: Metrics;
let sender: EventSender;
let logged: string[];

beforeEach(async () => {
  server = await ScriptedServer.start();
  transport = await createTransport({ kind: 'endpoint', url: server.url });
  clock = new FakeClock();
  metrics = new Metrics();
  logged = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void logged.push(line) });
  sender = another(() => 0, log);
});

/** Sends to the same server, and begins with a random number. */
function another(random: () => number, log = pino({ enabled: false })): EventSender {
  return new EventSender({ transport, component: 'servicenet', clock, random, log, metrics });
}

afterEach(async () => {
  await transport.close();
  await server.close();
});

/** Answers a write with what was sent. */
function accept(exchange: Exchange): Record<string, unknown> {
  const sent: unknown = JSON.parse(exchange.body);
  if (!isRecord(sent)) throw new Error('no object was sent');
  const name = exchange.method === 'PATCH' ? { metadata: { name: exchange.path.split('/').at(-1) } } : {};
  exchange.json(200, { involvedObject: {}, ...sent, ...name });
  return sent;
}

describe('EventSender', () => {
  it('writes an Event as kube-controller-manager does', async () => {
    sender.event(service, 'Warning', 'FullRange', 'no port is left');
    const request = await server.next();
    expect(request).toMatchObject({ method: 'POST', path: '/api/v1/namespaces/default/events' });
    const sent = accept(request);
    const { name } = isRecord(sent['metadata']) ? sent['metadata'] : {};
    expect(name).toMatch(/^web\.[0-9a-f]{16}$/);
    expect(sent).toEqual({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace: 'default', name },
      involvedObject: {
        apiVersion: 'v1',
        kind: 'Service',
        namespace: 'default',
        name: 'web',
        uid: 'u',
        resourceVersion: '7',
      },
      type: 'Warning',
      reason: 'FullRange',
      message: 'no port is left',
      count: 1,
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:00:00Z',
      source: { component: 'servicenet' },
      reportingComponent: 'servicenet',
    });
    await sender.close();
  });

  it('gives an Event another name than the process next to it does in the same millisecond', async () => {
    const other = another(() => 0.5);
    sender.event(service, 'Warning', 'UndefinedRequest', 'one');
    const first = accept(await server.next());
    other.event(service, 'Warning', 'UndefinedRequest', 'two');
    const second = accept(await server.next());
    expect(textAt(first, 'metadata', 'name')).not.toBe(textAt(second, 'metadata', 'name'));
    await Promise.all([sender.close(), other.close()]);
  });

  it('counts repeats in the same Event, and begins a new one when that is gone', async () => {
    sender.event(service, 'Normal', 'Assigned', 'x');
    const created = accept(await server.next());
    clock.jump(60_000);
    sender.event(service, 'Normal', 'Assigned', 'x');
    const patch = await server.next();
    const { name } = isRecord(created['metadata']) ? created['metadata'] : {};
    expect(patch).toMatchObject({
      method: 'PATCH',
      path: `/api/v1/namespaces/default/events/${String(name)}`,
    });
    expect(accept(patch)).toEqual({ count: 2, lastTimestamp: '2026-01-01T00:01:00Z', message: 'x' });
    sender.event(service, 'Normal', 'Assigned', 'x');
    (await server.next()).status(404, 'NotFound');
    expect(accept(await server.next())).toMatchObject({ kind: 'Event', count: 3 });
    await sender.close();
    expect(await metrics.scrape()).toContain('servicenet_events_total{result="aggregated"} 2');
  });

  it('combines many different messages of one kind', async () => {
    for (let i = 0; i < 12; i++) sender.event(service, 'Normal', 'Assigned', `port ${i}`);
    const messages: unknown[] = [];
    for (let i = 0; i < 12; i++) messages.push(accept(await server.next())['message']);
    expect(messages.slice(8)).toEqual([
      'port 8',
      '(combined from similar events): port 9',
      '(combined from similar events): port 10',
      '(combined from similar events): port 11',
    ]);
    await sender.close();
  });

  it('allows 25 in a burst for one object, and one more every five minutes', async () => {
    const other = { ...service, metadata: { ...service.metadata, name: 'other', uid: 'v' } };
    for (let i = 0; i < 40; i++) sender.event(service, 'Normal', `R${i}`, 'x');
    sender.event(other, 'Normal', 'R', 'x');
    const reasons: unknown[] = [];
    for (let i = 0; i < 26; i++) reasons.push(accept(await server.next())['reason']);
    expect(reasons.slice(24)).toEqual(['R24', 'R']);
    await clock.advance(300_000);
    sender.event(service, 'Normal', 'late', 'x');
    sender.event(service, 'Normal', 'too many', 'x');
    expect(accept(await server.next())['reason']).toBe('late');
    await sender.close();
    expect(server.waiting).toBe(0);
  });

  it('tries again what never reached the server, and leaves what it refused', async () => {
    sender.event(service, 'Normal', 'A', 'x');
    (await server.next()).reset();
    await clock.timerWithin(5000, 5000);
    await clock.advance(5000);
    expect(accept(await server.next())['reason']).toBe('A');
    sender.event(service, 'Normal', 'B', 'x');
    (await server.next()).status(403, 'Forbidden');
    sender.event(service, 'Normal', 'C', 'x');
    expect(accept(await server.next())['reason']).toBe('C');
    await sender.close();
    expect(await metrics.scrape()).toContain('servicenet_events_total{result="failed"} 1');
  });

  it('warns of what the server refuses, but not in a namespace that is being deleted', async () => {
    const refuse = async (cause: string): Promise<void> => {
      sender.event(service, 'Normal', cause, cause);
      const details = { causes: [{ reason: cause, message: 'x', field: 'metadata.namespace' }] };
      (await server.next()).json(403, {
        ...{
          kind: 'Status',
          apiVersion: 'v1',
          status: 'Failure',
          reason: 'Forbidden',
          code: 403,
          message: 'no',
        },
        details,
      });
    };
    await refuse('NamespaceTerminating');
    await refuse('Other');
    await sender.close();
    expect(logged.map((line): unknown => JSON.parse(line))).toMatchObject([
      { reason: 'Other', msg: 'could not write an event' },
    ]);
  });

  it('does not keep the process from ending', async () => {
    sender.event(service, 'Normal', 'A', 'x');
    const request = await server.next();
    const closed = sender.close();
    await clock.advance(2000);
    await closed;
    await request.closed();
    sender.event(service, 'Normal', 'B', 'x');
    expect(server.waiting).toBe(0);
  });

  it('files cluster-scoped objects under the default namespace', async () => {
    sender.event({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } }, 'Normal', 'A', 'x');
    const request = await server.next();
    expect(request.path).toBe('/api/v1/namespaces/default/events');
    accept(request);
    await sender.close();
  });
});
