/**
 * A clock that stands while this agent does not see the Leases. Otherwise, after an outage of the API server, all other
 * agents would look dead to the first that is back.
 */
export class WatchedTime {
  readonly #maxGapMs: number;
  #passed = 0;
  #seenAt: number | undefined;

  /** @param maxGapMs the clock stands this long after the last sign. */
  constructor(maxGapMs: number) {
    this.#maxGapMs = maxGapMs;
  }

  /** A sign that changes of Leases arrive. @param now milliseconds of a monotonic clock. */
  seen(now: number): void {
    this.#passed = this.at(now);
    this.#seenAt = now;
  }

  /** Milliseconds that have passed while Leases were seen. */
  at(now: number): number {
    if (this.#seenAt === undefined) return this.#passed;
    return this.#passed + Math.min(Math.max(0, now - this.#seenAt), this.#maxGapMs);
  }
}
