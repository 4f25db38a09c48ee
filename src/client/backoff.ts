import type { Clock, Random } from './clock.ts';

/** client-go's reflector (`tools/cache/reflector.go`): 0.8 s doubling to 30 s, forgotten after two quiet minutes. */
const base = 800;
const max = 30_000;
const quiet = 120_000;

/** The pauses between failures of one loop. */
export class LoopBackoff {
  readonly #clock: Clock;
  readonly #random: Random;
  #failures = 0;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Milliseconds to wait after one more failure: between half of the present step and all of it, 0.8 s at least. */
  next(): number {
    const now = this.#clock.monotonic();
    if (now - this.#lastAt > quiet) this.#failures = 0;
    this.#lastAt = now;
    const step = Math.min(2 * base * 2 ** this.#failures, max);
    this.#failures++;
    return Math.max(base, step * (0.5 + 0.5 * this.#random()));
  }
}
