import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTransport } from '../../src/client/connect.ts';
import { LeaderElector, type LeaderElectionOptions, LeaseLost } from '../../src/client/leases.ts';
import { ResourceClient } from '../../src/client/resource-client.ts';
import { leases } from '../../src/client/resources.ts';
import type { Transport } from '../../src/client/transport.ts';
import { isRecord } from '../../src/objects/json.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { type Exchange, ScriptedServer } from '../support/scripted-server.ts';
import { until } from '../support/until.ts';

/** What the server does: answer, do the next write and lose its answer or never answer it, or do and answer nothing. */
type Mood = 'answer' | 'lose' | 'keep' | 'hang';

/** The server's one Lease, with kube-apiserver's rule for resourceVersions. */
class LeaseStore {
  mood: Mood = 'answer';
  spec: Record<string, unknown> | undefined;
  revision = 1;
  writes = 0;

  handle(exchange: Exchange): void {
    if (this.mood === 'hang') return;
    const failed = this.#apply(exchange);
    if (this.mood === 'lose' && exchange.method !== 'GET') {
      this.mood = 'answer';
      exchange.reset();
    } else if (this.mood === 'keep' && exchange.method !== 'GET') {
      this.mood = 'answer';
    } else if (failed !== undefined) exchange.status(...failed);
    else exchange.json(200, this.object());
  }

  /** Another client writes. */
  edit(spec: Record<string, unknown>): void {
    this.spec = spec;
    this.revision++;
  }

  object(): object {
    const metadata = { name: 'l', namespace: 'kube-system', resourceVersion: String(this.revision) };
    return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: this.spec };
  }

  #apply({ method, body }: Exchange): [number, string] | undefined {
    if (method === 'GET') return this.spec === undefined ? [404, 'NotFound'] : undefined;
    const sent: unknown = JSON.parse(body);
    if (!isRecord(sent) || !isRecord(sent['spec']) || !isRecord(sent['metadata'])) return [400, 'BadRequest'];
    if (method === 'POST' && this.spec !== undefined) return [409, 'AlreadyExists'];
    if (method === 'PUT') {
      if (this.spec === undefined) return [404, 'NotFound'];
      if (sent['metadata']['resourceVersion'] !== String(this.revision)) return [409, 'Conflict'];
    }
    this.writes++;
    this.edit(sent['spec']);
    return undefined;
  }
}

let server: ScriptedServer;
let transport: Transport;
let clock: FakeClock;
let store: LeaseStore;
const closing = new AbortController();
let stops: AbortController[];
let runs: Promise<unknown>[];
let underWay = 0;

beforeEach(async () => {
  server = await ScriptedServer.start();
  transport = counting(await createTransport({ kind: 'endpoint', url: server.url }));
  clock = new FakeClock();
  store = new LeaseStore();
  stops = [];
  runs = [];
  void server.serve((exchange) => store.handle(exchange), closing.signal);
});

afterEach(async () => {
  store.mood = 'answer';
  for (const stop of stops) stop.abort();
  await Promise.all(runs);
  await transport.close();
  await server.close();
});

interface Candidate {
  readonly elector: LeaderElector;
  readonly stop: AbortController;
  readonly ended: Promise<string>;
  working: boolean;
  reason: unknown;
}

/** @param winding how long its work goes on after it was stopped. */
function candidate(
  identity: string,
  options: Partial<LeaderElectionOptions> = {},
  winding: () => Promise<void> = () => Promise.resolve(),
): Candidate {
  const elector = new LeaderElector({
    client: new ResourceClient(transport, leases),
    namespace: 'kube-system',
    name: 'l',
    identity,
    clock,
    random: () => 0,
    log: pino({ level: 'silent' }),
    ...options,
  });
  const stop = new AbortController();
  const state = { working: false, reason: undefined as unknown };
  const ended = elector.run(stop.signal, (signal) => {
    state.working = true;
    return new Promise((resolve) => {
      signal.addEventListener(
        'abort',
        () => {
          state.working = false;
          state.reason = signal.reason;
          resolve(winding());
        },
        { once: true },
      );
    });
  });
  stops.push(stop);
  runs.push(ended);
  return Object.assign(state, { elector, stop, ended });
}

/** Lets so many milliseconds pass in small steps; requests take no time, unless the server hangs. */
async function pass(milliseconds: number): Promise<void> {
  await quiet();
  for (let left = milliseconds; left > 0; left -= 500) {
    await clock.advance(Math.min(500, left));
    await quiet();
  }
}

