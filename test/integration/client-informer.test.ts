import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTransport } from '../../src/client/connect.ts';
import { byNamespace, indexByLabel, indexByNamespace } from '../../src/client/informers/cache.ts';
import { InformerFactory } from '../../src/client/informers/shared-informer.ts';
import { pods, services } from '../../src/client/resources.ts';
import type { Transport } from '../../src/client/transport.ts';
import type { Pod } from '../../src/objects/types/core.generated.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { listed, pod, podList } from '../support/objects.ts';
import { ScriptedServer } from '../support/scripted-server.ts';

let server: ScriptedServer;
let transport: Transport;
let clock: FakeClock;
let stop: AbortController;
let factory: InformerFactory;
let metrics: Metrics;

beforeEach(async () => {
  server = await ScriptedServer.start();
  transport = await createTransport({ kind: 'endpoint', url: server.url });
  clock = new FakeClock();
  stop = new AbortController();
  const log = pino({ level: 'silent' });
  metrics = new Metrics();
  factory = new InformerFactory({ transport, clock, random: () => 0, log, metrics });
});

afterEach(async () => {
  stop.abort();
  await factory.finished();
  await transport.close();
  await server.close();
});

describe('InformerFactory', () => {
  it('makes one informer per resource and starts late ones too', async () => {
    const first = factory.informer(pods);
    expect(factory.informer(pods)).toBe(first);
    expect(() => factory.informer({ ...pods })).toThrow('pods is defined twice');
    factory.start(stop.signal);
    expect((await server.next()).path).toBe('/api/v1/pods');
    factory.informer(services);
    expect((await server.next()).path).toBe('/api/v1/services');
  });

  const withoutSpec = (object: Pod): Pod => ({ ...object, spec: {} });
  const withoutStatus = (object: Pod): Pod => ({ ...object, status: {} });
  it.each([
    ['what its only user reads', [withoutSpec], {}],
    ['the same for users that read the same', [withoutSpec, withoutSpec], {}],
    ['whole objects for a user that reads all, behind', [withoutSpec, undefined], { nodeName: 'node-1' }],
    ['whole objects for a user that reads all, before', [undefined, withoutSpec], { nodeName: 'node-1' }],
    [
      'whole objects for users that read different parts',
      [withoutSpec, withoutStatus],
      { nodeName: 'node-1' },
    ],
  ])('keeps %s', async (_name, transforms, spec) => {
    for (const transform of transforms) factory.informer(pods, transform === undefined ? {} : { transform });
    const informer = factory.informer(pods, transforms[0] === undefined ? {} : { transform: transforms[0] });
    factory.start(stop.signal);
    const sent = { ...pod('a', '1'), spec: { nodeName: 'node-1' } };
    (await server.next()).watch().event('ADDED', sent).bookmark('2', { 'k8s.io/initial-events-end': 'true' });
    await informer.synced(stop.signal);
    expect(informer.cache.get('default/a')?.spec).toEqual(spec);
  });

  it('refuses a user of whole objects once the cache keeps less', () => {
    factory.informer(pods, { transform: withoutSpec });
    factory.start(stop.signal);
    expect(() => factory.informer(pods)).toThrow('the cache of pods keeps only a part of its objects');
  });

  it('keeps going when a handler, or a transform, throws', async () => {
    const informer = factory.informer(pods, {
      transform: (object) => {
        if (object.metadata.name === 'poison') throw new Error('cannot');
        return object;
      },
    });
    const seen: string[] = [];
    informer.addHandler({
      added: () => {
        throw new Error('a bug');
      },
    });
    informer.addHandler({ added: ({ metadata }) => seen.push(metadata.name ?? '') });
    factory.start(stop.signal);
    const watch = (await server.next()).watch();
    for (const name of ['a', 'poison', 'b']) watch.event('ADDED', pod(name, '1'));
    watch.bookmark('2', { 'k8s.io/initial-events-end': 'true' });
    await informer.synced(stop.signal);
    expect(seen).toEqual(['a', 'b']);
  });

  it('drops managedFields and stores what the transform keeps', async () => {
    const informer = factory.informer(pods, {
      transform: (object) => ({ ...object, spec: {} }),
    });
    factory.start(stop.signal);
    const sent = { ...pod('a', '1'), spec: { nodeName: 'n1' } };
    sent.metadata.managedFields = [{ manager: 'kubelet' }];
    (await server.next()).watch().event('ADDED', sent).bookmark('2', { 'k8s.io/initial-events-end': 'true' });
    await informer.synced(stop.signal);
    expect(informer.cache.get('default/a')?.spec).toEqual({});
    expect(informer.cache.get('default/a')?.metadata).not.toHaveProperty('managedFields');
  });

  it('tells late handlers what is there, and none that left', async () => {
    const informer = factory.informer(pods);
    informer.addIndex(byNamespace, indexByNamespace);
    factory.start(stop.signal);
    const watch = (await server.next()).watch().event('ADDED', pod('a', '1', { app: 'x' }));
    watch.bookmark('2', { 'k8s.io/initial-events-end': 'true' });
    await informer.synced(stop.signal);
    informer.addIndex('app', indexByLabel('app'));
    expect(informer.cache.byIndex('app', 'default/x')).toHaveLength(1);
    expect(informer.cache.byIndex(byNamespace, 'default')).toHaveLength(1);
    const seen: string[] = [];
    const remove = informer.addHandler({
      added: ({ metadata }, initial) => seen.push(`${metadata.name ?? ''} ${initial}`),
    });
    expect(seen).toEqual(['a true']);
    remove();
    const later = new Promise<void>((resolve) => {
      informer.addHandler({ deleted: () => resolve() });
    });
    watch.event('ADDED', pod('b', '3')).event('DELETED', pod('a', '4'));
    await later;
    expect(seen).toEqual(['a true']);
    expect(informer.cache.byIndex('app', 'default/x')).toEqual([]);
  });

  it('is ready when all caches are full, and no longer when the server has been silent', async () => {
    const informer = factory.informer(pods);
    factory.start(stop.signal);
    const problems = (): (string | undefined)[] => factory.healthChecks().map((one) => one.check());
    expect(problems()).toEqual(['not synced yet: pods', undefined]);
    (await server.next()).watch().bookmark('2', { 'k8s.io/initial-events-end': 'true' });
    await informer.synced(stop.signal);
    expect(problems()).toEqual([undefined, undefined]);
    // Half-open: every further request hangs.
    await clock.timerWithin(150_000, 150_000);
    await clock.advance(150_000);
    await server.next();
    await clock.advance(150_001);
    expect(problems()).toEqual([undefined, 'no sign of life from the API server: pods']);
    expect(await metrics.scrape()).toMatch(/servicenet_cache_age_seconds\{resource="pods"\} 300\.\d*\n/);
  });

  it('fills a cache of 20,000 from pages, asking for fewer objects at a time where they are large', async () => {
    const informer = factory.informer(pods);
    factory.start(stop.signal);
    const padding = { padding: 'x'.repeat(3000) };
    const limits = new Set<number>();
    const until = new AbortController();
    const serving = server.serve((exchange) => {
      if (exchange.isWatch) {
        if (exchange.query.has('sendInitialEvents')) exchange.status(400, 'BadRequest');
        else exchange.watch();
        return;
      }
      const start = Number(exchange.query.get('continue') ?? 0);
      const limit = Number(exchange.query.get('limit'));
      limits.add(limit);
      const end = Math.min(20_000, start + limit);
      const items = Array.from({ length: end - start }, (_, i) => listed(`p${start + i}`, '1', padding));
      exchange.json(200, podList('9', items, end < 20_000 ? String(end) : undefined));
    }, until.signal);
    await informer.synced(stop.signal);
    expect(informer.cache.size).toBe(20_000);
    expect(Math.max(...limits)).toBe(500);
    expect(Math.min(...limits)).toBeLessThan(300);
    until.abort();
    await serving;
  });
});
