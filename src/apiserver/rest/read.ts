import { setTimeout as sleep } from 'node:timers/promises';
import { resourceVersionTooLarge } from '../../objects/status-errors.ts';
import type { ServedResource } from './served-resource.ts';
import type { ServerCore } from './server-core.ts';

/** Milliseconds that a read waits for a resourceVersion in the future (`blockTimeout` of the watch cache). */
const futureTimeout = 3000;
const pollInterval = 20;

/**
 * Waits until the store has reached a revision that a client named.
 * @throws {StatusError} 504 after three seconds, of what is not cached at once.
 */
export async function waitForRevision(
  core: ServerCore,
  resource: ServedResource,
  revision: bigint,
  signal: AbortSignal,
): Promise<void> {
  if (core.storage.revision >= revision) return;
  if (resource.definition.uncached === true) {
    throw resourceVersionTooLarge(revision, core.storage.revision, 0);
  }
  const deadline = core.now() + futureTimeout;
  while (core.now() < deadline && !signal.aborted) {
    await sleep(pollInterval);
    if (core.storage.revision >= revision) return;
  }
  throw resourceVersionTooLarge(revision, core.storage.revision);
}
