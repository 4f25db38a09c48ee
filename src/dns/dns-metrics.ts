import { Counter, Histogram } from 'prom-client';
import type { Metrics } from '../telemetry/metrics.ts';

/** Buckets of CoreDNS (`plugin.TimeBuckets`), in seconds, and of sizes, in bytes. */
const timeBuckets = Array.from({ length: 16 }, (_, step) => 0.00025 * 2 ** step);
const sizeBuckets = [0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16e3, 32e3, 48e3, 64e3];

/** Types that are counted by name; others are `other`, as in CoreDNS: clients choose types, and may choose many. */
const countedTypes = new Set(
  'A AAAA ANY CNAME DNSKEY DS HTTPS MX NS NSEC NSEC3 PTR RRSIG SOA SRV TXT'.split(' '),
);

/** What questions and their results have alike that are counted together. */
export interface CountedKind {
  readonly protocol: 'udp' | 'tcp';
  readonly family: 1 | 2;
  readonly type: string;
  /** The zone; `.` for names outside. */
  readonly zone: string;
  readonly rcode: string;
  /** Which part of us answered, as CoreDNS names its plugins: `kubernetes`, `forward`, or none. */
  readonly plugin: 'kubernetes' | 'forward' | '';
}

export interface Series {
  /** One question and its result. Sizes are bytes. */
  count(requestSize: number, responseSize: number, seconds: number): void;
  /** Adds what was counted since to the counters: they are looked at far less often than they change. */
  flush(): void;
}

/** The metrics of CoreDNS (plugins prometheus and forward), by its names, so that dashboards keep working. */
export class DnsMetrics {
  readonly dropped: Counter;
  readonly #requests: Counter<'server' | 'zone' | 'proto' | 'family' | 'type'>;
  readonly #responses: Counter<'server' | 'zone' | 'rcode' | 'plugin'>;
  readonly #seconds: Histogram<'server' | 'zone'>;
  readonly #requestBytes: Histogram<'server' | 'zone' | 'proto'>;
  readonly #responseBytes: Histogram<'server' | 'zone' | 'proto'>;
  readonly #server: string;
  /** Finding a series by its labels takes longer than answering: each is found once. */
  readonly #series = new Map<string, Series>();

  /** @param port where the server answers. */
  constructor(metrics: Metrics, port: number) {
    this.#server = `dns://:${port}`;
    const registers = [metrics.registry];
    const collect = (): void => {
      for (const series of this.#series.values()) series.flush();
    };
    this.#requests = new Counter({
      name: 'coredns_dns_requests_total',
      help: 'DNS requests, by zone, protocol, address family and type.',
      labelNames: ['server', 'zone', 'proto', 'family', 'type'],
      registers,
      collect,
    });
    this.#responses = new Counter({
      name: 'coredns_dns_responses_total',
      help: 'DNS responses, by zone, status code and what answered: kubernetes, forward, or neither.',
      labelNames: ['server', 'zone', 'rcode', 'plugin'],
      registers,
      collect,
    });
    this.#seconds = new Histogram({
      name: 'coredns_dns_request_duration_seconds',
      help: 'Time from a DNS request to its response.',
      labelNames: ['server', 'zone'],
      buckets: timeBuckets,
      registers,
    });
    this.#requestBytes = new Histogram({
      name: 'coredns_dns_request_size_bytes',
      help: 'Size of DNS requests.',
      labelNames: ['server', 'zone', 'proto'],
      buckets: sizeBuckets,
      registers,
    });
    this.#responseBytes = new Histogram({
      name: 'coredns_dns_response_size_bytes',
      help: 'Size of DNS responses.',
      labelNames: ['server', 'zone', 'proto'],
      buckets: sizeBuckets,
      registers,
    });
    this.dropped = new Counter({
      name: 'servicenet_dns_dropped_packets_total',
      help: 'Packets that are no DNS queries and were not answered.',
      registers,
    });
  }

  series(kind: CountedKind): Series {
    const { protocol, family, zone, rcode, plugin } = kind;
    const type = countedTypes.has(kind.type) ? kind.type : 'other';
    const key = `${protocol}${family}${type} ${rcode} ${plugin} ${zone}`;
    let series = this.#series.get(key);
    if (series === undefined) {
      series = this.#newSeries(kind, type);
      this.#series.set(key, series);
    }
    return series;
  }

  #newSeries({ protocol, family, zone, rcode, plugin }: CountedKind, type: string): Series {
    const server = this.#server;
    const requests = this.#requests.labels({
      server,
      zone,
      proto: protocol,
      family: String(family),
      type,
    });
    const responses = this.#responses.labels({ server, zone, rcode, plugin });
    const seconds = this.#seconds.labels({ server, zone });
    const requestBytes = this.#requestBytes.labels({ server, zone, proto: protocol });
    const responseBytes = this.#responseBytes.labels({ server, zone, proto: protocol });
    let counted = 0;
    return {
      flush: () => {
        requests.inc(counted);
        responses.inc(counted);
        counted = 0;
      },
      count: (requestSize, responseSize, tookSeconds) => {
        counted++;
        seconds.observe(tookSeconds);
        requestBytes.observe(requestSize);
        responseBytes.observe(responseSize);
      },
    };
  }
}
