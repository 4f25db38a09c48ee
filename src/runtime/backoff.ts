import type { Random } from '../client/clock.ts';

/** Milliseconds. */
export interface BackoffLimits {
  /** Delay before the first retry. */
  readonly base: number;
  /** Upper limit of a delay. */
  readonly max: number;
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
