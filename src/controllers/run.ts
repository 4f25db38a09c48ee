import type { Logger } from 'pino';
import { Clients } from '../client/clients.ts';
import { type Clock, type Random, systemClock } from '../client/clock.ts';
import { EventSender } from '../client/event-sender.ts';
import { InformerFactory } from '../client/informer-factory.ts';
import type { Transport } from '../client/transport.ts';
import type { HealthCheck } from '../telemetry/health.ts';
import { Metrics } from '../telemetry/metrics.ts';
import type { CatalogEntry } from './catalog.ts';
import { selectControllers } from './runtime/selection.ts';

/** What controllers run with. */
export interface RunOptions {
  readonly transport: Transport;
  /** The controllers that may be chosen from. */
  readonly catalog: readonly CatalogEntry[];
  /** As kube-controller-manager's `--controllers`: `*`, `name`, `-name`; default all that are on by default. */
  readonly controllers?: readonly string[];
  readonly log: Logger;
  /** Default: metrics that nobody reads. */
  readonly metrics?: Metrics;
  /** Default: the real time. */
  readonly clock?: Clock;
  readonly random?: Random;
}

/** Controllers at work. */
export interface RunningControllers {
  /** The names of those that run. */
  readonly names: readonly string[];
  /** For `/readyz`: whether the caches are filled and alive. */
  healthChecks(): readonly HealthCheck[];
  /** Lets running work finish, then ends everything. */
  stop(): Promise<void>;
}

/**
 * Starts the chosen controllers on shared caches.
 *
 * @throws {Error} for a name that the catalog does not have.
 */
export function runControllers(options: RunOptions): RunningControllers {
  const { transport, catalog, log, clock = systemClock, random = Math.random } = options;
  const metrics = options.metrics ?? new Metrics();
  const names = selectControllers(options.controllers ?? [], catalog);
  const clients = new Clients(transport);
  const informers = new InformerFactory({ transport, clock, random, log, metrics });
  const senders: EventSender[] = [];
  const working = new AbortController();
  const following = new AbortController();

  const runnables = catalog
    .filter(({ name }) => names.includes(name))
    .flatMap((entry) => {
      const events = new EventSender({
        transport,
        component: entry.eventSource,
        clock,
        random,
        log,
        metrics,
      });
      senders.push(events);
      return entry.start({ clients, informers, events, clock, random, log, metrics });
    });
  informers.start(following.signal);
  const running = runnables.map((runnable) => runnable.run(working.signal));
  for (const run of running) {
    run.catch((error: unknown) => log.fatal({ err: error }, 'a controller ended with a bug'));
  }
  return {
    names,
    healthChecks: () => informers.healthChecks(),
    stop: async () => {
      working.abort();
      await Promise.allSettled(running);
      following.abort();
      await Promise.all([informers.finished(), ...senders.map((sender) => sender.close())]);
    },
  };
}
