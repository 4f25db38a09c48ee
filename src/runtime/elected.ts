import { whenAborted } from '../client/abort.ts';
import type { ElectionEnd, LeaderElector } from '../client/leases.ts';
import type { Runnable } from './context.ts';

/**
 * Runs the controllers while this process holds the lease. Their informers run all the time, so that a standby has
 * full caches when it takes over. Resolves `stopped` after the signal aborted and everything ended, or `lost`: then
 * another may lead, and the process should end.
 */
export function runElected(
  elector: LeaderElector,
  runnables: readonly Runnable[],
  signal: AbortSignal,
): Promise<ElectionEnd> {
  return elector.run(signal, (leading) => runTogether(runnables, leading));
}

/**
 * Runs all until the signal aborts. When one ends early, which is a bug, all are stopped, so that no process runs only
 * part of its controllers. Rejects with the first failure, after all have ended.
 */
export async function runTogether(runnables: readonly Runnable[], signal: AbortSignal): Promise<void> {
  const together = new AbortController();
  const forward = (): void => together.abort(signal.reason);
  if (signal.aborted) forward();
  else signal.addEventListener('abort', forward, { once: true });
  const results = await Promise.allSettled([
    whenAborted(together.signal),
    ...runnables.map(async (runnable) => {
      try {
        await runnable.run(together.signal);
      } finally {
        together.abort();
      }
    }),
  ]);
  signal.removeEventListener('abort', forward);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
