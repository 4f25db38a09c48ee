import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTransport } from '../../src/client/connect.ts';
import { InformerFactory } from '../../src/client/informers/shared-informer.ts';
import type { Informer } from '../../src/client/informers/informer.ts';
import { pods } from '../../src/client/resources.ts';
import type { Transport } from '../../src/client/transport.ts';
import type { Pod } from '../../src/objects/types/core.generated.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { listed, pod, podList } from '../support/objects.ts';
import { type Exchange, failure, ScriptedServer } from '../support/scripted-server.ts';

const end = { 'k8s.io/initial-events-end': 'true' };

let server: ScriptedServer;
let transport: Transport;
let clock: FakeClock;
let metrics: Metrics;
let stop: AbortController;
let factory: InformerFactory;
let informer: Informer<Pod>;
let seen: string[];
let changed: (() => void) | undefined;

beforeEach(async () => {
  server = await ScriptedServer.start();
  clock = new FakeClock();
  transport = await createTransport({ kind: 'endpoint', url: server.url }, undefined, clock);
  metrics = new Metrics();
  stop = new AbortController();
  factory = new InformerFactory({
    transport,
    clock,
    random: () => 0,
    log: pino({ level: 'silent' }),
    metrics,
    pageSize: 2,
  });
  informer = factory.informer(pods);
  seen = [];
  const note = (word: string): void => {
    seen.push(word);
    changed?.();
  };
  informer.addHandler({
    added: ({ metadata }, initial) => note(`${initial ? 'initial' : 'added'} ${metadata.name ?? ''}`),
    updated: ({ metadata }) => note(`updated ${metadata.name ?? ''}@${metadata.resourceVersion ?? ''}`),
    deleted: ({ metadata }) => note(`deleted ${metadata.name ?? ''}`),
  });
  factory.start(stop.signal);
});

afterEach(async () => {
  stop.abort();
  await factory.finished();
  await transport.close();
  await server.close();
});

/** Resolves when the handler has had so many calls. */
async function events(count: number): Promise<string[]> {
  while (seen.length < count) await new Promise<void>((resolve) => (changed = resolve));
  return seen;
}

/** The server knows no WatchList: refuses it, and hands over the first page's request. */
async function firstList(): Promise<Exchange> {
  const watchList = await server.next();
  expect(watchList.query.get('sendInitialEvents')).toBe('true');
  watchList.status(422, 'Invalid', 'sendInitialEvents is forbidden for watch');
  return server.next();
}

/** Everything up to the open watch from revision 10 over pod a. */
async function watching(): Promise<Exchange> {
  (await firstList()).json(200, podList('10', [listed('a', '5')]));
  const watch = await server.next();
  expect(watch.query.get('resourceVersion')).toBe('10');
  return watch.watch();
}

/** The back-off after a first failure, with random() = 0. */
async function backOff(): Promise<void> {
  await clock.timerWithin(800, 800);
  await clock.advance(800);
}

