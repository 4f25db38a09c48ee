import type { StorageEvent } from '../storage/storage.ts';
import type { VersionConversion } from './served-resource.ts';

/** What comes of the events of a watch. */
export interface ConvertedEventsSink {
  /** An event with its objects as the resource serves them. */
  take(event: StorageEvent): void;
  /** The objects of an event cannot be had: nothing comes after it. */
  fail(error: unknown): void;
}

/**
 * Events whose objects a webhook converts, in their order: what comes while it is asked is asked about together, and
 * nothing overtakes.
 */
export class ConvertedEvents {
  readonly #conversion: Pick<VersionConversion, 'read'>;
  readonly #sink: ConvertedEventsSink;
  /** Whether the versions before are needed, too. */
  readonly #withPrevious: boolean;
  #waiting: StorageEvent[] = [];
  #bytes = 0;
  #running: Promise<void> | undefined;
  #over = false;

  constructor(conversion: Pick<VersionConversion, 'read'>, withPrevious: boolean, sink: ConvertedEventsSink) {
    this.#conversion = conversion;
    this.#withPrevious = withPrevious;
    this.#sink = sink;
  }

  /** True when every event that has come was handed on: only then may a bookmark say so. */
  get isIdle(): boolean {
    return this.#running === undefined;
  }

  /** Bytes of the events that wait. */
  get bytes(): number {
    return this.#bytes;
  }

  push(event: StorageEvent): void {
    if (this.#over) return;
    this.#waiting.push(event);
    this.#bytes += event.current.byteLength;
    this.#running ??= this.#run();
  }

  /** Resolves when all events that have come are converted, or cannot be. */
  async settled(): Promise<void> {
    await this.#running;
  }

  /** Forgets what waits. */
  stop(): void {
    this.#over = true;
    this.#waiting = [];
  }

  async #run(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const events = this.#waiting;
        this.#waiting = [];
        await this.#convert(events);
      }
    } catch (error) {
      if (!this.#over) this.#sink.fail(error);
      this.stop();
    } finally {
      this.#running = undefined;
    }
  }

  async #convert(events: readonly StorageEvent[]): Promise<void> {
    const versions = events.flatMap(({ current, previous }) =>
      previous === undefined || !this.#withPrevious ? [current] : [current, previous],
    );
    const served = (await this.#conversion.read(versions)).values();
    for (const event of events) {
      const { value: current = event.current } = served.next();
      const hasPrevious = event.previous !== undefined && this.#withPrevious;
      const previous = hasPrevious ? served.next().value : event.previous;
      this.#bytes -= event.current.byteLength;
      if (!this.#over) this.#sink.take({ ...event, current, previous });
    }
  }
}
