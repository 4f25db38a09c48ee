import type { Logger } from 'pino';
import type { Event } from '../../objects/types/core.generated.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { formatTime } from '../../objects/time.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { isAborted } from '../abort.ts';
import type { Clock, Random } from '../clock.ts';
import { isNamespaceTerminating, isNotFound, isUnreached, retryAfterOf } from '../errors.ts';
import { type Correlation, EventCorrelator } from './event-correlator.ts';
import type { EventRecorder } from './events.ts';
import { ResourceClient } from '../resource-client.ts';
import { ConnectionError, type Transport } from '../transport.ts';

const events = {
  group: '',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
  namespaced: true,
  isObject: (object: KubeObject): object is Event => 'involvedObject' in object,
};

export interface EventSenderOptions {
  readonly transport: Transport;
  /** The name of the reporting program: `source.component`, e.g. `servicenet`. */
  readonly component: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics?: Metrics;
}

type Sendable = Exclude<Correlation, { action: 'drop' }>;

interface Waiting {
  readonly event: Event;
  readonly correlation: Sendable;
}

/** Events that may wait. When the server does not keep up, further Events are dropped first. */
const maxQueued = 1000;
/** Tries of one Event, and milliseconds between them, half of it random (client-go: 12 tries, 10 s). */
const tries = 12;
const pause = 10_000;

/** Nanoseconds of a millisecond, which clocks here do not have. */
const sequenceEnd = 1_000_000;

/** Sends Events one after another, in order. */
export class EventSender implements EventRecorder {
  readonly #options: EventSenderOptions;
  readonly #client: ResourceClient<Event>;
  readonly #correlator: EventCorrelator;
  readonly #waiting: Waiting[] = [];
  #sending = false;
  readonly #stop = new AbortController();
  #idle: Promise<void> = Promise.resolve();
  #sequence: number;

  constructor(options: EventSenderOptions) {
    this.#options = options;
    this.#client = new ResourceClient(options.transport, events);
    this.#correlator = new EventCorrelator(options.clock);
    this.#sequence = Math.floor(options.random() * sequenceEnd);
  }

  event(regarding: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { clock, metrics, log } = this.#options;
    const { apiVersion = '', kind = '' } = regarding;
    const { namespace = '', name = '', uid = '', resourceVersion = '' } = regarding.metadata;
    const object = [apiVersion, kind, namespace, name, uid].join('\0');
    const timestamp = formatTime(clock.now());
    const correlation = this.#correlator.correlate({
      kind: [object, type, reason].join('\0'),
      object,
      message,
      timestamp,
    });
    if (correlation.action === 'drop' || this.#waiting.length >= maxQueued || this.#stop.signal.aborted) {
      metrics?.events.inc({ result: 'limited' });
      log.debug({ key: `${namespace}/${name}`, reason, eventMessage: message }, 'left out an event');
      return;
    }
    const { record } = correlation;
    const event: Event = {
      metadata: { name: this.#eventName(name), namespace: namespace === '' ? 'default' : namespace },
      involvedObject: { kind, namespace, name, uid, apiVersion, resourceVersion },
      reason,
      message: correlation.message,
      source: { component: this.#options.component },
      firstTimestamp: record.firstTimestamp,
      lastTimestamp: timestamp,
      count: record.count,
      type,
      reportingComponent: this.#options.component,
    };
    this.#waiting.push({ event, correlation });
    if (!this.#sending) {
      this.#sending = true;
      this.#idle = this.#sendAll();
    }
  }

  /** Sends what waits, for at most the given milliseconds, and accepts no more. */
  async close(timeoutMs = 2000): Promise<void> {
    const enough = new AbortController();
    const late = this.#options.clock.sleep(timeoutMs, enough.signal);
    await Promise.race([this.#idle, late]);
    this.#stop.abort();
    enough.abort();
    await this.#idle;
  }

  /**
   * Unique within this process. Another one that sends in the same millisecond has begun to count elsewhere (client-go: name
   * and nanoseconds).
   */
  #eventName(name: string): string {
    this.#sequence = (this.#sequence + 1) % sequenceEnd;
    const nanoseconds = BigInt(Math.floor(this.#options.clock.now())) * 1_000_000n + BigInt(this.#sequence);
    return `${name}.${nanoseconds.toString(16)}`;
  }

  async #sendAll(): Promise<void> {
    const { log, metrics } = this.#options;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      if (isAborted(this.#stop.signal)) break;
      try {
        await this.#deliver(next);
        metrics?.events.inc({ result: next.correlation.action === 'repeat' ? 'aggregated' : 'sent' });
      } catch (error) {
        metrics?.events.inc({ result: 'failed' });
        log[isUnreached(error) || isNamespaceTerminating(error) ? 'debug' : 'warn'](
          { err: error, reason: next.event.reason },
          'could not write an event',
        );
      }
    }
    this.#sending = false;
  }

  /** Retries what never reached the server; refused Events are not retried. */
  async #deliver(waiting: Waiting): Promise<void> {
    const { clock, random } = this.#options;
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#send(waiting);
        return;
      } catch (error) {
        const busy = retryAfterOf(error);
        const lost = error instanceof ConnectionError || busy !== undefined;
        if (!lost || attempt === tries || isAborted(this.#stop.signal)) throw error;
        await clock.sleep(busy ?? pause * (0.5 + 0.5 * random()), this.#stop.signal);
      }
    }
  }

  async #send({ event, correlation: { action, record } }: Waiting): Promise<void> {
    const options = { signal: this.#stop.signal };
    if (action === 'repeat' && record.name !== undefined) {
      const { count, lastTimestamp, message } = event;
      const namespace = event.metadata.namespace ?? '';
      try {
        await this.#client.mergePatch(namespace, record.name, { count, lastTimestamp, message }, options);
        return;
      } catch (error) {
        // Events expire after an hour: then the series continues in a new one.
        if (!isNotFound(error)) throw error;
      }
    }
    const created = await this.#client.create(event, options);
    record.name = created.metadata.name;
  }
}
