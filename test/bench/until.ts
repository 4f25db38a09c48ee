import { setTimeout as delay } from 'node:timers/promises';

/**
 * Waits until something holds.
 *
 * @param isDone asked every `pauseMs` milliseconds; what it throws ends the wait.
 * @throws {Error} where it does not hold after `deadlineMs` milliseconds.
 */
export async function until(
  what: string,
  isDone: () => Promise<boolean>,
  { deadlineMs = 60_000, pauseMs = 100 } = {},
): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (!(await isDone())) {
    if (performance.now() > end) throw new Error(`${what}: not in ${deadlineMs} ms`);
    await delay(pauseMs);
  }
}
