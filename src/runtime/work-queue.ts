import type { Metrics } from '../telemetry/metrics.ts';
import { type Clock, type Timer, type Random, backoffDelay, type BackoffLimits } from '../client/clock.ts';
import { Heap } from './heap.ts';

/** The metrics of a queue (client-go `util/workqueue/metrics.go`). Times in seconds. */
export interface QueueRecorder {
  added(depth: number): void;
  taken(waited: number, depth: number): void;
  done(worked: number): void;
  retried(): void;
  emptied(): void;
  /**
   * Passes a function that returns the start times of the running keys, in milliseconds of one clock. Called once, by
   * the queue.
   */
  observe(look: () => RunningKeys): void;
}

interface RunningKeys {
  readonly startedAt: Iterable<number>;
  readonly now: number;
}

/** Records a queue under a name in the `workqueue_*` metrics. */
export function recordQueue(metrics: Metrics, name: string): QueueRecorder {
  const depthGauge = metrics.queueDepth.labels({ name });
  const adds = metrics.queueAdds.labels({ name });
  const retries = metrics.queueRetries.labels({ name });
  const waiting = metrics.queueSeconds.labels({ name });
  const working = metrics.workSeconds.labels({ name });
  const unfinished = metrics.unfinishedSeconds.labels({ name });
  const longest = metrics.longestRunning.labels({ name });
  return {
    added(depth) {
      adds.inc();
      depthGauge.set(depth);
    },
    taken(waited, depth) {
      waiting.observe(waited);
      depthGauge.set(depth);
    },
    done: (worked) => working.observe(worked),
    retried: () => retries.inc(),
    emptied: () => depthGauge.set(0),
    observe(look) {
      metrics.beforeScrape(() => {
        const { startedAt, now } = look();
        let sum = 0;
        let oldest = 0;
        for (const start of startedAt) {
          const age = (now - start) / 1000;
          sum += age;
          oldest = Math.max(oldest, age);
        }
        unfinished.set(sum);
        longest.set(oldest);
      });
    },
  };
}

export interface KeyedQueueOptions {
  readonly clock: Clock;
  /** Absent: no metrics. */
  readonly recorder?: QueueRecorder;
}

interface Entry {
  readonly key: string;
  readonly priority: number;
  /** Sequence number: keys of one priority leave in the order in which they came. */
  readonly sequence: number;
  readonly addedAt: number;
}

interface RunningKey {
  readonly startedAt: number;
  readonly priority: number;
}

/**
 * A queue of keys, the bottom layer (client-go `util/workqueue/queue.go` with priorities).
 *
 * A key is in one of three states, never in two: waiting (once, however often it was added), running, or running with a
 * second run due. So a key never runs twice at once, and no added key is lost.
 */
