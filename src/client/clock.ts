import { performance } from 'node:perf_hooks';

/** Time as a dependency: tests use `test/support/fake-clock.ts`. */
export interface Clock {
  /** Wall-clock milliseconds since 1970; may jump. Only for values written into objects and logs. */
  now(): number;
  /** Milliseconds that never go back, from an arbitrary start. For deadlines and durations. */
  monotonic(): number;
  /** Calls `callback` once after `milliseconds` (at least 0). The timer does not keep the process alive. */
  after(milliseconds: number, callback: () => void): Timer;
  /** Resolves after `milliseconds`, or at once when `signal` aborts: check the signal afterwards. Never rejects. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

/** A pending call of {@link Clock.after}. */
export interface Timer {
  cancel(): void;
}

/** A source of numbers in [0, 1). */
export type Random = () => number;

/** setTimeout's limit: longer delays would fire at once. */
const maxTimeoutMs = 2 ** 31 - 1;

/** The real time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(milliseconds, callback) {
    const timeout = setTimeout(callback, Math.min(Math.max(milliseconds, 0), maxTimeoutMs));
    timeout.unref();
    return { cancel: () => clearTimeout(timeout) };
  },
  sleep(milliseconds, signal) {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      // Unlike the timers of `after`, this one is not unreferenced: the process must not exit while a caller awaits it.
      const timeout = setTimeout(finish, Math.min(Math.max(milliseconds, 0), maxTimeoutMs));
      function finish(): void {
        clearTimeout(timeout);
        signal?.removeEventListener('abort', finish);
        resolve();
      }
      signal?.addEventListener('abort', finish, { once: true });
    });
  },
};
