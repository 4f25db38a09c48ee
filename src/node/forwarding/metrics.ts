import { Counter, Gauge, Histogram } from 'prom-client';
import type { ForwardingPlan } from '../../network/forwarding/forwarding-plan.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { Metrics } from '../../telemetry/metrics.ts';

/** 1 ms to 16 s, doubling. */
const syncBuckets = Array.from({ length: 15 }, (_, i) => 0.001 * 2 ** i);
/** Finer below a second than kube-proxy's, whose buckets begin at 0.25 s; then the same up to five minutes. */
const programmingBuckets = [
  ...[0.01, 0.025, 0.05, 0.1, 0.25, 0.5],
  ...Array.from({ length: 59 }, (_, i) => 1 + i),
  ...Array.from({ length: 12 }, (_, i) => 60 + 5 * i),
  ...Array.from({ length: 7 }, (_, i) => 120 + 30 * i),
];

const byFamily = ['ip_family'] as const;

/**
 * kube-proxy's metrics (`pkg/proxy/metrics/metrics.go`), by its names and labels. A sync is of all families: its times
 * and its failures count for each. One for all agents of a process.
 */
export class ProxyMetrics {
  static readonly #ofProcess = new WeakMap<Metrics, ProxyMetrics>();

  readonly #syncSeconds: Histogram<'ip_family'>;
  readonly #fullSyncSeconds: Histogram<'ip_family'>;
  readonly #partialSyncSeconds: Histogram<'ip_family'>;
  readonly #programmingSeconds: Histogram<'ip_family'>;
  readonly #lastSynced: Gauge<'ip_family'>;
  readonly #lastQueued: Gauge<'ip_family'>;
  readonly #syncFailures: Counter<'ip_family'>;
  readonly #changes: Record<'service' | 'endpoints', { readonly total: Counter; readonly pending: Gauge }>;
  readonly #noLocalEndpoints: Gauge<'ip_family' | 'traffic_policy'>;
  readonly #deletedFlows: Counter<'ip_family'>;
  readonly #flowSeconds: Histogram<'ip_family'>;
  readonly #answers: Record<'healthz' | 'livez', Counter<'code'>>;

