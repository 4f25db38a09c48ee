import { setTimeout as sleep } from 'node:timers/promises';
import { resourceVersionTooLarge } from '../../objects/status-errors.ts';
import type { ServerCore } from './server-core.ts';

/** How long a read waits for a resourceVersion that has not been reached (`blockTimeout` of the watch cache). */
const futureTimeout = 3000;
const pollInterval = 20;

/**
 * Waits until the store has reached a revision that a client named.
 * @throws {StatusError} 504 after three seconds.
 */
export async function waitForRevision(
  core: ServerCore,
  revision: number,
  signal: AbortSignal,
): Promise<void> {
  if (core.storage.revision >= revision) return;
  const deadline = core.now() + futureTimeout;
  while (core.now() < deadline && !signal.aborted) {
    await sleep(pollInterval);
    if (core.storage.revision >= revision) return;
  }
  throw resourceVersionTooLarge(revision, core.storage.revision);
}
