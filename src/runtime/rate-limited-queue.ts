import type { Random } from '../client/clock.ts';
import { backoffDelay, type BackoffLimits } from '../client/backoff.ts';
import { DelayingQueue } from './delaying-queue.ts';
import type { KeyedQueueOptions } from './work-queue.ts';
import type { QueueRecorder } from './queue-metrics.ts';

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
