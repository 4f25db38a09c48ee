import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import { at } from '../../src/objects/json.ts';
import { runAgainst } from '../support/controllers-of-a-script.ts';
import type { Exchange } from '../support/scripted-server.ts';
import { until } from '../support/until.ts';
import { controllersOf } from '../support/all-controllers.ts';

const many = 100_000;
const hostile = JSON.parse(
  '{"__proto__":"x","constructor":"y","toString":"z","":"","\\n/=,":"\\u0000"}',
) as JsonRecord;
const serviceLabels = (name: string): JsonRecord => ({
  'kubernetes.io/service-name': name,
  'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
});
const mirrorLabels = (name: string): JsonRecord => ({
  'kubernetes.io/service-name': name,
  'endpointslice.kubernetes.io/managed-by': 'endpointslicemirroring-controller.k8s.io',
});
const named = (name: string, rest: JsonRecord = {}): JsonRecord => ({
  metadata: { name, namespace: 'a', uid: `uid-${name}`, resourceVersion: '3', ...rest },
});
/** A Service's members, and Pods that it selects. */
const selecting = (selector: unknown, rest: JsonRecord = {}): JsonRecord => ({
  spec: { clusterIP: '10.0.0.2', selector, ports: [{ port: 80 }], ...rest },
});

/** What no schema allows, beside a Service with a Pod, and one with Endpoints by hand, that are well. */
const objects: Readonly<Record<string, readonly unknown[]>> = {
  services: [
    { ...named('good'), ...selecting({ app: 'good' }) },
    { ...named('by-hand'), spec: { clusterIP: '10.0.0.3', ports: [{ port: 80 }] } },
    5,
    null,
    { metadata: { name: 'no-spec', namespace: 'a' } },
    { ...named('wrong-types'), spec: { selector: [1], ports: 7, ipFamilies: {}, clusterIP: 3, type: [] } },
    {
      ...named('wrong-members'),
      ...selecting({ app: 3 }, { ports: [null, 'x', { port: 'y', targetPort: {} }] }),
    },
    { ...named('odd-ports'), ...selecting({ app: 'good' }, { ports: [null, { port: -1, targetPort: [] }] }) },
    {
      ...named('odd-families'),
      ...selecting({ app: 'good' }, { ipFamilies: [7, null, 'IPv9'], clusterIP: 'x' }),
    },
    { ...named('hostile', { labels: hostile, annotations: hostile }), ...selecting(hostile) },
    {
      ...named('no-metadata', { labels: 4, annotations: [], creationTimestamp: {} }),
      ...selecting({ app: 'good' }),
    },
    {
      ...named('many-ports'),
      ...selecting({ app: 'good' }, { ports: Array.from({ length: many }, () => ({ port: 80 })) }),
    },
  ],
  pods: [
    {
      ...named('p', { labels: { app: 'good', ...hostile } }),
      spec: { nodeName: 'n' },
      status: { podIP: '10.1.0.1', phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    },
    { ...named('nothing', { labels: { app: 'good' } }) },
    {
      ...named('wrong', { labels: { app: 'good' } }),
      spec: { nodeName: {}, containers: 7 },
      status: { podIPs: 'x' },
    },
    {
      ...named('wronger', { labels: { app: 'good' }, deletionTimestamp: 9, ownerReferences: {} }),
      spec: {
        nodeName: 'n',
        hostname: 8,
        containers: [null, { ports: [null, { name: 5 }] }],
        initContainers: [[]],
      },
      status: {
        podIP: 'not an address',
        podIPs: [null, { ip: 7 }],
        conditions: [null, { type: 'Ready' }],
        phase: {},
      },
    },
    { ...named('labels', { labels: [['app', 'good']] }), spec: {}, status: { podIP: '10.1.0.9' } },
    {
      ...named('many', { labels: { app: 'many' } }),
      spec: {},
      status: { podIPs: Array.from({ length: many }, () => ({ ip: '10.1.0.3' })) },
    },
  ],
  nodes: [
    { metadata: { name: 'n', labels: { 'topology.kubernetes.io/zone': 'z' } }, spec: {}, status: {} },
    { metadata: { name: 'odd', labels: 3 }, spec: {}, status: { conditions: {}, allocatable: { cpu: {} } } },
    { metadata: { name: 'odder' }, spec: {}, status: { conditions: [null, 4], allocatable: 'x' } },
  ],
  endpoints: [
    {
      ...named('by-hand'),
      subsets: [{ addresses: [{ ip: '10.2.0.1' }], ports: [{ port: 80, protocol: 'TCP' }] }],
    },
    { ...named('wrong-types'), subsets: 'x' },
    {
      ...named('odd-ports', { labels: [], annotations: 3 }),
      subsets: [null, 5, { addresses: 7, ports: {} }],
    },
    { ...named('hostile', { labels: hostile }), subsets: [{ addresses: [null, { ip: 9, targetRef: 4 }] }] },
    { ...named('left-behind'), subsets: [{ addresses: [{}], ports: [null] }] },
  ],
  endpointslices: [
    { ...named('no-lists', { labels: serviceLabels('good') }) },
    {
      ...named('odd', { labels: serviceLabels('odd-ports') }),
      endpoints: [null, 3, {}],
      ports: [null, 'x', {}],
    },
    {
      ...named('odder', { labels: mirrorLabels('by-hand') }),
      endpoints: [{ addresses: 7, conditions: 4 }],
      ports: 9,
    },
    { ...named('odd-labels', { labels: 7, ownerReferences: 'x' }), endpoints: [], ports: [] },
    {
      ...named('bare', { labels: serviceLabels('good') }),
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.1.0.1'] }],
    },
    {
      ...named('many', { labels: mirrorLabels('gone') }),
      addressType: 'IPv4',
      endpoints: Array.from({ length: many }, (_, i) => ({ addresses: [String(i)] })),
      ports: [],
    },
  ],
};

/** Stores nothing but what is asked for the two Services that are well, and tells of it twice. */
class BrokenServer {
  readonly writes: string[] = [];
  readonly #watches = new Map<string, Exchange>();
  readonly #stored = new Map<string, JsonRecord[]>();
  #revision = 10;

  answer(exchange: Exchange): void {
    const plural = exchange.path.split('/').find((part) => part in objects) ?? '';
    if (exchange.query.has('sendInitialEvents')) exchange.status(400, 'BadRequest');
    else if (exchange.isWatch) {
      this.#watches.set(plural, exchange.watch());
      for (const stored of this.#stored.get(plural) ?? []) this.#tell(plural, stored);
    } else if (exchange.method === 'GET') {
      exchange.json(200, { metadata: { resourceVersion: '10' }, items: objects[plural] ?? [] });
    } else this.#write(exchange, plural);
  }

  #write(exchange: Exchange, plural: string): void {
    const body: unknown = JSON.parse(exchange.body);
    const owner =
      at(body, 'metadata', 'labels', 'kubernetes.io/service-name') ?? at(body, 'metadata', 'name');
    this.writes.push(`${exchange.method} ${plural} ${String(owner)}`);
    if (exchange.method !== 'POST' || (owner !== 'good' && owner !== 'by-hand')) {
      exchange.status(422, 'Invalid');
      return;
    }
    const metadata: JsonRecord = {
      ...(isRecord(body) && isRecord(body['metadata']) ? body['metadata'] : {}),
      name: `${owner}-${this.#revision}`,
      uid: `new-${this.#revision}`,
      resourceVersion: String(++this.#revision),
      generation: 1,
    };
    const stored: JsonRecord = { ...(isRecord(body) ? body : {}), metadata };
    exchange.json(201, stored);
    this.#stored.set(plural, [...(this.#stored.get(plural) ?? []), stored]);
    this.#tell(plural, stored);
  }

  /** Tells twice of what was stored, and of what is no event at all. */
  #tell(plural: string, stored: JsonRecord): void {
    const watch = this.#watches.get(plural);
    watch?.event('ADDED', stored).event('ADDED', stored).event('MODIFIED', stored);
    watch?.event('MODIFIED', { metadata: 4 }).event('NONSENSE', stored).event('BOOKMARK', []);
  }

  /** Every list is followed by a watch. */
  get isWatched(): boolean {
    return this.#watches.size === Object.keys(objects).length;
  }

  count(text: string): number {
    return this.writes.filter((write) => write === text).length;
  }
}

describe('the endpoints controllers on a broken server', () => {
  it('serve the Services that are well, and neither crash nor spin over the others, whatever the clock does', async () => {
    const server = new BrokenServer();
    const { clock, problems } = await runAgainst(server, 'warn', (transport) => ({
      controllers: controllersOf({ transport }, ['endpoints', 'endpointslice', 'endpointslice-mirroring']),
    }));
    const wanted = ['POST endpoints good', 'POST endpointslices good', 'POST endpointslices by-hand'];
    // The clock goes on by no more than the time that goes on: what was sent in vain comes again, nothing counts as lost.
    await until(
      () => wanted.every((write) => server.count(write) > 0) && server.isWatched,
      async () => Promise.all([clock.advance(1), sleep(1)]),
    );
    // Turns for the news of these writes to come, before the clock moves: they must not count as lost.
    for (let turn = 0; turn < 100; turn++) await clock.advance(0);
    // The others come again ever later, and the clock of the wall says nothing about that.
    clock.jump(-86_400_000);
    await clock.advance(60_000);
    clock.jump(30 * 86_400_000);
    const soon = server.writes.length;
    await clock.advance(60_000);
    expect(server.writes.length - soon).toBeLessThan(60);
    for (const write of wanted) expect(server.count(write), write).toBe(1);
    // What is wrong is logged, without the stack trace of a bug.
    const text = problems.join('\n');
    expect(text).toContain('dropped an object that no schema allows');
    expect(text).not.toMatch(/TypeError|RangeError/);
  }, 600_000);
});
