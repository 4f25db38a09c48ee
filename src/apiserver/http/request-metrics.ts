import type { Registry } from 'prom-client';
import type { RequestInfo } from './exchange.ts';
import type { RequestObserver } from './server.ts';

/** Objects of one resource, for `apiserver_storage_objects`. */
export interface ObjectCount {
  /** `services`, `endpointslices.discovery.k8s.io`. */
  readonly resource: string;
  readonly count: number;
}

interface Series {
  readonly labels: Readonly<Record<Label, string>>;
  count: number;
  seconds: number;
}

/** What of a request becomes labels. */
type Named = Pick<RequestInfo, 'verb' | 'group' | 'resource' | 'subresource'>;

type Label = (typeof labelNames)[number];
const labelNames = ['verb', 'group', 'resource', 'subresource', 'code'] as const;

/**
 * Counts requests under kube-apiserver's names, so that its dashboards show something. Counting is one map look-up;
 * prom-client is loaded by the first scrape, which most servers never see.
 */
export class RequestMetrics {
  readonly #isServed: (info: RequestInfo) => boolean;
  readonly #series = new Map<string, Series>();
  /** CPU time, memory; garbage collection and event loop from the first scrape on. */
  #process: Registry | undefined;

  /**
   * @param isServed whether the resource and subresource exist. Requests for others are counted without a name: labels
   * are kept for ever, and any client can invent names, also without credentials where that is a 403.
   */
  constructor(isServed: (info: RequestInfo) => boolean) {
    this.#isServed = isServed;
  }

  readonly observe: RequestObserver = ({ info }, code, seconds) => {
    const series =
      this.#series.get(keyOf(info, code)) ??
      this.#seriesOf(this.#isServed(info) ? info : nameless(info), code);
    series.count++;
    series.seconds += seconds;
  };

  #seriesOf(info: Named, code: number): Series {
    const key = keyOf(info, code);
    let series = this.#series.get(key);
    if (series === undefined) {
      const { group, resource, subresource } = info;
      const labels = { verb: verbOf(info).toUpperCase(), group, resource, subresource, code: String(code) };
      this.#series.set(key, (series = { labels, count: 0, seconds: 0 }));
    }
    return series;
  }

  /** All metrics of the process and of the requests so far, in the text format of Prometheus. */
  async text(objects: Iterable<ObjectCount>): Promise<string> {
    const { Counter, Gauge, Registry } = await import('prom-client');
    const { collectProcessMetrics } = await import('../../telemetry/process-metrics.ts');
    if (this.#process === undefined) {
      this.#process = new Registry();
      collectProcessMetrics(this.#process);
    }
    const registry = new Registry();
    const registers = [registry];
    const requests = new Counter({
      name: 'apiserver_request_total',
      help: 'Requests handled, by verb, resource and status code.',
      labelNames,
      registers,
    });
    const seconds = new Counter({
      name: 'apiserver_request_seconds_total',
      help: 'Total time from the first byte of a request to the end of its response; watches count in full.',
      labelNames,
      registers,
    });
    for (const series of this.#series.values()) {
      requests.inc({ ...series.labels }, series.count);
      seconds.inc({ ...series.labels }, series.seconds);
    }
    const stored = new Gauge({
      name: 'apiserver_storage_objects',
      help: 'Objects in the store, by resource.',
      labelNames: ['resource'],
      registers,
    });
    for (const { resource, count } of objects) stored.set({ resource }, count);
    return `${await this.#process.metrics()}\n${await registry.metrics()}`;
  }
}

function keyOf(info: Named, code: number): string {
  return `${verbOf(info)} ${info.group} ${info.resource} ${info.subresource} ${code}`;
}

function verbOf({ verb }: Named): string {
  return verb === '' ? 'other' : verb;
}

function nameless({ verb }: Named): Named {
  return { verb, group: '', resource: '', subresource: '' };
}
