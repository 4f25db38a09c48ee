/**
 * Whether agents live, by their Leases: a Lease lives for some time from when a renewal of it was seen. Clocks of nodes are
 * never compared, only whether `renewTime` has changed, so a clock that is wrong or jumps decides nothing
 * (client-go's leader election does the same).
 */
export class Liveness {
  readonly #lastsMs: number;
  readonly #seen = new Map<string, { renewal: string; at: number }>();

  /** @param lastsMs how long an agent counts as alive after a renewal was seen. */
  constructor(lastsMs: number) {
    this.#lastsMs = lastsMs;
  }

  /**
   * A Lease as it was read.
   *
   * @param renewal `spec.renewTime`; undefined: the agent has given it back.
   * @param now milliseconds of a monotonic clock.
   */
  observe(node: string, renewal: string | undefined, now: number): void {
    if (renewal === undefined) this.#seen.delete(node);
    else if (this.#seen.get(node)?.renewal !== renewal) this.#seen.set(node, { renewal, at: now });
  }

  /** Forgets an agent whose Lease is gone. */
  forget(node: string): void {
    this.#seen.delete(node);
  }

  isAlive(node: string, now: number): boolean {
    const seen = this.#seen.get(node);
    return seen !== undefined && now < seen.at + this.#lastsMs;
  }

  /** When the next of those that live ends, if it is not renewed; infinite: none lives. */
  nextEnd(now: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { at } of this.#seen.values()) {
      if (now < at + this.#lastsMs) next = Math.min(next, at + this.#lastsMs);
    }
    return next;
  }
}
