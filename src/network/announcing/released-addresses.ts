import type { AnnouncerLease } from './announcer-lease.ts';

/** Milliseconds: longer than a successor needs, shorter than another machine takes to come by one of them. */
const lastsMs = 5000;

/**
 * Addresses that agents announced until their Leases were given back, by themselves or for them. An agent that
 * takes such an address over at once does not probe for it: the former one has.
 */
export class ReleasedAddresses {
  readonly #holding = new Set<string>();
  /** By address: when its Lease was seen given back. */
  readonly #released = new Map<string, number>();

  /**
   * A Lease was seen.
   *
   * @param lease undefined: it was deleted.
   * @param announced the addresses in the agent's last report.
   * @param now milliseconds of a monotonic clock.
   */
  observe(
    node: string,
    lease: Pick<AnnouncerLease, 'acquired'> | undefined,
    announced: readonly string[],
    now: number,
  ): void {
    if (lease?.acquired !== undefined) this.#holding.add(node);
    else if (this.#holding.delete(node)) for (const address of announced) this.#released.set(address, now);
  }

  /** Whether an address was released a moment ago. */
  has(address: string, now: number): boolean {
    const at = this.#released.get(address);
    if (at === undefined) return false;
    if (now - at <= lastsMs) return true;
    this.#released.delete(address);
    return false;
  }
}
