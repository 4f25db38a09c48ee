import type { Logger } from 'pino';
import { Clients } from '../client/resource-client.ts';
import { type Clock, type Random, systemClock } from '../client/clock.ts';
import { EventSender } from '../client/events/event-sender.ts';
import { InformerFactory, type InformerFactoryOptions } from '../client/informers/shared-informer.ts';
import type { ElectionEnd } from '../client/leases.ts';
import { PermissionTracker } from '../client/permission-tracker.ts';
import { leases } from '../client/resources.ts';
import { AvailabilityTracker } from '../client/availability-tracker.ts';
import type { Transport } from '../client/transport.ts';
import type { HealthCheck } from '../telemetry/health.ts';
import { Metrics } from '../telemetry/metrics.ts';
import type { ControllerContext, Runnable } from '../runtime/context.ts';
import { type ControllerSpec, runnableOf } from '../runtime/key-loop.ts';
import { budgetEvents } from './workloads/event-budget.ts';
import { Leadership, type LeaderElectionSettings } from '../runtime/leadership.ts';

/** Several parts under one name in Events, such as all of a cluster's machines. */
export interface ControllerGroup {
  readonly name: string;
  /** `source.component` of its Events. */
  readonly eventSource: string;
  start(context: ControllerContext): readonly Runnable[];
}

/** The options of a run. */
export interface RunOptions {
  readonly transport: Transport;
  readonly controllers: readonly (ControllerSpec | ControllerGroup)[];
  readonly log: Logger;
  /** Default: metrics that are not served. */
  readonly metrics?: Metrics;
  /** Default: the real time. */
  readonly clock?: Clock;
  readonly random?: Random;
  /** Work only while holding this lease; default: work at once. */
  readonly leaderElection?: LeaderElectionSettings;
  /**
   * Selectors by which the server leaves objects out of the caches: {@link InformerFactoryOptions.labelSelectors}.
   */
  readonly labelSelectors?: InformerFactoryOptions['labelSelectors'];
  /** {@link InformerFactoryOptions.namespaces}. */
  readonly namespaces?: InformerFactoryOptions['namespaces'];
  /** Services whose endpoints are written; default all. */
  readonly serves?: ControllerContext['serves'];
}

/** Running controllers. */
export interface RunningControllers {
  /** The names of those that run. */
  readonly names: readonly string[];
  /**
   * Resolves when all controllers have ended: `stopped` by {@link stop}, or the lease is `lost`. Then another process
   * may lead, and this one should end. Rejects when a controller ended with a bug.
   */
  readonly ended: Promise<ElectionEnd>;
  /** For `/readyz`: whether the caches are synced and alive, and the leader. */
  healthChecks(): readonly HealthCheck[];
  /** Lets running work finish, releases the lease, then stops everything. */
  stop(): Promise<void>;
}

/** Starts controllers on shared caches. */
export function runControllers(options: RunOptions): RunningControllers {
  const { controllers, log, clock = systemClock, random = Math.random } = options;
  const metrics = options.metrics ?? new Metrics();
  const transport = new PermissionTracker(new AvailabilityTracker(options.transport, log, clock), log, clock);
  const clients = new Clients(transport);
  const { labelSelectors = {}, namespaces = {} } = options;
  const selected = { labelSelectors, namespaces };
  const informers = new InformerFactory({ transport, clock, random, log, metrics, ...selected });
  const senders: EventSender[] = [];
  const working = new AbortController();
  const following = new AbortController();

  const elected = options.leaderElection !== undefined;
  const serves = options.serves ?? (() => true);
  const runnables = controllers.flatMap((each) => {
    const component = each.eventSource;
    const events = new EventSender({ transport, component, clock, random, log, metrics });
    senders.push(events);
    const context = { clients, informers, events, clock, random, log, metrics, elected, serves };
    if ('start' in each) return each.start(context);
    const isBudgeted = each.hasEventBudget === true;
    return [runnableOf(each, isBudgeted ? { ...context, events: budgetEvents(events, clock) } : context)];
  });
  informers.start(following.signal);
  const election = options.leaderElection;
  const leadership = new Leadership(
    election === undefined
      ? undefined
      : { ...election, client: clients.for(leases), clock, random, log, metrics },
  );
  const ended = leadership.run(runnables, working.signal);
  // `ended` rejects for its users; without one it is not an unhandled rejection.
  ended.catch((error: unknown) => log.fatal({ err: error }, 'a controller ended with a bug'));
  return {
    names: controllers.map(({ name }) => name),
    ended,
    healthChecks: () => [...informers.healthChecks(), transport.healthCheck(), leadership.healthCheck()],
    stop: async () => {
      working.abort();
      await Promise.allSettled([ended]);
      following.abort();
      await Promise.all([informers.finished(), ...senders.map((sender) => sender.close())]);
    },
  };
}
