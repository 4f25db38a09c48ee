import { type Clock, systemClock } from '../../src/client/clock.ts';

/** The real time, so many times as fast: for tests that wait for a server of the real world. */
export function fastClock(factor: number): Clock {
  const start = systemClock.now();
  const begun = systemClock.monotonic();
  const monotonic = (): number => begun + (systemClock.monotonic() - begun) * factor;
  return {
    now: () => start + monotonic() - begun,
    monotonic,
    after: (milliseconds, callback) => systemClock.after(milliseconds / factor, callback),
    sleep: (milliseconds, signal) => systemClock.sleep(milliseconds / factor, signal),
  };
}
