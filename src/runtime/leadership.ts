import { type ElectionEnd, LeaderElector, type LeaderElectionOptions } from '../client/leases.ts';
import type { HealthCheck } from '../telemetry/health.ts';
import type { Runnable } from './context.ts';
import { whenAborted } from '../client/clock.ts';

/** Where and how long to hold the lease; client, clock and log come from the process. */
export type LeaderElectionSettings = Pick<
  LeaderElectionOptions,
  'namespace' | 'name' | 'identity' | 'leaseDurationMs' | 'renewDeadlineMs' | 'retryPeriodMs'
>;

/** Runs the work of a process: at once, or while it holds the lease. */
export class Leadership {
  readonly #elector: LeaderElector | undefined;

  /** @param options absent: no election, the work begins at once. */
  constructor(options: LeaderElectionOptions | undefined) {
    this.#elector = options === undefined ? undefined : new LeaderElector(options);
  }

  /** `stopped` after the signal aborted and all has ended; `lost`: another may lead, so the process should end. */
  async run(runnables: readonly Runnable[], signal: AbortSignal): Promise<ElectionEnd> {
    if (this.#elector !== undefined) return runElected(this.#elector, runnables, signal);
    await runTogether(runnables, signal);
    return 'stopped';
  }

  /**
   * Never fails: a standby is as ready as a leader. The name shows which of the two this process is, and the leader.
   */
  healthCheck(): HealthCheck {
    const elector = this.#elector;
    return {
      get name(): string {
        if (elector === undefined) return 'leader-election (off)';
        if (elector.isLeader) return 'leader-election (leading)';
        return `leader-election (standby for ${elector.holder === '' ? 'no holder' : elector.holder})`;
      },
      check: () => undefined,
    };
  }
}

/**
 * Runs the controllers while this process holds the lease. Their informers run all the time, so that a standby has
 * full caches when it takes over. Resolves `stopped` after the signal aborted and everything ended, or `lost`: then
 * another may lead, and the process should end.
 */
function runElected(
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
