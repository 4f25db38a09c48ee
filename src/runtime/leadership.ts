import { type ElectionEnd, LeaderElector, type LeaderElectionOptions } from '../client/leases.ts';
import type { HealthCheck } from '../telemetry/health.ts';
import { runElected, runTogether } from './elected.ts';
import type { Runnable } from './context.ts';

/** Where and how long to hold the lease; client, clock and log come from the process. */
export type LeaderElectionSettings = Pick<
  LeaderElectionOptions,
  'namespace' | 'name' | 'identity' | 'leaseDuration' | 'renewDeadline' | 'retryPeriod'
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

  /** Never fails: a standby is as ready as a leader. The name says which of the two this process is, and who leads. */
  healthCheck(): HealthCheck {
    const elector = this.#elector;
    return {
      get name(): string {
        if (elector === undefined) return 'leader-election (off)';
        if (elector.isLeader) return 'leader-election (leading)';
        return `leader-election (standby for ${elector.holder === '' ? 'nobody' : elector.holder})`;
      },
      check: () => undefined,
    };
  }
}
