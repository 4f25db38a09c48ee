import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { LeaseLost } from '../../../src/client/leases.ts';
import {
  KeyLoop,
  type LoopOptions,
  NotYetError,
  Priority,
  type Reconcile,
  type SyncedSource,
  TerminalError,
} from '../../../src/runtime/key-loop.ts';
import { at, textAt } from '../../../src/objects/json.ts';
import { conflict, forbidden, tooManyRequests } from '../../../src/objects/status.ts';
import { controllerContext } from '../../support/controller-context.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const services = { group: '', resource: 'services' };

interface Harness {
  readonly clock: FakeClock;
  readonly loop: KeyLoop;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
  readonly counted: () => Promise<Record<string, number>>;
}

function start(
  reconcile: Reconcile,
  options: LoopOptions = {},
  sources: readonly SyncedSource[] = [],
): Harness {
  const clock = new FakeClock();
  const context = controllerContext(clock);
  const loop = new KeyLoop(context, 'test', options, (own) => {
    for (const source of sources) own.waitFor(source);
    return reconcile;
  });
  const stop = new AbortController();
  return {
    clock,
    loop,
    stop,
    ended: loop.run(stop.signal),
    async counted() {
      const { values } = await context.metrics.reconciles.get();
      return Object.fromEntries(values.map(({ labels, value }) => [String(labels.result), value]));
    },
  };
}

