import { describe, expect, test } from 'vitest';
import { Fence, leaseLastsMs } from '../../../../src/network/announcing/fence.ts';

/** Kernels end lifetimes of 2 s after 2.11 s, and those of 1 s after 1.05 s. */
const endsAfter = [0, 1050, 2110];

describe('the lifetime of addresses', () => {
  test('ends in the kernel before another node may take over, however long the renewal took', () => {
    for (let took = 0; took < 3000; took += 10) {
      const fence = new Fence(true);
      fence.renewed(1000);
      const seconds = fence.lifetime(1000 + took);
      if (seconds > 0) expect(took + (endsAfter[seconds] ?? 0), `${took} ms`).toBeLessThan(leaseLastsMs);
    }
  });

  test('is 2 s after a quick renewal, less after a slow one, and none before the first', () => {
    const fence = new Fence(true);
    expect(fence.lifetime(0)).toBe(0);
    fence.renewed(0);
    expect([50, 500, 1500].map((now) => fence.lifetime(now))).toEqual([2, 1, 0]);
    expect([2000, 2300].map((now) => fence.isOpen(now))).toEqual([true, false]);
  });
});

describe('without the API server', () => {
  /** A fence whose last renewal was sent at 0. */
  const lost = (holds = true): Fence => {
    const fence = new Fence(holds);
    fence.renewed(0);
    return fence;
  };

  test('one node alone holds', () => {
    const fence = lost();
    for (let now = 0; now < 30_000; now += 300) {
      fence.hold([], now);
      expect(fence.isOpen(now)).toBe(true);
    }
  });

  test('nodes hold while all that lived say that they have lost it too', () => {
    const fence = lost();
    for (let now = 0; now < 30_000; now += 300) {
      fence.heard('b', now > 800, now);
      fence.hold(['b'], now);
      expect(fence.isOpen(now)).toBe(true);
    }
    fence.heard('b', false, 30_000);
    fence.hold(['b'], 30_000);
    expect(fence.isOpen(30_000 + leaseLastsMs)).toBe(false);
  });

  test.each<[string, boolean, (fence: Fence, now: number) => void]>([
    ['another one still has it', true, (fence, now) => fence.heard('b', false, now)],
    ['another one was never heard', true, () => undefined],
    ['they are told to withdraw', false, (fence, now) => fence.heard('b', true, now)],
  ])('they let go where %s', (_, holds, hear) => {
    const fence = lost(holds);
    for (let now = 0; now < 3000; now += 300) {
      hear(fence, now);
      fence.hold(['b'], now);
    }
    expect(fence.isOpen(3000)).toBe(false);
  });

  test('they hold where another one has gone silent with it: it has died', () => {
    const fence = lost();
    fence.heard('b', false, 0);
    for (let now = 0; now < 3000; now += 300) fence.hold(['b'], now);
    expect(fence.isOpen(3000)).toBe(true);
  });
});
