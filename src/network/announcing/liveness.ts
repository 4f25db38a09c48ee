/**
 * Whether agents are alive, by their Leases: a Lease is valid for some time after a renewal of it was seen. Neither
 * the clocks of nodes nor the times in Leases are used, so that a wrong clock decides nothing.
 */
export class Liveness {
  readonly #lastsMs: number;
  /** `seenAt`: the last renewal; `from`: from when its time counts, which is not earlier. */
  readonly #seen = new Map<string, { renewal: string; seenAt: number; from: number; lastsMs: number }>();

  /** @param lastsMs milliseconds for which an agent counts as alive after a renewal was seen. */
  constructor(lastsMs: number) {
    this.#lastsMs = lastsMs;
  }

  /**
   * A Lease as it was read.
   *
   * @param renewal differs for each renewal; undefined: the Lease was given back.
   * @param now milliseconds of a monotonic clock.
   * @param longerMs how much longer it lives than others.
   */
  observe(node: string, renewal: string | undefined, now: number, longerMs = 0): void {
    if (renewal === undefined) this.#seen.delete(node);
    else if (this.#seen.get(node)?.renewal !== renewal) {
      this.#seen.set(node, { renewal, seenAt: now, from: now, lastsMs: this.#lastsMs + longerMs });
    }
  }

  /** Forgets an agent whose Lease is gone. */
  forget(node: string): void {
    this.#seen.delete(node);
  }

  /** Leases are seen again after an interruption: all timers restart. */
  resume(now: number): void {
    for (const seen of this.#seen.values()) seen.from = Math.max(seen.from, now);
  }

  /**
   * Promises that an agent counts as alive from now on as after a renewal.
   *
   * @returns false: it has given its Lease back, and gets no promise.
   */
  promise(node: string, now: number): boolean {
    const seen = this.#seen.get(node);
    if (seen !== undefined) seen.from = Math.max(seen.from, now);
    return seen !== undefined;
  }

  /** Whether an agent may have addresses. */
  isAlive(node: string, now: number): boolean {
    const seen = this.#seen.get(node);
    return seen !== undefined && now < seen.from + seen.lastsMs;
  }

  /** Whether an agent has renewed its Lease just now: it has the API server. */
  isFresh(node: string, now: number): boolean {
    const seen = this.#seen.get(node);
    return seen !== undefined && now < seen.seenAt + seen.lastsMs;
  }

  /** When the next agent counts as dead without a renewal; infinite: none is alive. */
  nextEnd(now: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { from, lastsMs } of this.#seen.values()) {
      if (now < from + lastsMs) next = Math.min(next, from + lastsMs);
    }
    return next;
  }
}