describe('the queue of a KeyLoop', () => {
  it('waits for its caches, then works by priority', async () => {
    const ran: string[] = [];
    let synced: (value: boolean) => void = () => undefined;
    const source = { synced: () => new Promise<boolean>((resolve) => (synced = resolve)) };
    const { clock, loop, stop, ended } = start(
      (key) => {
        ran.push(key);
        return Promise.resolve(undefined);
      },
      { workers: 1 },
      [source],
    );
    loop.enqueue('resync', { priority: Priority.resync });
    loop.enqueue('a');
    loop.enqueue('a');
    loop.enqueue('b');
    await clock.advance(0);
    expect(ran).toEqual([]);
    synced(true);
    await clock.advance(0);
    expect(ran).toEqual(['a', 'b', 'resync']);
    stop.abort();
    await ended;
  });

  it('runs a key once for a burst, and never inside the call that adds it', async () => {
    let inside = false;
    let runs = 0;
    const { clock, loop, stop, ended } = start(() => {
      expect(inside).toBe(false);
      runs++;
      return Promise.resolve(undefined);
    });
    await clock.advance(0);
    inside = true;
    for (let i = 0; i < 10; i++) {
      loop.enqueue('a');
      await Promise.resolve();
    }
    inside = false;
    await clock.advance(0);
    expect(runs).toBe(1);
    stop.abort();
    await ended;
  });

  it('does nothing when it is stopped before its caches are full', async () => {
    const ran: string[] = [];
    const { loop, stop, ended } = start(
      (key) => {
        ran.push(key);
        return Promise.resolve(undefined);
      },
      {},
      [{ synced: () => Promise.resolve(false) }],
    );
    loop.enqueue('a');
    stop.abort();
    await ended;
    expect(ran).toEqual([]);
  });

  it('runs different keys at once and the same key one after another', async () => {
    const running: string[] = [];
    const finish = new Map<string, () => void>();
    let most = 0;
    const { clock, loop, stop, ended } = start(
      (key) => {
        running.push(key);
        most = Math.max(most, running.length);
        expect(running.filter((other) => other === key)).toHaveLength(1);
        return new Promise((resolve) => {
          finish.set(key, () => {
            running.splice(running.indexOf(key), 1);
            resolve(undefined);
          });
        });
      },
      { workers: 2 },
    );
    for (const key of ['a', 'b', 'c', 'a']) loop.enqueue(key);
    await clock.advance(0);
    loop.enqueue('a');
    expect(running).toEqual(['a', 'b']);
    finish.get('a')?.();
    await clock.advance(0);
    expect(running).toEqual(['b', 'c']);
    finish.get('b')?.();
    await clock.advance(0);
    expect(running).toEqual(['c', 'a']);
    expect(most).toBe(2);
    finish.get('a')?.();
    finish.get('c')?.();
    stop.abort();
    await ended;
  });

  it('comes back after requeueAfterMs, and after errors ever later', async () => {
    const at: number[] = [];
    const results: (() => Promise<{ requeueAfterMs: number } | undefined>)[] = [
      () => Promise.reject(new Error('no')),
      () => Promise.reject(new Error('no')),
      () => Promise.resolve({ requeueAfterMs: 1000 }),
      () => Promise.reject(conflict(services, 'a', 'stale')),
      () => Promise.resolve(undefined),
    ];
    const { clock, loop, stop, ended, counted } = start(() => {
      at.push(clock.monotonic());
      return results.shift()?.() ?? Promise.resolve(undefined);
    });
    loop.enqueue('a');
    await clock.advance(10_000);
    expect(at).toEqual([0, 5, 15, 1015, 1020]);
    expect(await counted()).toEqual({ error: 3, requeue_after: 1, success: 1 });
    stop.abort();
    await ended;
  });

  it.each([
    ['Retry-After', () => tooManyRequests('busy', 7), 7000],
    ['a refusal', () => forbidden(services, 'a', 'no'), 30_000],
  ])('waits for %s', async (_, error, wait) => {
    const at: number[] = [];
    const { clock, loop, stop, ended } = start(() => {
      at.push(clock.monotonic());
      return at.length === 1 ? Promise.reject(error()) : Promise.resolve(undefined);
    });
    loop.enqueue('a');
    await clock.advance(100_000);
    expect(at).toEqual([0, wait]);
    stop.abort();
    await ended;
  });

  it('gives up after a terminal error or too many retries, until the key is added again', async () => {
    const ran: string[] = [];
    const { clock, loop, stop, ended, counted } = start(
      (key) => {
        ran.push(key);
        return Promise.reject(key === 't' ? new TerminalError('never') : new Error('no'));
      },
      { maxRetries: 2 },
    );
    loop.enqueue('t');
    loop.enqueue('a');
    await clock.advance(1_000_000);
    expect(ran).toEqual(['t', 'a', 'a', 'a']);
    loop.enqueue('a');
    await clock.advance(0);
    expect(ran).toHaveLength(5);
    expect(await counted()).toEqual({ terminal_error: 1, error: 4 });
    stop.abort();
    await ended;
  });

  it('warns of what is not there yet only when it does not come', async () => {
    const lines: unknown[] = [];
    const clock = new FakeClock();
    const log = pino({ level: 'debug' }, { write: (line: string) => lines.push(JSON.parse(line)) });
    const context = { ...controllerContext(clock), log };
    const loop = new KeyLoop(
      context,
      'test',
      { maxRetries: 11 },
      () => () => Promise.reject(new NotYetError('not served')),
    );
    const stop = new AbortController();
    const ended = loop.run(stop.signal);
    loop.enqueue('a');
    await clock.advance(1_000_000);
    stop.abort();
    await ended;
    const levels = lines
      .filter((line) => textAt(line, 'msg').startsWith('reconcile failed'))
      .map((line) => at(line, 'level'));
    const [debug, warn, error] = [20, 40, 50];
    expect(levels).toEqual([...Array<number>(10).fill(debug), warn, error]);
  });

  it('lets running keys finish, aborts them after a while, and leaves them behind at last', async () => {
    const signals: AbortSignal[] = [];
    const { clock, loop, stop, ended } = start(
      (_, signal) => {
        signals.push(signal);
        return new Promise(() => undefined);
      },
      { drainTimeoutMs: 1000 },
    );
    loop.enqueue('a');
    await clock.advance(0);
    loop.enqueue('b', { afterMs: 10 });
    stop.abort();
    await clock.advance(999);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
    await clock.advance(1);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    await clock.advance(5000);
    await ended;
    expect(signals).toHaveLength(1);
  });

  it('aborts running keys at once when the lease is lost', async () => {
    const { clock, loop, stop, ended } = start(
      (_, signal) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true })),
    );
    loop.enqueue('a');
    await clock.advance(0);
    stop.abort(new LeaseLost());
    await ended;
    expect(clock.monotonic()).toBe(0);
  });

  it('works off 20,000 keys that fail, requeue and succeed, each as often as it should', async () => {
    const runs = new Map<string, number>();
    const { clock, loop, stop, ended } = start(
      (key) => {
        const count = (runs.get(key) ?? 0) + 1;
        runs.set(key, count);
        if (count === 1 && Number(key) % 3 === 0) return Promise.reject(new Error('once'));
        return Promise.resolve(count === 1 && Number(key) % 3 === 1 ? { requeueAfterMs: 5 } : undefined);
      },
      { workers: 50 },
    );
    for (let i = 0; i < 20_000; i++) loop.enqueue(String(i));
    for (let i = 0; i < 1000; i++) await clock.advance(10);
    stop.abort();
    await ended;
    expect(runs.size).toBe(20_000);
    for (const [key, count] of runs) expect(count).toBe(Number(key) % 3 === 2 ? 1 : 2);
  });
});
