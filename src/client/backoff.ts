import type { Clock, Random } from './clock.ts';

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
const quiet = 120_000;

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
    if (now - this.#lastAt > quiet) this.#failures = 0;
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
