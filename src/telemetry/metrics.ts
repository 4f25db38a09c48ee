import { Registry } from 'prom-client';

/** The metrics of a process: one registry, and the families that several rooms write to. */
export class Metrics {
  readonly registry: Registry = new Registry();
}
