import type { Logger } from 'pino';
import type { Clock, Random } from '../client/clock.ts';
import type { EventRecorder } from '../client/events.ts';
import type { Informers } from '../client/informer.ts';
import type { ResourceClient } from '../client/resource-client.ts';
import type { ResourceType } from '../client/resources.ts';
import type { KubeObject } from '../objects/meta.ts';
import type { Metrics } from '../telemetry/metrics.ts';

/** Writers and direct readers, by resource. */
interface Clients {
  for<T extends KubeObject>(resource: ResourceType<T>): ResourceClient<T>;
}

/** All that a controller needs of the world; the same for every controller of a process but for `log`. */
export interface ControllerContext {
  readonly clients: Clients;
  readonly informers: Informers;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  /**
   * Another process may have worked until a moment ago: what it wrote last may not be in the caches yet. Absent: false.
   */
  readonly elected?: boolean;
  /**
   * Whether the endpoints of a Service are ours to write (`--service-selector`), by its labels: those of the Service,
   * or, when that is gone, those of what was written for it.
   */
  serves(object: Pick<KubeObject, 'metadata'>): boolean;
}

/**
 * A controller that `--controllers` can name. `start` registers informers, indexes and handlers and answers what
 * will run once the caches are full; it does no I/O itself.
 */
export interface ControllerDefinition {
  /** Lower case with dashes, e.g. `endpoint-slices`. */
  readonly name: string;
  start(context: ControllerContext): readonly Runnable[];
}

/** Something that runs until it is told to stop. */
export interface Runnable {
  /** Resolves when everything that was begun is finished, after the signal aborted. Rejects only on a bug. */
  run(signal: AbortSignal): Promise<void>;
}
