import { Counter, Gauge, Histogram } from 'prom-client';
import type { RuleSource } from '../network/http/rules.ts';
import type { Metrics } from '../telemetry/metrics.ts';

/** Seconds, as ingress-nginx has them. */
const timeBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** One request and what became of it. */
export interface CountedRequest {
  readonly source: RuleSource | undefined;
  readonly status: number;
  readonly seconds: number;
}

/** The metrics of the router. Labels name objects of the cluster, never what clients choose. */
export class RouterMetrics {
  readonly connections: Gauge<'listener'>;
  readonly problems: Counter<'reason'>;
  readonly #requests: Counter<'kind' | 'namespace' | 'name' | 'code'>;
  readonly #seconds: Histogram<'kind' | 'namespace' | 'name'>;
  /** Finding a series by its labels takes longer than counting. */
  readonly #series = new WeakMap<RuleSource, Map<number, (seconds: number) => void>>();
  readonly #without: RuleSource = { kind: 'Ingress', namespace: '', name: '', uid: '', created: '' };

  constructor(metrics: Metrics) {
    const registers = [metrics.registry];
    this.#requests = new Counter({
      name: 'servicenet_router_requests_total',
      help: 'Requests, by the Ingress or Route that decided, and status code.',
      labelNames: ['kind', 'namespace', 'name', 'code'],
      registers,
    });
    this.#seconds = new Histogram({
      name: 'servicenet_router_request_duration_seconds',
      help: 'Time from the head of a request to the end of its answer.',
      labelNames: ['kind', 'namespace', 'name'],
      buckets: timeBuckets,
      registers,
    });
    this.problems = new Counter({
      name: 'servicenet_router_problems_total',
      help: 'Requests and connections that did not reach a backend or were cut, by reason.',
      labelNames: ['reason'],
      registers,
    });
    this.connections = new Gauge({
      name: 'servicenet_router_connections',
      help: 'Open connections of clients, by listener: http, https, gateway.',
      labelNames: ['listener'],
      registers,
    });
  }

  count({ source = this.#without, status, seconds }: CountedRequest): void {
    let byStatus = this.#series.get(source);
    if (byStatus === undefined) {
      byStatus = new Map();
      this.#series.set(source, byStatus);
    }
    let count = byStatus.get(status);
    if (count === undefined) {
      const { namespace, name } = source;
      const kind = name === '' ? '' : source.kind;
      const requests = this.#requests.labels({ kind, namespace, name, code: String(status) });
      const durations = this.#seconds.labels({ kind, namespace, name });
      count = (elapsed) => {
        requests.inc();
        durations.observe(elapsed);
      };
      byStatus.set(status, count);
    }
    count(seconds);
  }
}
