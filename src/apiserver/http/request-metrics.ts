import { Counter, Histogram, type Registry } from 'prom-client';
import type { RequestObserver } from './server.ts';

/** Seconds; kube-apiserver's buckets, thinned out. */
const buckets = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60];

/** Counts requests under kube-apiserver's metric names, so that its dashboards show something. */
export function requestMetrics(registry: Registry): RequestObserver {
  const registers = [registry];
  const requests = new Counter({
    name: 'apiserver_request_total',
    help: 'Requests answered, by verb, resource and HTTP status.',
    labelNames: ['verb', 'group', 'resource', 'subresource', 'code'],
    registers,
  });
  const seconds = new Histogram({
    name: 'apiserver_request_duration_seconds',
    help: 'Time from the first byte of a request to the end of its answer; watches are not counted.',
    labelNames: ['verb'],
    buckets,
    registers,
  });
  return ({ info }, code, duration) => {
    const verb = info.verb === '' ? 'other' : info.verb.toUpperCase();
    // what a client sends becomes a label only where it was served: labels are kept for ever
    const known = info.isResource && code !== 404;
    requests.inc({
      verb,
      group: known ? info.group : '',
      resource: known ? info.resource : '',
      subresource: known ? info.subresource : '',
      code,
    });
    if (info.verb !== 'watch') seconds.observe({ verb }, duration);
  };
}
