/**
 * prom-client's classes, from their own files: its index also loads a push gateway, cluster support and the metrics of
 * the process, 15 MiB that a process without a metrics server never uses.
 */
import type * as client from 'prom-client';
import counter from 'prom-client/lib/counter.js';
import gauge from 'prom-client/lib/gauge.js';
import histogram from 'prom-client/lib/histogram.js';
import registry from 'prom-client/lib/registry.js';

export type Counter<T extends string = string> = client.Counter<T>;
export const Counter: typeof client.Counter = counter;

export type Gauge<T extends string = string> = client.Gauge<T>;
export const Gauge: typeof client.Gauge = gauge;

export type Histogram<T extends string = string> = client.Histogram<T>;
export const Histogram: typeof client.Histogram = histogram;

export type Registry = client.Registry;
export const Registry: typeof client.Registry = registry;