describe('filling the cache', () => {
  it('asks for the objects that selectors name, in lists and in watches', async () => {
    const own = { fieldSelectors: { pods: 'spec.nodeName=a' }, labelSelectors: { pods: '!hidden' } };
    const log = pino({ level: 'silent' });
    const chosen = new InformerFactory({ transport, clock, random: () => 0, log, ...own });
    chosen.informer(pods);
    chosen.start(stop.signal);
    const selectors = ({ query }: Exchange) => [query.get('fieldSelector'), query.get('labelSelector')];
    const [all, some] = [await server.next(), await server.next()];
    all.watch();
    expect([all, some].map(selectors)).toEqual([
      [null, null],
      ['spec.nodeName=a', '!hidden'],
    ]);
    some.status(422, 'Invalid', 'sendInitialEvents is forbidden for watch');
    const list = await server.next();
    expect(selectors(list)).toEqual(['spec.nodeName=a', '!hidden']);
    list.json(200, podList('10', []));
    expect(selectors(await server.next())).toEqual(['spec.nodeName=a', '!hidden']);
    stop.abort();
    await chosen.finished();
  });

  it('takes a streamed list where the server offers it, and goes on in the same watch', async () => {
    const watch = await server.next();
    expect(watch.path).toBe('/api/v1/pods');
    expect(Object.fromEntries(watch.query)).toMatchObject({
      watch: 'true',
      allowWatchBookmarks: 'true',
      sendInitialEvents: 'true',
      resourceVersionMatch: 'NotOlderThan',
      timeoutSeconds: '300',
    });
    watch.watch().event('ADDED', pod('a', '3')).event('ADDED', pod('b', '7'));
    await events(2);
    expect(informer.hasSynced).toBe(false);
    watch.bookmark('9', end);
    expect(await informer.synced(stop.signal)).toBe(true);
    watch.event('MODIFIED', pod('a', '11'));
    expect(await events(3)).toEqual(['initial a', 'initial b', 'updated a@11']);
    watch.end();
    await backOff();
    expect((await server.next()).query.get('resourceVersion')).toBe('11');
  });

  it('falls back to pages, stamps their items, and hands out frozen objects', async () => {
    const first = await firstList();
    expect(first.query.get('limit')).toBe('2');
    expect(first.query.get('resourceVersion')).toBeNull();
    first.json(200, podList('10', [listed('a', '1'), listed('b', '2')], 'next'));
    const second = await server.next();
    expect(second.query.get('continue')).toBe('next');
    expect(informer.hasSynced).toBe(false);
    second.json(200, podList('10', [listed('c', '3')]));
    await informer.synced(stop.signal);
    const watch = await server.next();
    expect(watch.query.get('resourceVersion')).toBe('10');
    expect(seen).toEqual(['initial a', 'initial b', 'initial c']);
    const object = informer.cache.get('default/a');
    expect(object).toMatchObject({ apiVersion: 'v1', kind: 'Pod' });
    expect(Object.isFrozen(object?.metadata.labels)).toBe(true);
  });

  it.each([
    ['says nothing', () => undefined],
    ['sends its objects and goes on with changes', (watch: Exchange) => watch.event('ADDED', pod('a', '3'))],
  ])('falls back to pages when a server that knows no streamed lists %s', async (_, answer) => {
    const stream = (await server.next()).watch();
    answer(stream);
    await clock.timerWithin(5000, 5000);
    // Changes are no sign that a list goes on.
    for (let i = 0; i < 4; i++) {
      await clock.advance(1000);
      stream.event('MODIFIED', pod('a', String(4 + i)));
    }
    await clock.advance(1000);
    const list = await server.next();
    expect(list.isWatch).toBe(false);
    list.json(200, podList('10', [listed('a', '8')]));
    expect(await informer.synced(stop.signal)).toBe(true);
  });

  it('gives a streamed list time while objects come', async () => {
    const watch = (await server.next()).watch();
    for (let i = 1; i <= 4; i++) {
      watch.event('ADDED', pod(`p${i}`, String(i)));
      await events(i);
      await clock.advance(4000);
    }
    watch.bookmark('9', end);
    expect(await informer.synced(stop.signal)).toBe(true);
  });

  it('falls back to pages when objects come and come, but no end of them', async () => {
    const watch = (await server.next()).watch();
    for (let i = 1; i <= 16; i++) {
      watch.event('ADDED', pod(`p${i}`, String(i)));
      await events(i);
      await clock.advance(4000);
    }
    watch.event('ADDED', pod('p17', '17'));
    expect((await server.next()).isWatch).toBe(false);
  });

  it('falls back to pages at a bookmark that ends no list', async () => {
    (await server.next()).watch().event('ADDED', pod('a', '3')).bookmark('9');
    const list = await server.next();
    expect(list.isWatch).toBe(false);
    list.json(200, podList('10', [listed('a', '3')]));
    expect(await informer.synced(stop.signal)).toBe(true);
  });

  it('lists when a streamed list fails in a way that says nothing of the next try, and streams the next time', async () => {
    (await server.next()).text(502, 'bad gateway');
    const list = await server.next();
    expect(list.isWatch).toBe(false);
    list.status(500, 'InternalError');
    await backOff();
    const again = await server.next();
    expect(again.query.get('sendInitialEvents')).toBe('true');
    // What speaks for trying the same again is tried again.
    again.status(429, 'TooManyRequests');
    await clock.timerWithin(1600, 1600);
    await clock.advance(1600);
    expect((await server.next()).query.get('sendInitialEvents')).toBe('true');
  });

  it.each(['reset', 'end'] as const)('starts over when a streamed list is cut off (%s)', async (how) => {
    const first = await server.next();
    first.watch().event('ADDED', pod('a', '3'));
    await events(1);
    first[how]();
    await backOff();
    const second = await server.next();
    expect(second.query.get('sendInitialEvents')).toBe('true');
    expect(informer.hasSynced).toBe(false);
    second.watch().event('ADDED', pod('b', '4')).bookmark('9', end);
    await informer.synced(stop.signal);
    expect(seen).toEqual(['initial a', 'initial b', 'deleted a']);
  });

  it('goes on trying when lists fail, ever more slowly', async () => {
    let list = await firstList();
    for (const wait of [800, 1600, 3200, 6400, 12_800, 15_000, 15_000]) {
      list.status(500, 'InternalError');
      await clock.timerWithin(wait, wait);
      await clock.advance(wait);
      list = await server.next();
    }
    list.json(200, podList('10', [listed('a', '5')]));
    expect(await informer.synced(stop.signal)).toBe(true);
  });

  it('waits as long as Retry-After says', async () => {
    (await firstList()).status(429, 'TooManyRequests', 'later', { 'retry-after': '7' });
    await clock.timerWithin(7000, 7000);
    await clock.advance(7000);
    (await server.next()).text(503, 'going away', { 'retry-after': '9' });
    await clock.timerWithin(9000, 9000);
    await clock.advance(9000);
    (await server.next()).json(200, podList('10', []));
    expect(await informer.synced(stop.signal)).toBe(true);
  });

  it('tries seldom while RBAC refuses', async () => {
    (await firstList()).status(403, 'Forbidden', 'pods is forbidden: User "x" cannot list resource "pods"');
    await clock.timerWithin(30_000, 30_000);
    expect(
      factory
        .healthChecks()
        .map((one) => one.check() ?? '')
        .join(),
    ).toContain('not synced yet: pods');
  });

  it('lists in one piece after the token of a page expired', async () => {
    (await firstList()).json(200, podList('10', [listed('a', '1'), listed('b', '2')], 'next'));
    (await server.next()).status(410, 'Expired', 'the provided continue parameter is too old');
    await backOff();
    const whole = await server.next();
    expect(whole.query.get('limit')).toBe('0');
    expect(whole.query.get('continue')).toBeNull();
    whole.json(200, podList('12', [listed('a', '1'), listed('c', '11')]));
    await informer.synced(stop.signal);
    expect(seen).toEqual(['initial a', 'initial b', 'initial c', 'deleted b']);
  });

  it('ends a list whose page is always the same, and begins another one', async () => {
    (await firstList()).json(200, podList('10', [listed('a', '1')], 'again'));
    (await server.next()).json(200, podList('10', [listed('a', '1')], 'again'));
    await backOff();
    const second = await server.next();
    expect(second.query.get('continue')).toBeNull();
    second.json(200, podList('11', [listed('a', '1')]));
    expect(await informer.synced(stop.signal)).toBe(true);
  });

  it('drops objects that no schema allows and keeps the others', async () => {
    const strange = [
      null,
      7,
      'x',
      [],
      {},
      { metadata: {} },
      { metadata: { name: 'x' }, spec: [], status: 1 },
    ];
    (await firstList()).json(200, {
      metadata: { resourceVersion: '10' },
      items: [...strange, listed('a', '1')],
    });
    expect(await informer.synced(stop.signal)).toBe(true);
    const watch = (await server.next()).watch();
    watch
      .event('ADDED', null)
      .event('SOMETHING', pod('x', '12'))
      .event('MODIFIED', { metadata: { name: 'a' } });
    watch.event('ADDED', pod('b', '13'));
    expect(await events(2)).toEqual(['initial a', 'added b']);
    expect(await metrics.scrape()).toContain(
      'servicenet_reflector_dropped_objects_total{resource="pods"} 10',
    );
  });

  it('survives an answer that is no list', async () => {
    (await firstList()).text(200, '<html>');
    await backOff();
    (await server.next()).json(200, { kind: 'PodList' });
    await clock.timerWithin(1600, 1600);
    await clock.advance(1600);
    (await server.next()).json(200, podList('10', []));
    expect(await informer.synced(stop.signal)).toBe(true);
  });
});

