import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { OpenWatches, type Sender } from '../../../../../src/apiserver/rest/watch/open-watches.ts';

const mebibyte = 2 ** 20;

class Watch implements Sender {
  sent = 0;
  isCut = false;
  isOutdated = false;
  readonly #watches: OpenWatches;
  readonly #milliseconds: number;

  /** @param milliseconds that sending takes. */
  constructor(watches: OpenWatches, milliseconds = 0) {
    this.#watches = watches;
    this.#milliseconds = milliseconds;
  }
  send(): void {
    this.sent++;
    vi.advanceTimersByTime(this.#milliseconds);
  }
  cut(): void {
    this.isCut = true;
    this.#watches.goesOn(this);
  }
}

let watches: OpenWatches;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  watches = new OpenWatches(pino({ enabled: false }));
});
afterEach(() => vi.useRealTimers());

/** Waits as long as a watch does for its turn, and for one more. */
async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await new Promise((resolve) => setImmediate(resolve));
}

describe('open watches', () => {
  test('send once for all that comes until their turn', async () => {
    const watch = new Watch(watches);
    watches.schedule(watch);
    await turns(1);
    expect(watch.sent).toBe(0);
    await turns(1);
    expect(watch.sent).toBe(1);
  });

  test('leave other work its turn', async () => {
    const all = Array.from({ length: 10 }, () => new Watch(watches, 8));
    for (const watch of all) watches.schedule(watch);
    await turns(2);
    expect(all.filter(({ sent }) => sent > 0)).toHaveLength(3);
    await turns(3);
    expect(all.map(({ sent }) => sent)).toEqual(all.map(() => 1));
  });

  test('may write less at a time while much is unread', () => {
    const watch = new Watch(watches);
    expect(watches.maxPieceBytes).toBe(mebibyte);
    watches.waits(watch, 32 * mebibyte);
    expect(watches.maxPieceBytes).toBe(16 * 1024);
    watches.goesOn(watch);
    expect(watches.maxPieceBytes).toBe(mebibyte);
  });

  test('send initial events one after the other, and none while too much is unread', async () => {
    const all = Array.from({ length: 3 }, () => new Watch(watches));
    let sent = 0;
    for (const watch of all) {
      void watches.turn().then(() => {
        sent++;
        watches.waits(watch, 40 * mebibyte);
      });
    }
    await turns(6);
    expect(sent).toBe(2);
    for (const watch of all) watches.goesOn(watch);
    await turns(6);
    expect(sent).toBe(3);
  });

  test('are ended when all together have more than 64 MiB unread, those that have waited longest first', () => {
    const all = Array.from({ length: 5 }, () => new Watch(watches));
    for (const watch of all) {
      watches.waits(watch, 20 * mebibyte);
      vi.advanceTimersByTime(100);
    }
    vi.advanceTimersByTime(400);
    expect(all.map(({ isCut }) => isCut)).toEqual(all.map(() => false));
    vi.advanceTimersByTime(1200);
    expect(all.map(({ isCut }) => isCut)).toEqual([true, true, false, false, false]);
  });

  test('never have more than 128 MiB unread together, however short they have waited', () => {
    const all = Array.from({ length: 200 }, () => new Watch(watches));
    for (const [i, watch] of all.entries()) {
      watches.waits(watch, 3 * mebibyte);
      expect(all.slice(0, i + 1).filter(({ isCut }) => !isCut).length * 3).toBeLessThanOrEqual(128);
    }
    expect(all.slice(-21).every(({ isCut }) => !isCut)).toBe(true);
  });

  test('are ended when the history has lost what their clients did not read', () => {
    const [lost, other] = [new Watch(watches), new Watch(watches)];
    for (const watch of [lost, other]) watches.waits(watch, 1);
    lost.isOutdated = true;
    vi.advanceTimersByTime(2000);
    expect([lost.isCut, other.isCut]).toEqual([true, false]);
  });

  test('are not taken for slow when their clients have read', () => {
    const watch = new Watch(watches);
    watches.waits(watch, 100 * mebibyte);
    vi.advanceTimersByTime(900);
    watches.goesOn(watch);
    watches.waits(watch, 100 * mebibyte);
    vi.advanceTimersByTime(900);
    expect(watch.isCut).toBe(false);
    expect(vi.getTimerCount()).toBe(1);
    watches.goesOn(watch);
    expect(vi.getTimerCount()).toBe(0);
  });
});
