import type { Clock, Random } from './clock.ts';

/** Shortest and longest pause in milliseconds. */
interface LoopLimits {
  readonly base: number;
  readonly max: number;
}

/**
 * client-go's reflector (`tools/cache/reflector.go`): 0.8 s doubling to 30 s, reset after two minutes without a
 * failure.
 */
const reflectorLimits: LoopLimits = { base: 800, max: 30_000 };
const quiet = 120_000;

/** The pauses between failures of one loop. */
export class LoopBackoff {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #limits: LoopLimits;
  #failures = 0;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, random: Random, limits: LoopLimits = reflectorLimits) {
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