describe('watching', () => {
  it('resumes after a reset in the middle of an event, without a gap or a repeat', async () => {
    const watch = await watching();
    const cut = JSON.stringify({ type: 'ADDED', object: pod('c', '12') });
    watch.event('ADDED', pod('b', '11')).raw(cut.slice(0, 30));
    await events(2);
    watch.reset();
    await backOff();
    const again = await server.next();
    expect(again.query.get('resourceVersion')).toBe('11');
    again.watch().event('ADDED', pod('c', '12')).event('DELETED', pod('a', '13'));
    expect(await events(4)).toEqual(['initial a', 'added b', 'added c', 'deleted a']);
  });

  it('puts together events that arrive byte by byte', async () => {
    const watch = await watching();
    const text = `${JSON.stringify({ type: 'ADDED', object: pod('ä', '11') })}\n`;
    const bytes = Buffer.from(text);
    const middle = bytes.indexOf(0xc3) + 1;
    watch.rawBytes(bytes.subarray(0, middle));
    await clock.advance(0);
    watch.rawBytes(bytes.subarray(middle));
    expect(await events(2)).toEqual(['initial a', 'added ä']);
  });

  it('resumes from a bookmark', async () => {
    const watch = await watching();
    watch.bookmark('20').event('ADDED', pod('b', '21')).bookmark('30');
    await events(2);
    await clock.advance(2000);
    watch.end();
    expect((await server.next()).query.get('resourceVersion')).toBe('30');
  });

  it.each([
    ['an answer', (watch: Exchange) => watch.status(410, 'Expired', 'too old resource version: 10 (900)')],
    ['an ERROR event', (watch: Exchange) => watch.watch().event('ERROR', failure(410, 'Expired')).end()],
    [
      'a revision from the future',
      (watch: Exchange) => {
        const details = {
          causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
        };
        watch.json(504, { ...failure(504, 'Timeout'), details });
      },
    ],
    ['an old spelling', (watch: Exchange) => watch.watch().event('ERROR', failure(410, 'Gone')).end()],
  ])('lists again when its revision is gone: %s', async (_, expire) => {
    (await firstList()).json(200, podList('10', [listed('a', '5'), listed('b', '6')]));
    expire(await server.next());
    await backOff();
    const list = await server.next();
    expect(list.isWatch).toBe(false);
    list.json(200, podList('900', [listed('a', '5'), listed('c', '800')]));
    const watch = await server.next();
    expect(watch.query.get('resourceVersion')).toBe('900');
    expect(seen).toEqual(['initial a', 'initial b', 'added c', 'deleted b']);
  });

  it('lists again when a bookmark shows that the server began anew', async () => {
    const watch = await watching();
    // Restored from a backup, or without what it had: it has nothing to tell of until its revisions have caught up.
    watch.bookmark('7');
    await watch.closed();
    await backOff();
    const list = await server.next();
    expect(list.isWatch).toBe(false);
    list.json(200, podList('8', [listed('b', '6')]));
    expect((await server.next()).query.get('resourceVersion')).toBe('8');
    expect(seen).toEqual(['initial a', 'added b', 'deleted a']);
  });

  it('tries the same revision again after an ERROR event of another kind', async () => {
    const watch = await watching();
    watch.event('ERROR', failure(500, 'InternalError', 'etcd is away'));
    await backOff();
    expect((await server.next()).query.get('resourceVersion')).toBe('10');
  });

  it.each([['not JSON'], ['7'], ['{"object":{}}']])(
    'tries again after a line that is no event: %s',
    async (line) => {
      (await watching()).raw(`${line}\n`);
      await backOff();
      expect((await server.next()).query.get('resourceVersion')).toBe('10');
    },
  );

  it('gives up a silent connection and resumes at once', async () => {
    const watch = await watching();
    await clock.timerWithin(150_000, 150_000);
    await clock.advance(100_000);
    watch.bookmark('15');
    while ((await ageOfCache()) > 0) await clock.advance(0);
    await clock.advance(149_000);
    expect(server.waiting).toBe(0);
    await clock.advance(1000);
    await watch.closed();
    expect((await server.next()).query.get('resourceVersion')).toBe('15');
  });

  it('does not spin when watches end at once', async () => {
    (await watching()).end();
    await clock.timerWithin(800, 800);
    expect(server.waiting).toBe(0);
    await clock.advance(800);
    (await server.next()).watch().end();
    await clock.timerWithin(1600, 1600);
  });

  it('ignores an event that it knows already', async () => {
    const watch = await watching();
    watch.event('MODIFIED', pod('a', '5')).event('MODIFIED', pod('a', '11'));
    expect(await events(2)).toEqual(['initial a', 'updated a@11']);
  });
});

describe('stopping', () => {
  it('ends during a list', async () => {
    const list = await firstList();
    stop.abort();
    await list.closed();
    await factory.finished();
    expect(server.waiting).toBe(0);
  });

  it('ends during a watch', async () => {
    const watch = await watching();
    stop.abort();
    await watch.closed();
    await factory.finished();
    expect(await informer.synced(stop.signal)).toBe(true);
  });

  it('ends during a back-off', async () => {
    (await firstList()).status(500, 'InternalError');
    await clock.timerWithin(800, 800);
    stop.abort();
    await factory.finished();
    expect(await informer.synced(stop.signal)).toBe(false);
  });
});

async function ageOfCache(): Promise<number> {
  await metrics.scrape();
  const age = await metrics.cacheAge.get();
  return age.values[0]?.value ?? 0;
}
