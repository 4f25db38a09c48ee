import { describe, expect, test } from 'vitest';
import { defaultLeaseTimes } from '../../../../src/network/announcing/fence.ts';
import { LeaseRenewer } from '../../../../src/network/announcing/agent-lease.ts';

const { renewEveryMs } = defaultLeaseTimes;
const none: ReadonlySet<string> = new Set();

/** A renewer in a cluster that has addresses, whose renewals take 5 ms. */
function active(): LeaseRenewer {
  const renewer = new LeaseRenewer(false, defaultLeaseTimes);
  renewer.setActive(true, 0);
  return renewer;
}

/** Renews whenever it is due, until then; @returns the times. */
function renewals(
  renewer: LeaseRenewer,
  untilMs: number,
  each: (nowMs: number) => void = () => undefined,
): number[] {
  const times: number[] = [];
  for (let nowMs = 0; nowMs < untilMs; nowMs += 5) {
    each(nowMs);
    if (renewer.isWriting) renewer.renewed(`${times.length}`, 2, nowMs);
    if (renewer.dueAtMs > nowMs) continue;
    renewer.renew('report', [], none, 1, nowMs);
    times.push(nowMs);
  }
  return times;
}

describe('a Lease', () => {
  test('is renewed every 0.6 s, and every 10 s while there is no address', () => {
    expect(renewals(active(), 3 * renewEveryMs)).toEqual([0, 600, 1200]);
    const idle = new LeaseRenewer(false, defaultLeaseTimes);
    idle.renewSoon(0);
    expect(renewals(idle, 25_000)).toEqual([0, 10_000, 20_000]);
  });

  test('is written twice a second at most in the long run, and four times at once, however often its report changes', () => {
    const renewer = active();
    const times = renewals(renewer, 20_000, (nowMs) => renewer.renewSoon(nowMs));
    expect(times.filter((time) => time < 50)).toHaveLength(4);
    expect(times.length).toBeLessThanOrEqual(4 + 40);
    expect(times.length).toBeGreaterThan(40);
  });

  test('is not written again for a report that it has, or that is on its way', () => {
    const renewer = active();
    renewer.renew('a', [], none, 1, 0);
    renewer.reportSoon('a', 1);
    renewer.renewed('1', 2, 10);
    renewer.reportSoon('a', 11);
    expect(renewer.dueAtMs).toBe(renewEveryMs);
    renewer.reportSoon('b', 20);
    expect(renewer.dueAtMs).toBe(20);
    renewer.renew('b', [], none, 1, 20);
    // It may be written, or not.
    renewer.failed(30);
    renewer.reportSoon('b', 31);
    expect(renewer.dueAtMs).toBe(31);
  });

  test.each(['written first', 'seen first'])('counts once a renewal is written and seen: %s', (order) => {
    const renewer = active();
    renewer.renew('a', [], none, 1, 100);
    const steps = [(): unknown => renewer.renewed('7', 2, 120), (): unknown => renewer.seen('7', 130)];
    if (order === 'seen first') steps.reverse();
    for (const step of steps) {
      expect(renewer.isCurrent(140)).toBe(false);
      step();
    }
    expect(renewer.isCurrent(140)).toBe(true);
    expect(renewer.fence.isOpen(100 + 2449)).toBe(true);
    expect(renewer.fence.isOpen(100 + 2450)).toBe(false);
  });

  test('is renewed no more by an agent that does not see its own renewals', () => {
    const renewer = active();
    renewer.renew('a', [], none, 1, 0);
    renewer.renewed('1', 2, 10);
    expect([1810, 1811].map((nowMs) => renewer.isBlind(nowMs))).toEqual([false, true]);
    expect(renewer.seen('1', 1900)).toEqual({ isNew: true, wasGap: true });
    expect(renewer.isBlind(1900)).toBe(false);
  });
});
