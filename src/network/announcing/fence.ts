/**
 * How long this node may keep its addresses: so long that they are gone from the kernel before another node takes them
 * over, whatever happens to the process.
 *
 * ```text
 *   renewal sent        kernel lifetime ends     others give the Lease back, and take over
 *   |<------------- at most 2.45 s ---->|              |
 *   |<------------------- 2.5 s ---------------------->|   (counted from when they saw the renewal: later)
 * ```
 *
 * Without the API server the node asks the agents that its Lease names (`AgentReport.voters`), and each consent prolongs
 * the time from when it was asked for (`--on-api-loss=hold`). An agent that consents gives no Lease back for
 * 2.5 s from then, and no other agent can: so an agent that is silent, whether dead or not heard, ends the time. Times are milliseconds of a
 * monotonic clock. The times are those of the shortest Lease; a longer one (`--lease-duration`) adds whole seconds to all.
 *
 * An address that no other node can announce may stay for longer (`--lease-grace`): the Lease says so as it is held (`kept`),
 * and a node that gives it back then waits for so long, with that address alone.
 */

/** The lifetimes of an agent's Lease and of its addresses. */
export interface LeaseTimes {
  /** The lifetime of addresses in the kernel; 2 at least. */
  readonly leaseSeconds: number;
  readonly renewEveryMs: number;
  /** How much longer addresses stay that no other node can announce. */
  readonly graceSeconds: number;
}

/** How long an agent may have addresses after a renewal of a Lease of 2 s was sent. */
export const leaseLastsMs = 2450;

/** How long after another agent saw a renewal of a Lease of 2 s it gives the Lease back: later, since a busy machine is late in what it does. */
export const takeOverAfterMs = 2500;

/** The defaults of the flags of `servicenet node`. */
export const defaultLeaseTimes: LeaseTimes = { leaseSeconds: 2, renewEveryMs: 600, graceSeconds: 30 };

/** Milliseconds between requests for consent. */
export const askEveryMs = 200;

/**
 * How late kernels end lifetimes: at a whole second of their own clock where that comes within 250 ms (`check_lifetime` of
 * Linux' net/ipv4/devinet.c, ADDRCONF_TIMER_FUZZ); of 23 lifetimes of 2 s, 6 ended after 2.12 to 2.28 s.
 */
const kernelLateMs = 300;

/**
 * Kernels look for what has ended once a second at most. Addresses that were refreshed within 20 ms end together
 * (ADDRCONF_TIMER_FUZZ_MINUS); of more than so many, some were refreshed later, and may end a second later.
 */
const refreshedAtOnce = 250;
const nextLookMs = 1000;

/** Milliseconds that an agent with so many addresses is given more. */
function manyMs(addresses: number): number {
  return addresses > refreshedAtOnce ? nextLookMs : 0;
}

/** `leaseDurationSeconds` of the Lease of an agent with so many addresses. Others wait longer for one with many. */
export function leaseSecondsFor(
  addresses: number,
  { leaseSeconds }: Pick<LeaseTimes, 'leaseSeconds'>,
): number {
  return leaseSeconds + manyMs(addresses) / 1000;
}

/** Seconds. */
export const shortestLeaseSeconds = 2;

/** Milliseconds that other agents wait longer for a Lease than for the shortest one, from its `leaseDurationSeconds`. */
export function longerWaitMs(leaseSeconds: number): number {
  return Math.max(0, leaseSeconds - shortestLeaseSeconds) * 1000;
}

/** Milliseconds after a renewal is due, after which the API server counts as lost. */
const lostAfterMs = 200;

/** A renewal of the own Lease. */
export interface Renewal {
  /** Milliseconds of a monotonic clock. */
  readonly sentAtMs: number;
  /** The agents that it names. */
  readonly voters: readonly string[];
  /** The addresses that it says no other agent may take for `graceSeconds` after its end. */
  readonly sole: ReadonlySet<string>;
}

export class Fence {
  readonly #holds: boolean;
  readonly #times: LeaseTimes;
  /**
   * The renewal that was seen last, and those sent since, with the agents that they name: the Lease may be any of
   * these.
   */
  #renewals: readonly Renewal[] = [];
  /** When the last request was sent to which each has consented. */
  readonly #consents = new Map<string, number>();
  #renewedAt = Number.NEGATIVE_INFINITY;
  #until = Number.NEGATIVE_INFINITY;

