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

/** `signal.aborted` behind a function call: TypeScript would keep the narrowed value over an `await`. */
export function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

/** Resolves when the signal aborts. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** Milliseconds. */
export interface BackoffLimits {
  /** The first delay. */
  readonly base: number;
  /** Upper limit of a delay. */
  readonly max: number;
}

/**
 * client-go's reflector (`tools/cache/reflector.go`): 0.8 s doubling to 30 s, reset after two minutes without a
 * failure.
 */
const reflectorLimits: BackoffLimits = { base: 800, max: 30_000 };
const quietMs = 120_000;

/** The pauses between failures of one loop. */
export class LoopBackoff {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #limits: BackoffLimits;
  #failures = 0;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, random: Random, limits: BackoffLimits = reflectorLimits) {
    this.#clock = clock;
    this.#random = random;
    this.#limits = limits;
  }

  /**
   * Milliseconds to wait after one more failure: at random between half of the present step and the whole, at least the
   * base.
   */
  next(): number {
    const { base, max } = this.#limits;
    const now = this.#clock.monotonic();
    if (now - this.#lastAt > quietMs) this.#failures = 0;
    this.#lastAt = now;
    const step = Math.min(2 * base * 2 ** this.#failures, max);
    this.#failures++;
    return Math.max(base, step * (0.5 + 0.5 * this.#random()));
  }
}

/**
 * Jitter: up to this part of a delay is added at random, so that keys that failed together are not retried together.
 */
const jitter = 0.25;

/** The delay after the given number of earlier failures: `base · 2^failures` up to `max`, and jitter on top. */
export function backoffDelay(failures: number, { base, max }: BackoffLimits, random: Random): number {
  // 2^failures overflows to Infinity for large counts, which the minimum handles; 0 · Infinity would not be a number.
  const plain = base === 0 ? 0 : Math.min(base * 2 ** failures, max);
  return plain * (1 + jitter * random());
}

/** Lets one loop sleep until something happens. `wake` also counts before `sleep` is called: no wake-up is lost. */
export class Wakeup {
  readonly #clock: Clock;
  #isAwake = false;
  #end: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends the sleep, or the next one before it begins. */
  wake(): void {
    this.#isAwake = true;
    this.#end?.();
  }

  /** Resolves after so many milliseconds, or on {@link wake}. One call at a time. */
  async sleep(milliseconds: number): Promise<void> {
    if (!this.#isAwake && milliseconds > 0) {
      let timer: Timer | undefined;
      await new Promise<void>((resolve) => {
        this.#end = resolve;
        timer = this.#clock.after(milliseconds, resolve);
      });
      timer?.cancel();
      this.#end = undefined;
    }
    this.#isAwake = false;
  }
}
