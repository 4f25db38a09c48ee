import type { Logger } from 'pino';
import type { Clock, Random } from '../client/clock.ts';
import type { EventRecorder } from '../client/events/events.ts';
import type { Informers } from '../client/informers/informer.ts';
import type { ResourceClient } from '../client/resource-client.ts';
import type { ResourceType } from '../client/resources.ts';
import type { KubeObject } from '../objects/meta.ts';
import type { Metrics } from '../telemetry/metrics.ts';

/** Writers and direct readers, by resource. */
interface Clients {
  for<T extends KubeObject>(resource: ResourceType<T>): ResourceClient<T>;
}

/** The services of a process for its controllers. The same for every controller, except for `log`. */
export interface ControllerContext {
  readonly clients: Clients;
  readonly informers: Informers;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  /**
   * True when another process may have worked until just now, so that its last writes may be missing in the caches.
   * Absent: false.
   */
  readonly elected?: boolean;
  /**
   * Whether this process writes the endpoints of a Service (`--service-selector`). Takes the labels of the Service, or,
   * when it is gone, those of the objects written for it.
   */
  serves(object: Pick<KubeObject, 'metadata'>): boolean;
}

/** Something that runs until its signal aborts. */
export interface Runnable {
  /** Resolves when all begun work is finished, after the signal aborted. Rejects only on a bug. */
  run(signal: AbortSignal): Promise<void>;
}
