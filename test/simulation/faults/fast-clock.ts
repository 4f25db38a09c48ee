import type { Clock, Timer } from '../../../src/client/clock.ts';

/** A clock that runs so many times faster than the real one: back-offs of seconds take milliseconds. */
export function fastClock(factor: number): Clock {
  const startedAt = Date.now();
  const started = performance.now();
  const elapsed = (): number => (performance.now() - started) * factor;
  const after = (milliseconds: number, callback: () => void): Timer => {
    const timeout = setTimeout(callback, Math.max(milliseconds, 0) / factor);
    return { cancel: () => clearTimeout(timeout) };
  };
  return {
    now: () => startedAt + elapsed(),
    monotonic: elapsed,
    after,
    sleep(milliseconds, signal) {
      if (signal?.aborted === true) return Promise.resolve();
      return new Promise((resolve) => {
        const finish = (): void => {
          timer.cancel();
          signal?.removeEventListener('abort', finish);
          resolve();
        };
        const timer = after(milliseconds, finish);
        signal?.addEventListener('abort', finish, { once: true });
      });
    },
  };
}
