import { AggregatorRegistry, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { collectProcessMetrics } from './process-metrics.ts';
import { version } from './version.ts';

/** Buckets in seconds, from 0.1 ms to 15 minutes: the range of client-go's `workqueue`, with tenfold steps halved. */
const queueBuckets = [0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 1000];
/** Buckets in seconds, as client-go's for requests. */
const requestBuckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

/** The values of a process at one time, as another process of ours gets them. */
export type MetricsSnapshot = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/**
 * The metrics of processes that share their work: counters and histograms are summed, gauges as each says
 * (`aggregator`).
 *
 * @param snapshots first that of the process which stands for all, where only one value has a meaning.
 */
export function mergedMetrics(snapshots: readonly MetricsSnapshot[]): Registry {
  // prom-client leaves out when a process began: all began with the first one.
  const all = snapshots.map((one) =>
    one.map((metric) =>
      metric.name === 'process_start_time_seconds' ? { ...metric, aggregator: 'first' } : metric,
    ),
  );
  return AggregatorRegistry.aggregate(all);
}

/** What stays true of a process that has ended: a sum that fell would look like a restart of all. */
export function countsOf(snapshot: MetricsSnapshot): MetricsSnapshot {
  const counted: readonly string[] = ['counter', 'histogram'];
  return snapshot.filter(({ type }) => counted.includes(String(type)));
}

/**
 * The metrics of a process: one registry, and the families that several rooms write to. Names and labels are
 * client-go's and controller-runtime's where those have the same metric, so that dashboards keep working.
 * A room with metrics of its own makes them on {@link registry}.
 */
export class Metrics {
  readonly registry: Registry = new Registry();
  readonly requests: Counter<'code' | 'method' | 'host'>;
  readonly requestSeconds: Histogram<'verb' | 'host'>;
  readonly queueDepth: Gauge<'name'>;
  readonly queueAdds: Counter<'name'>;
  readonly queueRetries: Counter<'name'>;
  readonly queueSeconds: Histogram<'name'>;
  readonly workSeconds: Histogram<'name'>;
  readonly unfinishedSeconds: Gauge<'name'>;
  readonly longestRunning: Gauge<'name'>;
  readonly reconciles: Counter<'controller' | 'result'>;
  readonly reconcileSeconds: Histogram<'controller'>;
  readonly leader: Gauge<'name'>;
  readonly cacheObjects: Gauge<'resource'>;
  readonly cacheAge: Gauge<'resource'>;
  readonly lists: Counter<'resource'>;
  readonly watches: Counter<'resource'>;
  readonly watchFailures: Counter<'resource' | 'reason'>;
  readonly dropped: Counter<'resource'>;
  readonly events: Counter<'result'>;

  readonly #refreshers = new Set<() => void>();

  constructor() {
    const registers = [this.registry];
    this.requests = new Counter({
      name: 'rest_client_requests_total',
      help: 'Requests to the API server, by status code; "<error>" if there was no response.',
      labelNames: ['code', 'method', 'host'],
      registers,
    });
    this.requestSeconds = new Histogram({
      name: 'rest_client_request_duration_seconds',
      help: 'Time from sending a request to the end of its response.',
      labelNames: ['verb', 'host'],
      buckets: requestBuckets,
      registers,
    });
    const queue = { labelNames: ['name'] as const, registers };
    this.queueDepth = new Gauge({
      name: 'workqueue_depth',
      help: 'Keys that are waiting for a worker.',
      ...queue,
    });
    this.queueAdds = new Counter({
      name: 'workqueue_adds_total',
      help: 'Keys added to the queue.',
      ...queue,
    });
    this.queueRetries = new Counter({
      name: 'workqueue_retries_total',
      help: 'Keys added again after an error.',
      ...queue,
    });
    this.queueSeconds = new Histogram({
      name: 'workqueue_queue_duration_seconds',
      help: 'Time that a key waits for a worker.',
      buckets: queueBuckets,
      ...queue,
    });
    this.workSeconds = new Histogram({
      name: 'workqueue_work_duration_seconds',
      help: 'Time that a worker takes to process a key.',
      buckets: queueBuckets,
      ...queue,
    });
    this.unfinishedSeconds = new Gauge({
      name: 'workqueue_unfinished_work_seconds',
      help: 'Total time spent so far on the keys in progress.',
      ...queue,
    });
    this.longestRunning = new Gauge({
      name: 'workqueue_longest_running_processor_seconds',
      help: 'Time spent so far on the longest-running key in progress.',
      aggregator: 'max',
      ...queue,
    });
    this.reconciles = new Counter({
      name: 'servicenet_reconcile_total',
      help: 'Reconciles, by result: success, requeue_after, error, terminal_error.',
      labelNames: ['controller', 'result'],
      registers,
    });
    this.reconcileSeconds = new Histogram({
      name: 'servicenet_reconcile_duration_seconds',
      help: 'Duration of a reconcile, including its writes.',
      labelNames: ['controller'],
      buckets: queueBuckets,
      registers,
    });
    this.leader = new Gauge({
      name: 'leader_election_master_status',
      help: '1 while this process is the leader.',
      labelNames: ['name'],
      registers,
    });
    const cache = { labelNames: ['resource'] as const, registers };
    const ofEach = { aggregator: 'max', ...cache } as const;
    this.cacheObjects = new Gauge({
      name: 'servicenet_cache_objects',
      help: 'Objects in a cache.',
      ...ofEach,
    });
    this.cacheAge = new Gauge({
      name: 'servicenet_cache_age_seconds',
      help: 'Time since a watch last received anything: an event, a bookmark or a list.',
      ...ofEach,
    });
    this.lists = new Counter({ name: 'servicenet_reflector_lists_total', help: 'Full lists.', ...cache });
    this.watches = new Counter({
      name: 'servicenet_reflector_watches_total',
      help: 'Watches opened.',
      ...cache,
    });
    this.dropped = new Counter({
      name: 'servicenet_reflector_dropped_objects_total',
      help: 'Objects that were ignored because no schema allows them.',
      ...cache,
    });
    this.watchFailures = new Counter({
      name: 'servicenet_reflector_failures_total',
      help: 'Lists and watches that failed, by reason.',
      labelNames: ['resource', 'reason'],
      registers,
    });
    this.events = new Counter({
      name: 'servicenet_events_total',
      help: 'Events recorded for users, by result: sent, aggregated, limited, failed.',
      labelNames: ['result'],
      registers,
    });
    new Gauge({
      name: 'servicenet_build_info',
      help: 'Always 1; the label is the running version.',
      labelNames: ['version'],
      aggregator: 'first',
      registers,
    }).set({ version: version() }, 1);
  }

  /** Calls `refresh` before each scrape, to set gauges that are computed from the present. The result removes it. */
  beforeScrape(refresh: () => void): () => void {
    this.#refreshers.add(refresh);
    return () => this.#refreshers.delete(refresh);
  }

  /**
   * The content of `/metrics`.
   *
   * @param others values of other processes that do the same.
   */
  async scrape(others: readonly MetricsSnapshot[] = []): Promise<string> {
    if (others.length > 0) return mergedMetrics([await this.snapshot(), ...others]).metrics();
    this.#refresh();
    return this.registry.metrics();
  }

  /** The values of now, for another process. */
  async snapshot(): Promise<MetricsSnapshot> {
    this.#refresh();
    return this.registry.getMetricsAsJSON();
  }

  /** Adds CPU, memory, garbage collection and event-loop delay of the process. Once per process. */
  collectProcessMetrics(): void {
    collectProcessMetrics(this.registry);
  }

  #refresh(): void {
    for (const refresh of this.#refreshers) refresh();
  }
}
