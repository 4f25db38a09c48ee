import { setImmediate } from 'node:timers/promises';

/** Resolves when the condition holds, looking again after every turn of the event loop. The test's timeout bounds it. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await setImmediate();
}
