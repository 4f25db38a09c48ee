import { type Clock, isAborted, type Random } from '../clock.ts';
import type { Logger } from 'pino';
import type { Event } from '../../objects/types/core.generated.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { formatTime } from '../../objects/formats/time.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { isNamespaceTerminating, isNotFound, isUnreached, retryAfterOf } from '../errors.ts';
import type { EventRecorder } from './events.ts';
import { ResourceClient } from '../resource-client.ts';
import { ConnectionError, type Transport } from '../transport.ts';

/** The action for a new occurrence, by the Events sent before. */
export type Correlation =
  | { readonly action: 'create'; readonly message: string; readonly record: EventRecord }
  | { readonly action: 'repeat'; readonly message: string; readonly record: EventRecord }
  | { readonly action: 'drop' };

/** An Event that was sent, and its count. */
export interface EventRecord {
  count: number;
  /** RFC 3339 of the first occurrence. */
  readonly firstTimestamp: string;
  /** `metadata.name`, once it was created. */
  name: string | undefined;
}

/** One occurrence. */
export interface Occurrence {
  /** Object, type and reason as one text: the key of aggregation. */
  readonly kind: string;
  /** The object alone: the key of the rate limit. */
  readonly object: string;
  /** The part of the object; "" for all of it. */
  readonly fieldPath?: string;
  readonly message: string;
  readonly timestamp: string;
}

interface Aggregate {
  /** The different messages within the present window. */
  readonly messages: Set<string>;
  lastAt: number;
}

interface Bucket {
  tokens: number;
  refilledAt: number;
}

/**
 * From client-go's `tools/record/events_cache.go`: the number of different messages of one kind within the window
 * before they are aggregated.
 */
const distinctMessages = 10;
const windowMs = 600_000;
/** Events per object in a burst, and milliseconds until one more is allowed. */
const burst = 25;
const refillMs = 300_000;
const remembered = 4096;

/** Decides which occurrences become Events of their own, with the limits of kube components. */
export class EventCorrelator {
  readonly #clock: Clock;
  readonly #aggregates = new RecentMap<Aggregate>(remembered);
  readonly #records = new RecentMap<EventRecord>(remembered);
  readonly #buckets = new RecentMap<Bucket>(remembered);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What to do with an occurrence. */
  correlate({ kind, object, fieldPath = '', message, timestamp }: Occurrence): Correlation {
    const combined = this.#isOneOfMany(kind, message);
    const text = combined ? `(combined from similar events): ${message}` : message;
    const id = combined ? kind : [kind, fieldPath, message].join('\0');
    if (!this.#allowed(object)) return { action: 'drop' };
    const known = this.#records.get(id);
    if (known !== undefined) {
      known.count++;
      return { action: 'repeat', message: text, record: known };
    }
    const record: EventRecord = { count: 1, firstTimestamp: timestamp, name: undefined };
    this.#records.set(id, record);
    return { action: 'create', message: text, record };
  }

  #isOneOfMany(kind: string, message: string): boolean {
    const now = this.#clock.monotonic();
    let aggregate = this.#aggregates.get(kind);
    if (aggregate === undefined || now - aggregate.lastAt > windowMs) {
      aggregate = { messages: new Set(), lastAt: now };
      this.#aggregates.set(kind, aggregate);
    }
    aggregate.lastAt = now;
    if (aggregate.messages.size < distinctMessages) aggregate.messages.add(message);
    return aggregate.messages.size >= distinctMessages;
  }

  #allowed(object: string): boolean {
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(object) ?? { tokens: burst, refilledAt: now };
    this.#buckets.set(object, bucket);
    bucket.tokens = Math.min(burst, bucket.tokens + (now - bucket.refilledAt) / refillMs);
    bucket.refilledAt = now;
    if (bucket.tokens < 1) return false;
    bucket.tokens--;
    return true;
  }
}

/** A Map that drops its least recently used entries. */
class RecentMap<V> {
  readonly #entries = new Map<string, V>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: string): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: string, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#limit) return;
    const [oldest] = this.#entries.keys();
    if (oldest !== undefined) this.#entries.delete(oldest);
  }
}

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
/** How long the end of the process waits for Events that are not sent yet. */
const drainMs = 2000;
/** Tries of one Event, and milliseconds between them, half of it random (client-go: 12 tries, 10 s). */
const tries = 12;
const retryMs = 10_000;

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

  event(
    regarding: KubeObject,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
    fieldPath = '',
  ): void {
    const { clock, metrics, log } = this.#options;
    const { apiVersion = '', kind = '' } = regarding;
    const { namespace = '', name = '', uid = '', resourceVersion = '' } = regarding.metadata;
    const object = [apiVersion, kind, namespace, name, uid].join('\0');
    const timestamp = formatTime(clock.now());
    const correlation = this.#correlator.correlate({
      kind: [object, type, reason].join('\0'),
      object,
      fieldPath,
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
      involvedObject: {
        ...{ kind, namespace, name, uid, apiVersion, resourceVersion },
        ...(fieldPath === '' ? {} : { fieldPath }),
      },
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

  /** Sends what waits, for at most two seconds, and accepts no more. */
  async close(): Promise<void> {
    const enough = new AbortController();
    const late = this.#options.clock.sleep(drainMs, enough.signal);
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
        await clock.sleep(busy ?? retryMs * (0.5 + 0.5 * random()), this.#stop.signal);
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
