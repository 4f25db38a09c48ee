import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { backoffDelay } from '../../../src/client/clock.ts';
import { DelayingQueue } from '../../../src/runtime/work-queue.ts';
import { Heap } from '../../../src/runtime/heap.ts';
import { WorkQueue } from '../../../src/runtime/work-queue.ts';
import { recordQueue } from '../../../src/runtime/work-queue.ts';
import { RateLimitedQueue } from '../../../src/runtime/work-queue.ts';
import { Metrics } from '../../../src/telemetry/metrics.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { runs } from '../../support/runs.ts';

const drain = (queue: WorkQueue): string[] => {
  const keys: string[] = [];
  for (let key = queue.take(); key !== undefined; key = queue.take()) keys.push(key);
  return keys;
};

describe('Heap', () => {
  it('sorts', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), (numbers) => {
        const heap = new Heap<number>((a, b) => a < b);
        for (const number of numbers) heap.push(number);
        const sorted: number[] = [];
        for (let top = heap.pop(); top !== undefined; top = heap.pop()) sorted.push(top);
        expect(sorted).toEqual(numbers.toSorted((a, b) => a - b));
      }),
    );
  });
});

describe('WorkQueue', () => {
  it('hands out the highest priority first, and within one the first come', () => {
    const queue = new WorkQueue({ clock: new FakeClock() });
    queue.add('low', -1);
    queue.add('a');
    queue.add('b');
    queue.add('high', 5);
    queue.add('a');
    expect(drain(queue)).toEqual(['high', 'a', 'b', 'low']);
  });

  it('raises the priority of a key that waits, and never lowers it', () => {
    const queue = new WorkQueue({ clock: new FakeClock() });
    queue.add('a');
    queue.add('b');
    queue.add('b', 7);
    queue.add('b', -7);
    expect(queue.depth).toBe(2);
    expect(drain(queue)).toEqual(['b', 'a']);
  });

  it('runs a key once more when it is added while it runs', () => {
    const queue = new WorkQueue({ clock: new FakeClock() });
    queue.add('a');
    expect(queue.take()).toBe('a');
    queue.add('a');
    queue.add('a');
    expect(queue.take()).toBeUndefined();
    queue.done('a');
    expect(drain(queue)).toEqual(['a']);
    queue.done('a');
    expect(queue.take()).toBeUndefined();
  });

  it('takes nothing in after it closed', () => {
    const queue = new WorkQueue({ clock: new FakeClock() });
    queue.add('a');
    queue.take();
    queue.add('a');
    queue.add('b');
    queue.close();
    queue.add('c');
    queue.done('a');
    expect(queue.take()).toBeUndefined();
    expect([queue.depth, queue.running]).toEqual([0, 0]);
  });

  it('never runs a key twice at once, loses nothing, and keeps the order, whatever happens', () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd');
    const step = fc.oneof(
      fc.record({ do: fc.constant('add' as const), key, priority: fc.integer({ min: -2, max: 2 }) }),
      fc.record({ do: fc.constant('take' as const) }),
      fc.record({ do: fc.constant('done' as const), key }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const queue = new WorkQueue({ clock: new FakeClock() });
        const waiting: { key: string; priority: number }[] = [];
        const running = new Set<string>();
        const again = new Map<string, number>();
        const place = (name: string, priority: number): void => {
          const present = waiting.find((entry) => entry.key === name);
          if (present === undefined) waiting.push({ key: name, priority });
          else present.priority = Math.max(present.priority, priority);
        };
        for (const one of steps) {
          if (one.do === 'add') {
            queue.add(one.key, one.priority);
            if (running.has(one.key)) again.set(one.key, Math.max(again.get(one.key) ?? -9, one.priority));
            else place(one.key, one.priority);
          } else if (one.do === 'take') {
            const best = waiting.toSorted((a, b) => b.priority - a.priority)[0];
            expect(queue.take()).toBe(best?.key);
            if (best === undefined) continue;
            expect(running.has(best.key)).toBe(false);
            waiting.splice(waiting.indexOf(best), 1);
            running.add(best.key);
          } else {
            queue.done(one.key);
            const due = again.get(one.key);
            if (running.delete(one.key) && due !== undefined) place(one.key, due);
            again.delete(one.key);
          }
          expect(queue.depth).toBe(waiting.length);
          expect(queue.running).toBe(running.size);
        }
      }),
      { numRuns: runs(300, 1000) },
    );
  });
});

