import type { Registry } from 'prom-client';
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

type Label = (typeof labelNames)[number];
const labelNames = ['verb', 'group', 'resource', 'subresource', 'code'] as const;

/**
 * Counts requests under kube-apiserver's names, so that its dashboards show something. Counting is one map look-up;
 * prom-client is loaded by the first scrape, which most servers never see.
 */
export class RequestMetrics {
  private readonly series = new Map<string, Series>();
  /** Memory, garbage collection, event loop: observed from the first scrape on, once. */
  private process: Registry | undefined;

  readonly observe: RequestObserver = ({ info }, code, seconds) => {
    const verb = info.verb === '' ? 'other' : info.verb;
    // what a client sends becomes a label only where it was served: labels are kept for ever
    const known = info.isResource && code !== 404;
    const group = known ? info.group : '';
    const resource = known ? info.resource : '';
    const subresource = known ? info.subresource : '';
    const key = `${verb} ${group} ${resource} ${subresource} ${code}`;
    const series = this.series.get(key);
    if (series === undefined) {
      const labels = { verb: verb.toUpperCase(), group, resource, subresource, code: String(code) };
      this.series.set(key, { labels, count: 1, seconds });
    } else {
      series.count++;
      series.seconds += seconds;
    }
  };

  /** All metrics of the process and of the requests so far, in the text format of Prometheus. */
  async text(objects: Iterable<ObjectCount>): Promise<string> {
    const { Counter, Gauge, Registry, collectDefaultMetrics } = await import('prom-client');
    if (this.process === undefined) {
      this.process = new Registry();
      collectDefaultMetrics({ register: this.process });
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
    for (const series of this.series.values()) {
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
    return `${await this.process.metrics()}\n${await registry.metrics()}`;
  }
}
