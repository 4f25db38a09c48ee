import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds after which a condition is given up: less than a test has, whose worker it would keep busy for ever. */
const patienceMs = 110_000;

/**
 * Resolves when the condition holds.
 *
 * @param turn comes between two looks; by default a millisecond, which leaves the processor to others.
 * @throws {Error} when it does not hold for nearly as long as a test may take.
 */
export async function until(
  condition: () => boolean,
  turn: () => Promise<unknown> = async () => sleep(1),
): Promise<void> {
  const end = performance.now() + patienceMs;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`still not: ${condition.toString()}`);
    await turn();
  }
}