  /** @param holds whether addresses may stay while the API server is away (`--on-api-loss=hold`). */
  constructor(holds: boolean, times: LeaseTimes) {
    this.#holds = holds;
    this.#times = times;
  }

  /** A renewal is about to be sent. @param voters the agents that it names. @returns what {@link renewed} takes. */
  renewing(voters: Iterable<string>, sole: ReadonlySet<string>, now: number): Renewal {
    const renewal = { sentAtMs: now, voters: [...voters], sole };
    this.#renewals = [...this.#renewals, renewal];
    return renewal;
  }

  /**
   * A renewal was seen as other agents see it: an agent that sees no changes has no addresses. Its time counts from
   * when it was sent, since others may have seen it at once.
   *
   * @param leaseSeconds what the Lease says then; never less than before while the agent has addresses.
   */
  renewed(renewal: Renewal, leaseSeconds = shortestLeaseSeconds): void {
    this.#renewals = this.#renewals.slice(Math.max(0, this.#renewals.indexOf(renewal)));
    this.#consents.clear();
    this.#renewedAt = renewal.sentAtMs;
    this.#until = Math.max(this.#until, renewal.sentAtMs + leaseLastsMs + longerWaitMs(leaseSeconds));
  }

  /** Whether no renewal was seen for some time. */
  hasLostAPI(now: number): boolean {
    return now - this.#renewedAt > this.#times.renewEveryMs + lostAfterMs;
  }

  /** Whether other agents may have given its Lease back, or may do so. */
  get hasVoters(): boolean {
    return this.#voters().size > 0;
  }

  /** Keeps the addresses of an agent without the API server that was alone: no other agent can release its Lease. */
  hold(now: number): void {
    if (!this.#mayHold(now) || this.#voters().size > 0) return;
    this.#until = Math.max(this.#until, now + leaseLastsMs);
  }

  /** The agents to ask for consent; none if it is not needed, or of no use. */
  toAsk(now: number): readonly string[] {
    return this.#mayHold(now) && this.isOpen(now) ? [...this.#voters()] : [];
  }

  /**
   * An agent consents that this one keeps its addresses. What has ended does not begin again before the next renewal: by
   * then another one may have taken over.
   *
   * @param askedAt when it was asked.
   */
  consented(node: string, askedAt: number, now: number): void {
    if (!this.#mayHold(now) || !this.isOpen(now) || askedAt > now) return;
    this.#consents.set(node, Math.max(askedAt, this.#consents.get(node) ?? askedAt));
    let earliest = Number.POSITIVE_INFINITY;
    for (const voter of this.#voters()) {
      const at = this.#consents.get(voter);
      if (at === undefined) return;
      earliest = Math.min(earliest, at);
    }
    if (earliest <= now) this.#until = Math.max(this.#until, earliest + leaseLastsMs);
  }

  /** Whether the node may have addresses. */
  isOpen(now: number): boolean {
    return now < this.#until;
  }

  /**
   * Seconds that addresses may have as their lifetime in the kernel, from now; 0: they are not to be refreshed.
   *
   * @param addresses how many are refreshed together.
   * @param sole an address that no other node can announce: it may live longer, once every Lease that others may see says so,
   *   also when the node may have other addresses no more.
   */
  lifetime(now: number, addresses = 1, sole?: string): number {
    const { leaseSeconds, graceSeconds } = this.#times;
    const isSaid = sole !== undefined && this.#renewals.every((renewal) => renewal.sole.has(sole));
    return isSaid && graceSeconds > 0
      ? this.#lifetime(this.#until + graceSeconds * 1000 - now, addresses, graceSeconds)
      : this.#lifetime(this.#until - now, addresses, leaseSeconds);
  }

  #lifetime(leftMs: number, addresses: number, longest: number): number {
    const seconds = Math.floor((leftMs - kernelLateMs - manyMs(addresses)) / 1000);
    return Math.max(0, Math.min(longest, seconds));
  }

  #voters(): ReadonlySet<string> {
    return new Set(this.#renewals.flatMap(({ voters }) => voters));
  }

  #mayHold(now: number): boolean {
    return this.#holds && this.#renewedAt !== Number.NEGATIVE_INFINITY && this.hasLostAPI(now);
  }
}