export class WorkQueue {
  /** Called when a key may be taken; set by the owner of the workers. */
  onReady: () => void = () => undefined;
  protected readonly clock: Clock;
  readonly #recorder: QueueRecorder | undefined;
  readonly #waiting = new Map<string, Entry>();
  /** Entries that a more urgent one replaced stay in the heap until they reach the top. */
  readonly #order = new Heap<Entry>(
    (a, b) => a.priority > b.priority || (a.priority === b.priority && a.sequence < b.sequence),
  );
  readonly #running = new Map<string, RunningKey>();
  readonly #again = new Map<string, number>();
  #sequence = 0;
  #closed = false;

  constructor({ clock, recorder }: KeyedQueueOptions) {
    this.clock = clock;
    this.#recorder = recorder;
    recorder?.observe(() => ({
      startedAt: [...this.#running.values()].map(({ startedAt }) => startedAt),
      now: clock.monotonic(),
    }));
  }

  /** The number of keys that wait for a worker, without second runs that are due. */
  get depth(): number {
    return this.#waiting.size;
  }

  /** The number of keys that are running. */
  get running(): number {
    return this.#running.size;
  }

  /** Adds a key; higher priorities leave first. A key that waits already keeps its position and the higher priority. */
  add(key: string, priority = 0): void {
    if (this.#closed) return;
    if (this.#running.has(key)) {
      const due = this.#again.get(key);
      if (due === undefined) this.#recorder?.added(this.depth);
      this.#again.set(key, Math.max(due ?? priority, priority));
      return;
    }
    this.#enqueue(key, priority);
  }

  /** The next key, which counts as running until {@link done}; undefined when none waits. */
  take(): string | undefined {
    for (let entry = this.#order.pop(); entry !== undefined; entry = this.#order.pop()) {
      if (this.#waiting.get(entry.key) !== entry) continue;
      this.#waiting.delete(entry.key);
      const now = this.clock.monotonic();
      this.#running.set(entry.key, { startedAt: now, priority: entry.priority });
      this.#recorder?.taken((now - entry.addedAt) / 1000, this.depth);
      return entry.key;
    }
    return undefined;
  }

  /** The priority with which a running key was taken; undefined for a key that does not run. */
  priorityOf(key: string): number | undefined {
    return this.#running.get(key)?.priority;
  }

  /** Ends the run of a key. A key that was added meanwhile waits again. */
  done(key: string): void {
    const run = this.#running.get(key);
    if (run === undefined) return;
    this.#running.delete(key);
    this.#recorder?.done((this.clock.monotonic() - run.startedAt) / 1000);
    const priority = this.#again.get(key);
    if (priority === undefined) return;
    this.#again.delete(key);
    if (!this.#closed) this.#place(key, priority);
  }

  /** Takes no more keys and drops those that wait; running keys go on. */
  close(): void {
    this.#closed = true;
    this.#waiting.clear();
    this.#again.clear();
    this.#recorder?.emptied();
  }

  #enqueue(key: string, priority: number): void {
    const present = this.#waiting.get(key);
    if (present === undefined) {
      this.#place(key, priority);
      this.#recorder?.added(this.depth);
    } else if (priority > present.priority) {
      const urgent = { ...present, priority };
      this.#waiting.set(key, urgent);
      this.#order.push(urgent);
    }
  }

  #place(key: string, priority: number): void {
    const entry = { key, priority, sequence: this.#sequence++, addedAt: this.clock.monotonic() };
    this.#waiting.set(key, entry);
    this.#order.push(entry);
    this.onReady();
  }
}

interface Delayed {
  readonly key: string;
  readonly priority: number;
  readonly readyAt: number;
}

/** A {@link WorkQueue} whose keys can be added with a delay (client-go `util/workqueue/delaying_queue.go`). */
export class DelayingQueue extends WorkQueue {
  readonly #delayed = new Map<string, Delayed>();
  /** Entries that an earlier one replaced stay in the heap until they reach the top. */
  readonly #order = new Heap<Delayed>((a, b) => a.readyAt < b.readyAt);
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #stopped = false;

  /** Adds a key after a delay in milliseconds. Of two times for one key the earlier applies. */
  addAfter(key: string, milliseconds: number, priority = 0): void {
    if (this.#stopped) return;
    if (!(milliseconds > 0)) {
      this.add(key, priority);
      return;
    }
    const readyAt = this.clock.monotonic() + milliseconds;
    const present = this.#delayed.get(key);
    if (present !== undefined && present.readyAt <= readyAt && present.priority >= priority) return;
    const entry = {
      key,
      priority: Math.max(priority, present?.priority ?? priority),
      readyAt: Math.min(readyAt, present?.readyAt ?? readyAt),
    };
    this.#delayed.set(key, entry);
    this.#order.push(entry);
    this.#schedule();
  }

  override close(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#delayed.clear();
    super.close();
  }

  #schedule(): void {
    const next = this.#order.peek();
    if (next === undefined || next.readyAt >= this.#timerAt) return;
    this.#timer?.cancel();
    this.#timerAt = next.readyAt;
    this.#timer = this.clock.after(next.readyAt - this.clock.monotonic(), () => this.#release());
  }

  #release(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.clock.monotonic();
    for (
      let next = this.#order.peek();
      next !== undefined && next.readyAt <= now;
      next = this.#order.peek()
    ) {
      this.#order.pop();
      if (this.#delayed.get(next.key) !== next) continue;
      this.#delayed.delete(next.key);
      this.add(next.key, next.priority);
    }
    this.#schedule();
  }
}

export interface RateLimitedQueueOptions extends KeyedQueueOptions {
  readonly limits: BackoffLimits;
  readonly random: Random;
}

/** A {@link DelayingQueue} that spaces the retries of each key (client-go `util/workqueue/rate_limiting_queue.go`). */
export class RateLimitedQueue extends DelayingQueue {
  readonly #limits: BackoffLimits;
  readonly #random: Random;
  readonly #retryRecorder: QueueRecorder | undefined;
  readonly #failures = new Map<string, number>();

  constructor(options: RateLimitedQueueOptions) {
    super(options);
    this.#limits = options.limits;
    this.#random = options.random;
    this.#retryRecorder = options.recorder;
  }

  /**
   * Adds a key again after a failure, each time after a longer delay. Returns the delay in milliseconds.
   *
   * @param atLeast the shortest delay in milliseconds, from the server's Retry-After.
   */
  addRateLimited(key: string, priority = 0, atLeast = 0): number {
    const failures = this.retries(key);
    this.#failures.set(key, failures + 1);
    const delay = Math.max(backoffDelay(failures, this.#limits, this.#random), atLeast);
    this.#retryRecorder?.retried();
    this.addAfter(key, delay, priority);
    return delay;
  }

  /** The number of failures of a key since it was last forgotten. */
  retries(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  /** Resets the back-off of a key that succeeded or is dropped. */
  forget(key: string): void {
    this.#failures.delete(key);
  }
}
