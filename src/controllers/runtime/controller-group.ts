import type { Logger } from 'pino';
import { whenAborted } from '../../client/abort.ts';
import type { Clock, Random } from '../../client/clock.ts';
import { Clients } from '../../client/clients.ts';
import { EventSender } from '../../client/event-sender.ts';
import { InformerFactory } from '../../client/informer-factory.ts';
import { type ElectionEnd, LeaderElector } from '../../client/leases.ts';
import { leases } from '../../client/resources.ts';
import type { Transport } from '../../client/transport.ts';
import type { HealthCheck } from '../../telemetry/health.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { ControllerDefinition, Runnable } from './context.ts';

/** Where and how to elect; times in milliseconds as in `LeaderElectionOptions`. */
export interface ElectionSettings {
  readonly namespace: string;
  readonly name: string;
  readonly identity: string;
  readonly leaseDuration?: number;
  readonly renewDeadline?: number;
  readonly retryPeriod?: number;
}

export interface ControllerGroupOptions {
  readonly transport: Transport;
  readonly controllers: readonly ControllerDefinition[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** `source.component` of Events. */
  readonly component: string;
  /** Absent: this process is the only one. */
  readonly election?: ElectionSettings;
  /** Only this namespace; absent: all. */
  readonly namespace?: string;
}

/**
 * The controllers of a process on one API server: shared caches, one event recorder, one lease. A standby fills its
 * caches while it waits, so that it can begin at once.
 */
export class ControllerGroup {
  readonly #options: ControllerGroupOptions;
  readonly #informers: InformerFactory;
  readonly #events: EventSender;
  readonly #runnables: readonly Runnable[];
  #working = false;

  constructor(options: ControllerGroupOptions) {
    const { transport, clock, random, log, metrics, component, namespace } = options;
    this.#options = options;
    const shared = { transport, clock, random, log, metrics };
    this.#informers = new InformerFactory({ ...shared, ...(namespace === undefined ? {} : { namespace }) });
    this.#events = new EventSender({ ...shared, component });
    const clients = new Clients(transport);
    this.#runnables = options.controllers.flatMap((definition) =>
      definition.start({
        clients,
        informers: this.#informers,
        events: this.#events,
        clock,
        random,
        log: log.child({ controller: definition.name }),
        metrics,
      }),
    );
  }

  /** For `/readyz`: caches full and fresh. A standby is ready too: it is at its work. */
  healthChecks(): readonly HealthCheck[] {
    return this.#informers.healthChecks();
  }

  /** True while the controllers run: always without an election, once started. */
  get leading(): boolean {
    return this.#working;
  }

  /** Runs until the signal aborts (`stopped`) or the lease is lost (`lost`: the process should end). */
  async run(signal: AbortSignal): Promise<ElectionEnd> {
    const { election, clock, random, log, metrics, transport } = this.#options;
    const caches = new AbortController();
    this.#informers.start(caches.signal);
    try {
      if (election === undefined) {
        await this.#work(signal);
        return 'stopped';
      }
      const client = new Clients(transport).for(leases);
      const elector = new LeaderElector({ client, clock, random, log, metrics, ...election });
      return await elector.run(signal, (leading) => this.#work(leading));
    } finally {
      await this.#events.close();
      caches.abort();
      await this.#informers.finished();
    }
  }

  /** One controller that ends early, which only a bug can do, ends them all: half a group is nobody's wish. */
  async #work(signal: AbortSignal): Promise<void> {
    const together = new AbortController();
    const stop = AbortSignal.any([signal, together.signal]);
    this.#working = true;
    try {
      await Promise.all([
        whenAborted(stop),
        ...this.#runnables.map(async (runnable) => {
          try {
            await runnable.run(stop);
          } finally {
            together.abort();
          }
        }),
      ]);
    } finally {
      this.#working = false;
    }
  }
}