  private constructor({ registry }: Metrics) {
    const registers = [registry];
    const family = { labelNames: byFamily, registers };
    const seconds = (name: string, help: string): Histogram<'ip_family'> =>
      new Histogram({ name: `kubeproxy_${name}`, help, buckets: syncBuckets, ...family });
    this.#syncSeconds = seconds('sync_proxy_rules_duration_seconds', 'Duration of a sync.');
    this.#fullSyncSeconds = seconds(
      'sync_full_proxy_rules_duration_seconds',
      'Duration of a sync that compares everything with the kernel.',
    );
    this.#partialSyncSeconds = seconds(
      'sync_partial_proxy_rules_duration_seconds',
      'Duration of a sync of what has changed.',
    );
    this.#programmingSeconds = new Histogram({
      name: 'kubeproxy_network_programming_duration_seconds',
      help: "Time from a Service's or Pod's change, as the EndpointSlice says it, to the end of the sync that follows it.",
      buckets: programmingBuckets,
      ...family,
    });
    this.#lastSynced = new Gauge({
      name: 'kubeproxy_sync_proxy_rules_last_timestamp_seconds',
      help: 'When a sync last succeeded.',
      ...family,
    });
    this.#lastQueued = new Gauge({
      name: 'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds',
      help: 'When a sync was last asked for.',
      ...family,
    });
    this.#syncFailures = new Counter({
      name: 'kubeproxy_sync_proxy_rules_nftables_sync_failures_total',
      help: 'Syncs that failed.',
      ...family,
    });
    const changes = (kind: string, name: string): { total: Counter; pending: Gauge } => ({
      total: new Counter({
        name: `kubeproxy_sync_proxy_rules_${name}_changes_total`,
        help: `Changes of ${kind} that were seen.`,
        registers,
      }),
      pending: new Gauge({
        name: `kubeproxy_sync_proxy_rules_${name}_changes_pending`,
        help: `Changes of ${kind} that no sync has taken up.`,
        registers,
      }),
    });
    this.#changes = {
      service: changes('Services', 'service'),
      endpoints: changes('EndpointSlices', 'endpoint'),
    };
    this.#noLocalEndpoints = new Gauge({
      name: 'kubeproxy_sync_proxy_rules_no_local_endpoints_total',
      help: 'Service ports with a traffic policy Local whose endpoints are all on other nodes.',
      labelNames: ['ip_family', 'traffic_policy'],
      registers,
    });
    this.#deletedFlows = new Counter({
      name: 'kubeproxy_conntrack_reconciler_deleted_entries_total',
      help: 'Stale UDP flows that were deleted.',
      ...family,
    });
    this.#flowSeconds = seconds(
      'conntrack_reconciler_sync_duration_seconds',
      'Duration of looking for stale UDP flows.',
    );
    const answers = (path: string): Counter<'code'> =>
      new Counter({
        name: `kubeproxy_proxy_${path}_total`,
        help: `Answers of /${path}, by status code.`,
        labelNames: ['code'],
        registers,
      });
    this.#answers = { healthz: answers('healthz'), livez: answers('livez') };
  }

  static of(metrics: Metrics): ProxyMetrics {
    const present = ProxyMetrics.#ofProcess.get(metrics) ?? new ProxyMetrics(metrics);
    ProxyMetrics.#ofProcess.set(metrics, present);
    return present;
  }

  /** @param now milliseconds since 1970. */
  changed(kind: 'service' | 'endpoints', families: readonly IPFamily[], now: number): void {
    this.#changes[kind].total.inc();
    this.#changes[kind].pending.inc();
    this.queued(families, now);
  }

  /** @param now milliseconds since 1970. */
  queued(families: readonly IPFamily[], now: number): void {
    for (const ip_family of families) this.#lastQueued.set({ ip_family }, now / 1000);
  }

  /** A sync has taken up all changes. */
  began(): void {
    for (const { pending } of Object.values(this.#changes)) pending.set(0);
  }

  /**
   * A sync has ended well.
   *
   * @param seconds that it took.
   * @param triggered when that began what it wrote, in milliseconds since 1970.
   * @param now milliseconds since 1970.
   */
  synced(
    families: readonly IPFamily[],
    isFull: boolean,
    seconds: number,
    triggered: readonly number[],
    now: number,
  ): void {
    for (const ip_family of families) {
      this.#syncSeconds.observe({ ip_family }, seconds);
      (isFull ? this.#fullSyncSeconds : this.#partialSyncSeconds).observe({ ip_family }, seconds);
      this.#lastSynced.set({ ip_family }, now / 1000);
      for (const time of triggered) this.#programmingSeconds.observe({ ip_family }, (now - time) / 1000);
    }
  }

  failed(families: readonly IPFamily[]): void {
    for (const ip_family of families) this.#syncFailures.inc({ ip_family });
  }

  /** Service ports that refuse what no endpoint of this node would answer. */
  refusing({ services }: ForwardingPlan, families: readonly IPFamily[]): void {
    const count = new Map<string, number>();
    for (const { ports } of services.values()) {
      for (const { family, destinations } of ports) {
        const policies = new Set<string>();
        for (const { kind, actions } of destinations) {
          if (actions.other.action === 'drop') policies.add(kind === 'clusterIP' ? 'internal' : 'external');
        }
        for (const policy of policies)
          count.set(`${family} ${policy}`, (count.get(`${family} ${policy}`) ?? 0) + 1);
      }
    }
    for (const ip_family of families) {
      for (const traffic_policy of ['internal', 'external']) {
        this.#noLocalEndpoints.set(
          { ip_family, traffic_policy },
          count.get(`${ip_family} ${traffic_policy}`) ?? 0,
        );
      }
    }
  }

  deletedFlows(ip_family: IPFamily, count: number, seconds: number): void {
    this.#deletedFlows.inc({ ip_family }, count);
    this.#flowSeconds.observe({ ip_family }, seconds);
  }

  answered(path: 'healthz' | 'livez', status: number): void {
    this.#answers[path].inc({ code: String(status) });
  }
}
