import type { Clock } from '../clock.ts';

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
const window = 600_000;
/** Events per object in a burst, and milliseconds until one more is allowed. */
const burst = 25;
const refill = 300_000;
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
  correlate({ kind, object, message, timestamp }: Occurrence): Correlation {
    const combined = this.#isOneOfMany(kind, message);
    const text = combined ? `(combined from similar events): ${message}` : message;
    const id = combined ? kind : `${kind}\0${message}`;
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
    if (aggregate === undefined || now - aggregate.lastAt > window) {
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
    bucket.tokens = Math.min(burst, bucket.tokens + (now - bucket.refilledAt) / refill);
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
