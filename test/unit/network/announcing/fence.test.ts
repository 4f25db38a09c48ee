import { describe, expect, test } from 'vitest';
import {
  askEveryMs,
  defaultLeaseTimes,
  Fence,
  leaseLastsMs,
  leaseSecondsFor,
  longerWaitMs,
} from '../../../../src/network/announcing/fence.ts';

const none: ReadonlySet<string> = new Set();

/** Kernels end lifetimes up to 280 ms late. */
const endsAfter = [0, 1280, 2280];

describe('the lifetime of addresses', () => {
  test('ends in the kernel before another node may take over, however long the renewal took', () => {
    for (let took = 0; took < 3000; took += 10) {
      const fence = new Fence(true, defaultLeaseTimes);
      fence.renewed(fence.renewing([], none, 1000));
      const seconds = fence.lifetime(1000 + took);
      if (seconds > 0) expect(took + (endsAfter[seconds] ?? 0), `${took} ms`).toBeLessThan(leaseLastsMs);
    }
  });

  test('of many addresses ends before that, too, some of them a second late; others wait longer for them, so that it can be 2 s', () => {
    for (const [leaseSeconds, ends] of [
      [leaseSecondsFor(1, defaultLeaseTimes), leaseLastsMs],
      [
        leaseSecondsFor(1000, defaultLeaseTimes),
        leaseLastsMs + longerWaitMs(leaseSecondsFor(1000, defaultLeaseTimes)),
      ],
    ] as const) {
      for (let took = 0; took < 4000; took += 10) {
        const fence = new Fence(true, defaultLeaseTimes);
        fence.renewed(fence.renewing([], none, 1000), leaseSeconds);
        const seconds = fence.lifetime(1000 + took, 1000);
        if (seconds > 0) expect(took + (endsAfter[seconds] ?? 0) + 1000, `${took} ms`).toBeLessThan(ends);
      }
    }
    const fence = new Fence(true, defaultLeaseTimes);
    fence.renewed(fence.renewing([], none, 0), leaseSecondsFor(1000, defaultLeaseTimes));
    expect(fence.lifetime(50, 1000)).toBe(2);
    expect([leaseSecondsFor(250, defaultLeaseTimes), leaseSecondsFor(251, defaultLeaseTimes)]).toEqual([
      2, 3,
    ]);
  });

  test('is 2 s after a quick renewal, less after a slow one, and none before the first', () => {
    const fence = new Fence(true, defaultLeaseTimes);
    expect(fence.lifetime(0)).toBe(0);
    fence.renewed(fence.renewing([], none, 0));
    expect([50, 500, 1500].map((now) => fence.lifetime(now))).toEqual([2, 1, 0]);
    expect([2000, 2500].map((now) => fence.isOpen(now))).toEqual([true, false]);
  });
});

describe('without the API server', () => {
  /** A fence whose last renewal was sent at 0, and named these agents. */
  const lost = (voters: readonly string[], holds = true): Fence => {
    const fence = new Fence(holds, defaultLeaseTimes);
    fence.renewed(fence.renewing(voters, none, 0));
    return fence;
  };
  /** Asks for 30 s, each agent as it answers; @returns how long the fence was open. */
  const ask = (fence: Fence, answers: (node: string, now: number) => boolean, from = 0): number => {
    for (let now = from; now < 30_000; now += askEveryMs) {
      fence.hold(now);
      if (!fence.isOpen(now)) return now;
      for (const node of fence.toAsk(now)) if (answers(node, now)) fence.consented(node, now, now + 1);
    }
    return Number.POSITIVE_INFINITY;
  };

  test('one agent alone holds, also after a pause', () => {
    const fence = lost([]);
    expect(ask(fence, () => false)).toBe(Number.POSITIVE_INFINITY);
    fence.hold(90_000);
    expect(fence.isOpen(90_000)).toBe(true);
  });

  test('agents hold for as long as all consent', () => {
    const fence = lost(['b', 'c']);
    expect(ask(fence, () => true)).toBe(Number.POSITIVE_INFINITY);
    expect(ask(lost(['b', 'c']), (_, now) => now < 10_000)).toBeLessThanOrEqual(10_000 + leaseLastsMs);
  });

  test.each<[string, Fence, (node: string, now: number) => boolean]>([
    ['one is silent, whether it was heard before or not', lost(['b', 'c']), (node) => node === 'b'],
    ['they are told to withdraw', lost(['b'], false), () => true],
    [
      'a write may have named one more that is silent',
      (() => {
        const fence = lost(['b']);
        fence.renewing(['c'], none, 600);
        return fence;
      })(),
      (node) => node === 'b',
    ],
  ])('they let go where %s', (_, fence, answers) => {
    expect(ask(fence, answers)).toBeLessThan(leaseLastsMs + askEveryMs);
  });

  test('a consent counts from when it was asked for, and none reopens what has ended', () => {
    const fence = lost(['b']);
    fence.consented('b', 1000, 2200);
    expect([1000 + leaseLastsMs - 1, 1000 + leaseLastsMs].map((now) => fence.isOpen(now))).toEqual([
      true,
      false,
    ]);
    fence.consented('b', 3500, 3500);
    expect(fence.isOpen(3500)).toBe(false);
    // A consent to a question of the future is none.
    const other = lost(['b']);
    other.consented('b', 1_000_000, 1500);
    expect(other.isOpen(leaseLastsMs)).toBe(false);
  });
});