describe('DelayingQueue', () => {
  it('hands a key out when its time has come, and the earlier of two times counts', async () => {
    const clock = new FakeClock();
    const queue = new DelayingQueue({ clock });
    queue.addAfter('a', 100);
    queue.addAfter('b', 50);
    queue.addAfter('a', 20);
    queue.addAfter('b', 200);
    await clock.advance(19);
    expect(drain(queue)).toEqual([]);
    await clock.advance(1);
    expect(drain(queue)).toEqual(['a']);
    await clock.advance(30);
    expect(drain(queue)).toEqual(['b']);
    await clock.advance(1000);
    expect(drain(queue)).toEqual([]);
  });

  it.each([[0], [-5], [Number.NaN]])('adds at once for a delay of %d', (delay) => {
    const queue = new DelayingQueue({ clock: new FakeClock() });
    queue.addAfter('a', delay);
    expect(drain(queue)).toEqual(['a']);
  });

  it('keeps nothing of a time that changes nothing', () => {
    const push = vi.spyOn(Heap.prototype, 'push');
    const queue = new DelayingQueue({ clock: new FakeClock() });
    queue.addAfter('a', 100, 1);
    for (let i = 0; i < 1000; i++) queue.addAfter('a', 100 + i, i % 2);
    expect(push).toHaveBeenCalledOnce();
    push.mockRestore();
  });

  it('hands every key out once, at its earliest time', async () => {
    const add = fc.record({
      key: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      delay: fc.integer({ min: 1, max: 50 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(add, { maxLength: 30 }), async (adds) => {
        const clock = new FakeClock();
        const queue = new DelayingQueue({ clock });
        const due = new Map<string, number>();
        for (const { key, delay } of adds) {
          queue.addAfter(key, delay);
          due.set(key, Math.min(due.get(key) ?? delay, delay));
        }
        for (let now = 1; now <= 50; now++) {
          await clock.advance(1);
          const expected = [...due].filter(([, at]) => at === now).map(([key]) => key);
          expect(drain(queue).sort()).toEqual(expected.sort());
        }
      }),
      { numRuns: 20 },
    );
  });

  it('forgets what is not due when it closes', async () => {
    const clock = new FakeClock();
    const queue = new DelayingQueue({ clock });
    queue.addAfter('a', 10);
    queue.close();
    queue.addAfter('b', 10);
    expect(clock.timers).toEqual([]);
    await clock.advance(100);
    expect(drain(queue)).toEqual([]);
  });
});

describe('RateLimitedQueue', () => {
  const limits = { base: 5, max: 100 };
  it('waits longer each time, up to a limit, until the key is forgotten', () => {
    const queue = new RateLimitedQueue({ clock: new FakeClock(), limits, random: () => 0 });
    const delays = Array.from({ length: 7 }, () => queue.addRateLimited('a'));
    expect(delays).toEqual([5, 10, 20, 40, 80, 100, 100]);
    expect(queue.retries('a')).toBe(7);
    expect(queue.addRateLimited('b')).toBe(5);
    queue.forget('a');
    expect(queue.addRateLimited('a')).toBe(5);
    expect(queue.addRateLimited('a', 0, 5000)).toBe(5000);
  });

  it('keeps back-offs between the plain step and a quarter more', () => {
    fc.assert(
      fc.property(
        fc.nat(2000),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        fc.record({ base: fc.nat(1000), max: fc.nat(1_000_000) }),
        (failures, random, { base, max }) => {
          const delay = backoffDelay(failures, { base, max }, () => random);
          const plain = base === 0 ? 0 : Math.min(base * 2 ** failures, max);
          expect(delay).toBeGreaterThanOrEqual(plain);
          expect(delay).toBeLessThanOrEqual(plain * 1.25);
        },
      ),
    );
  });
});

describe('queue metrics', () => {
  it('are named as client-go names them', async () => {
    const clock = new FakeClock();
    const metrics = new Metrics();
    const queue = new RateLimitedQueue({
      clock,
      random: () => 0,
      limits: { base: 5, max: 100 },
      recorder: recordQueue(metrics, 'service'),
    });
    queue.add('a');
    queue.add('a');
    queue.add('b');
    await clock.advance(2000);
    queue.take();
    await clock.advance(500);
    queue.addRateLimited('c');
    const text = await metrics.scrape();
    for (const line of [
      'workqueue_depth{name="service"} 1',
      'workqueue_adds_total{name="service"} 2',
      'workqueue_retries_total{name="service"} 1',
      'workqueue_queue_duration_seconds_sum{name="service"} 2',
      'workqueue_unfinished_work_seconds{name="service"} 0.5',
      'workqueue_longest_running_processor_seconds{name="service"} 0.5',
    ]) {
      expect(text).toContain(line);
    }
    queue.done('a');
    expect(await metrics.scrape()).toContain('workqueue_work_duration_seconds_sum{name="service"} 0.5');
  });
});