/** Resolves when no request is under way, and the answer to the last one has led to no other. */
async function quiet(): Promise<void> {
  do {
    await until(() => underWay === 0 || store.mood === 'hang');
    await clock.advance(0);
  } while (underWay > 0 && store.mood !== 'hang');
}

/** Counts the requests that are not answered yet. */
function counting(inner: Transport): Transport {
  return {
    server: inner.server,
    stream: (path, options) => inner.stream(path, options),
    close: () => inner.close(),
    async request(method, path, options) {
      underWay++;
      try {
        return await inner.request(method, path, options);
      } finally {
        underWay--;
      }
    },
  };
}

describe('LeaderElector', () => {
  it('takes a free lease, renews it, and gives it back when it is stopped', async () => {
    const a = candidate('a');
    await until(() => a.working);
    expect(store.spec).toMatchObject({
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      leaseTransitions: 0,
      acquireTime: '2026-01-01T00:00:00.000000Z',
    });
    await pass(20_000);
    expect(a.elector.isLeader).toBe(true);
    expect(store.writes).toBeGreaterThan(8);
    expect(store.spec).toMatchObject({ acquireTime: '2026-01-01T00:00:00.000000Z' });
    a.stop.abort();
    expect(await a.ended).toBe('stopped');
    expect(store.spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
    expect(a.elector.isLeader).toBe(false);
  });

  it('leaves the lease to its holder, and follows soon after a release', async () => {
    const a = candidate('a');
    await until(() => a.working);
    const b = candidate('b');
    await pass(60_000);
    expect([a.working, b.working]).toEqual([true, false]);
    expect(b.elector.holder).toBe('a');
    a.stop.abort();
    await a.ended;
    await pass(3000);
    expect(b.working).toBe(true);
    expect(store.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 });
  });

  it('takes over from a dead leader after the lease has not changed for its duration, whatever clocks say', async () => {
    store.edit({
      holderIdentity: 'dead',
      leaseDurationSeconds: 15,
      renewTime: '2001-01-01T00:00:00.000000Z',
    });
    const b = candidate('b');
    await until(() => b.elector.holder === 'dead');
    await pass(10_000);
    clock.jump(3_600_000);
    await pass(4000);
    expect(b.working).toBe(false);
    clock.jump(-7_200_000);
    await pass(3000);
    await until(() => b.working);
    expect(store.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 });
  });

  it('does not take over while the holder still writes, however old its times are', async () => {
    store.edit({
      holderIdentity: 'slow',
      leaseDurationSeconds: 15,
      renewTime: '2001-01-01T00:00:00.000000Z',
    });
    const b = candidate('b');
    for (let i = 0; i < 10; i++) {
      await pass(10_000);
      store.edit({
        holderIdentity: 'slow',
        leaseDurationSeconds: 15,
        renewTime: `2001-01-01T00:00:0${i}.000001Z`,
      });
    }
    expect(b.working).toBe(false);
  });

  it('goes on leading when the answer to a renewal is lost', async () => {
    const a = candidate('a');
    await until(() => a.working);
    store.mood = 'lose';
    await pass(12_000);
    expect(a.working).toBe(true);
    expect(a.elector.isLeader).toBe(true);
    expect(store.spec).toMatchObject({ holderIdentity: 'a', leaseTransitions: 0 });
  });

  it('leads after the answer to its create was lost', async () => {
    store.mood = 'lose';
    const a = candidate('a');
    await pass(1500);
    expect(store.spec).toMatchObject({ holderIdentity: 'a' });
    expect(a.working).toBe(false);
    await pass(1000);
    expect(a.working).toBe(true);
    expect(store.spec).toMatchObject({ holderIdentity: 'a', leaseTransitions: 0 });
  });

  it('gives the lease back when it is stopped after the answer to its create was lost', async () => {
    store.mood = 'lose';
    const one = candidate('one');
    await pass(500);
    expect([store.spec?.['holderIdentity'], one.working]).toEqual(['one', false]);
    one.stop.abort();
    expect(await one.ended).toBe('stopped');
    expect(store.spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
  });

  it('gives the lease back when it is stopped after the answer to a renewal was lost', async () => {
    const a = candidate('a');
    await until(() => a.working);
    store.mood = 'lose';
    await pass(2500);
    a.stop.abort();
    expect(await a.ended).toBe('stopped');
    expect(store.spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
  });

  /** A leader whose renewal was written, and that has no answer yet. */
  async function renewing(): Promise<ReturnType<typeof candidate>> {
    const a = candidate('a');
    await until(() => a.working);
    await quiet();
    const { writes } = store;
    store.mood = 'keep';
    await clock.advance(2000);
    await until(() => store.writes > writes);
    return a;
  }

  it('gives the lease back when it is stopped while a renewal that is done waits for its answer', async () => {
    const a = await renewing();
    a.stop.abort();
    expect(await a.ended).toBe('stopped');
    expect(store.spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
  });

  it('gives back a lease that it took in the moment in which it was stopped', async () => {
    store.mood = 'keep';
    const a = candidate('a');
    await until(() => store.writes === 1);
    expect(store.spec).toMatchObject({ holderIdentity: 'a' });
    a.stop.abort();
    expect(await a.ended).toBe('stopped');
    expect(store.spec).toMatchObject({ holderIdentity: '' });
  });

  it('keeps the lease until the work has ended', async () => {
    const work = Promise.withResolvers<undefined>();
    const a = candidate('a', {}, () => work.promise.then(() => undefined));
    await until(() => a.working);
    a.stop.abort();
    await pass(30_000);
    expect(store.spec).toMatchObject({ holderIdentity: 'a', leaseDurationSeconds: 15 });
    expect(a.elector.isLeader).toBe(true);
    work.resolve(undefined);
    expect(await a.ended).toBe('stopped');
    expect(store.spec).toMatchObject({ holderIdentity: '' });
  });

  it('leaves the lease of another alone when it is stopped', async () => {
    const a = await renewing();
    store.edit({ holderIdentity: 'thief', leaseDurationSeconds: 15 });
    a.stop.abort();
    await a.ended;
    expect(store.spec).toMatchObject({ holderIdentity: 'thief' });
  });

  it('stops work when it cannot renew in time', async () => {
    const a = candidate('a');
    await until(() => a.working);
    store.mood = 'hang';
    await pass(9000);
    expect(a.working).toBe(true);
    await pass(2000);
    expect(a.working).toBe(false);
    expect(a.reason).toBeInstanceOf(LeaseLost);
    expect(await a.ended).toBe('lost');
    expect(a.elector.isLeader).toBe(false);
  });

  it('stops work at once when another process holds the lease', async () => {
    const a = candidate('a');
    await until(() => a.working);
    store.edit({ holderIdentity: 'thief', leaseDurationSeconds: 15 });
    await pass(2500);
    expect(await a.ended).toBe('lost');
    expect(store.spec).toMatchObject({ holderIdentity: 'thief' });
  });

  it('survives a Lease of wrong types', async () => {
    store.edit({ holderIdentity: 'x', leaseDurationSeconds: 'long', leaseTransitions: 'many', renewTime: 7 });
    const a = candidate('a');
    await until(() => a.working);
    expect(store.spec).toMatchObject({ holderIdentity: 'a', leaseTransitions: 1 });
  });

  it('has one leader at most, and one soon, while candidates come and go and answers get lost', async () => {
    const all = [candidate('a'), candidate('b'), candidate('c')];
    let seed = 7;
    const random = (): number => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
    for (let round = 0; round < 40; round++) {
      if (random() < 0.3) store.mood = 'lose';
      if (random() < 0.3) clock.jump((random() - 0.5) * 1e8);
      if (random() < 0.2) {
        const leader = all.find(({ working }) => working);
        leader?.stop.abort();
        await leader?.ended;
        if (leader !== undefined) all.splice(all.indexOf(leader), 1, candidate(`r${round}`));
      }
      await pass(1000 + random() * 3000);
      expect(all.filter(({ working }) => working).length).toBeLessThanOrEqual(1);
    }
    await pass(20_000);
    expect(all.filter(({ working }) => working)).toHaveLength(1);
  });

  it.each([
    [{ leaseDurationMs: 10_000, renewDeadlineMs: 10_000 }],
    [{ renewDeadlineMs: 2400, retryPeriodMs: 2000 }],
    [{ retryPeriodMs: 0 }],
  ])('refuses durations that cannot work: %j', (durations) => {
    expect(() => candidate('a', durations)).toThrow(RangeError);
  });
});
