/**
 * How long this node may keep its addresses: so long that they are gone from the kernel before another node takes them
 * over, whatever happens to the process.
 *
 * ```text
 *   renewal sent        kernel lifetime ends     others take over
 *   |<------------- at most 2.11 s ---->|              |
 *   |<------------------- 2.25 s --------------------->|   (counted from when they saw the renewal: later)
 * ```
 *
 * While the API server answers no agent, the agents hear each other's heartbeats, and each keeps what it has
 * (`--on-api-loss=hold`): no node can take over without the API server. Times are milliseconds of a monotonic clock.
 */

/** How long an agent counts as alive after another one saw its renewal. */
export const leaseLastsMs = 2250;

/** How far apart renewals are. */
export const renewEveryMs = 600;

/** How far apart heartbeats are. */
export const heartbeatEveryMs = 300;

/** Kernels end lifetimes late: that of 2 s after 2.11 s, that of 1 s after 1.05 s (measured). */
const kernelLateMs = 120;

/** Seconds: the longest lifetime that ends in time. */
const longestLifetime = 2;

/** Without a renewal for so long, the API server counts as lost. */
const lostAfterMs = 800;

/** Without a heartbeat for so long, an agent that was heard before is dead, or the network to it is. */
const silentAfterMs = 1000;

/** What another agent said last. */
interface Heard {
  readonly at: number;
  readonly hasLostAPI: boolean;
}

export class Fence {
  readonly #holds: boolean;
  readonly #heard = new Map<string, Heard>();
  #renewedAt = Number.NEGATIVE_INFINITY;
  #until = Number.NEGATIVE_INFINITY;

  /** @param holds whether addresses stay while the API server is away (`--on-api-loss=hold`). */
  constructor(holds: boolean) {
    this.#holds = holds;
  }

  /** A renewal has succeeded. @param sentAt when it was sent: others may have seen it at once. */
  renewed(sentAt: number): void {
    this.#renewedAt = sentAt;
    this.#until = Math.max(this.#until, sentAt + leaseLastsMs);
  }

  /** A heartbeat of another agent has come. */
  heard(node: string, hasLostAPI: boolean, now: number): void {
    this.#heard.set(node, { at: now, hasLostAPI });
  }

  /** Whether the API server has not taken a renewal for some time. */
  hasLostAPI(now: number): boolean {
    return now - this.#renewedAt > lostAfterMs;
  }

  /**
   * Keeps the addresses without the API server, where that is safe.
   *
   * @param others the agents that lived when the API server was last heard of. One that says that it has the API server
   *   may take over. One that was never heard may too: perhaps a firewall stops heartbeats.
   */
  hold(others: Iterable<string>, now: number): void {
    if (!this.#holds || this.#renewedAt === Number.NEGATIVE_INFINITY || !this.hasLostAPI(now)) return;
    for (const node of others) {
      const heard = this.#heard.get(node);
      if (heard === undefined) return;
      if (!heard.hasLostAPI && now - heard.at < silentAfterMs) return;
    }
    this.#until = Math.max(this.#until, now + leaseLastsMs);
  }

  /** Whether the node may have addresses. */
  isOpen(now: number): boolean {
    return now < this.#until;
  }

  /** Seconds that addresses may have as their lifetime in the kernel, from now; 0: they are not to be refreshed. */
  lifetime(now: number): number {
    const seconds = Math.floor((this.#until - now - kernelLateMs) / 1000);
    return Math.max(0, Math.min(longestLifetime, seconds));
  }
}
