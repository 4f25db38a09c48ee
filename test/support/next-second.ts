import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until another second of the clock has begun: `creationTimestamp` has whole seconds. */
export async function nextSecond(): Promise<void> {
  const second = Math.floor(Date.now() / 1000);
  while (Math.floor(Date.now() / 1000) === second) await sleep(1000 - (Date.now() % 1000));
}
