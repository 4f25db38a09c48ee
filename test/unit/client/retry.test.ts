import { describe, expect, it } from 'vitest';
import { LoopBackoff } from '../../../src/client/backoff.ts';
import { retryOnConflict } from '../../../src/client/retry.ts';
import { conflict, forbidden } from '../../../src/objects/status-errors.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const services = { group: '', resource: 'services' };

describe('retryOnConflict', () => {
  const run = async (
    failures: number,
    error = conflict(services, 'a', 'stale'),
  ): Promise<[number, unknown]> => {
    const clock = new FakeClock();
    let calls = 0;
    const result = retryOnConflict(
      () => (calls++ < failures ? Promise.reject(error) : Promise.resolve('done')),
      { clock, random: () => 0.5 },
    ).catch((caught: unknown) => caught);
    await clock.advance(1000);
    return [calls, await result];
  };

  it('tries again until it works', async () => {
    expect(await run(0)).toEqual([1, 'done']);
    expect(await run(4)).toEqual([5, 'done']);
  });

  it('gives up after five tries, and at once for anything but a conflict', async () => {
    expect(await run(9)).toMatchObject([5, { reason: 'Conflict' }]);
    expect(await run(9, forbidden(services, 'a', 'no'))).toMatchObject([1, { reason: 'Forbidden' }]);
  });
});

describe('LoopBackoff', () => {
  it.each([[0], [0.5], [0.999999]])('stays between 0.8 and 30 seconds and grows: random %d', (random) => {
    const backoff = new LoopBackoff(new FakeClock(), () => random);
    let last = 0;
    for (let i = 0; i < 2000; i++) {
      const delay = backoff.next();
      expect(delay).toBeGreaterThanOrEqual(Math.max(800, last));
      expect(delay).toBeLessThanOrEqual(30_000);
      last = delay;
    }
  });

  it('begins anew after two quiet minutes', async () => {
    const clock = new FakeClock();
    const backoff = new LoopBackoff(clock, () => 0);
    for (let i = 0; i < 10; i++) backoff.next();
    await clock.advance(120_000);
    expect(backoff.next()).toBe(15_000);
    await clock.advance(120_001);
    expect(backoff.next()).toBe(800);
  });
});
