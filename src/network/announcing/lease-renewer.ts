import { Fence, leaseSecondsFor, type LeaseTimes, type Renewal } from './fence.ts';

/** Milliseconds between renewals while there is no address in the cluster. */
const idleRenewMs = 10_000;

/** The rate limit of writes to the API server: per second in the long run, and the burst. */
const writesPerSecond = 2;
const burst = 4;

/** A renewal on its way to the API server. */
interface PendingRenewal {
  readonly renewal: Renewal;
  readonly report: string;
  readonly startedAtMs: number;
}

/**
 * When the Lease of this node's agent is renewed, and how long the agent may have addresses by that: {@link Fence}. A
 * renewal counts once it is written and seen. Times are milliseconds of a monotonic clock.
 */
export class LeaseRenewer {
  readonly fence: Fence;
  readonly #times: LeaseTimes;
  /** Renewals that were not seen yet, by the version that they made. */
  readonly #unseen = new Map<string, { readonly renewal: Renewal; readonly leaseSeconds: number }>();
  #pending: PendingRenewal | undefined;
  /** The report that the Lease has; undefined: not known. */
  #writtenReport: string | undefined;
  /** The version of the own Lease that was last seen, and when. */
  #seenVersion = '';
  #seenAtMs = Number.NEGATIVE_INFINITY;
  /** Since when a renewal is written and none was seen. */
  #blindSinceMs: number | undefined;
  #nextAtMs = Number.NEGATIVE_INFINITY;
  /** The Lease was to be renewed while it was being written. */
  #isAgain = false;
  #isActive = false;
  #isStopped = false;
  #tokens = burst;
  #countedAtMs = Number.NEGATIVE_INFINITY;

  /** @param holds whether addresses may stay while the API server is away (`--on-api-loss=hold`). */
  constructor(holds: boolean, times: LeaseTimes) {
    this.fence = new Fence(holds, times);
    this.#times = times;
  }

  /** When {@link renew} is due; infinite: a renewal is on its way, or none is sent any more. */
  get dueAtMs(): number {
    if (this.#isStopped || this.#pending !== undefined) return Number.POSITIVE_INFINITY;
    const missing = 1 - this.#tokens;
    const writableAtMs =
      missing <= 0 ? Number.NEGATIVE_INFINITY : this.#countedAtMs + (missing * 1000) / writesPerSecond;
    return Math.max(this.#nextAtMs, writableAtMs);
  }

  /** Whether a renewal is on its way. */
  get isWriting(): boolean {
    return this.#pending !== undefined;
  }

  /** Whether own renewals are written and not seen: others are to take over from an agent that does not see them. */
  isBlind(nowMs: number): boolean {
    return this.#blindSinceMs !== undefined && nowMs - this.#blindSinceMs > this.#watchGapMs;
  }

  /**
   * Whether what is known of other agents is as new as a renewal by which this node has addresses: no other one can have
   * released its Lease since.
   */
  isCurrent(nowMs: number): boolean {
    return this.fence.isOpen(nowMs) && !this.fence.hasLostAPI(nowMs);
  }

  /** Leaves one renewal out. */
  skip(nowMs: number): void {
    this.#nextAtMs = nowMs + this.#periodMs;
  }

  /**
   * A renewal is sent now.
   *
   * @param voters the agents that it names.
   * @param sole the addresses that the report says are kept.
   * @param addresses how many this node has.
   * @returns the duration that it is to say, at least.
   */
  renew(
    report: string,
    voters: Iterable<string>,
    sole: ReadonlySet<string>,
    addresses: number,
    nowMs: number,
  ): number {
    this.#takeToken(nowMs);
    this.#pending = { renewal: this.fence.renewing(voters, sole, nowMs), report, startedAtMs: nowMs };
    return leaseSecondsFor(addresses, this.#times);
  }

  /** The renewal is written, as this version. */
  renewed(version: string, leaseSeconds: number, nowMs: number): void {
    const pending = this.#end(nowMs);
    if (pending === undefined) return;
    this.#writtenReport = pending.report;
    if (version !== this.#seenVersion) this.#blindSinceMs ??= nowMs;
    this.#unseen.set(version, { renewal: pending.renewal, leaseSeconds });
    this.#count();
  }

  /** The renewal may be written, or not. */
  failed(nowMs: number): void {
    this.#end(nowMs);
    this.#writtenReport = undefined;
  }

  /**
   * The own Lease was seen.
   *
   * @returns whether it is new, and whether it was not seen for long.
   */
  seen(version: string, nowMs: number): { readonly isNew: boolean; readonly wasGap: boolean } {
    if (version === this.#seenVersion) return { isNew: false, wasGap: false };
    const wasGap = nowMs - this.#seenAtMs > this.#watchGapMs;
    this.#seenVersion = version;
    this.#seenAtMs = nowMs;
    this.#blindSinceMs = undefined;
    this.#count();
    return { isNew: true, wasGap };
  }

  /** There are addresses in the cluster, or none any more. */
  setActive(isActive: boolean, nowMs: number): void {
    this.#isActive = isActive;
    this.renewSoon(nowMs);
  }

  /** The Lease is to be renewed at once. */
  renewSoon(nowMs: number): void {
    if (this.#pending !== undefined) this.#isAgain = true;
    else this.#nextAtMs = Math.min(this.#nextAtMs, nowMs);
  }

  /** The Lease is to be renewed at once where it does not say this. */
  reportSoon(report: string, nowMs: number): void {
    if (report !== (this.#pending?.report ?? this.#writtenReport)) this.renewSoon(nowMs);
  }

  /** Nothing is renewed from now on. */
  stop(): void {
    this.#isStopped = true;
  }

  get #periodMs(): number {
    return this.#isActive ? this.#times.renewEveryMs : idleRenewMs;
  }

  /** Milliseconds without seeing own renewals, after which the silence of other agents means nothing. */
  get #watchGapMs(): number {
    return 3 * this.#times.renewEveryMs;
  }

  #end(nowMs: number): PendingRenewal | undefined {
    const pending = this.#pending;
    this.#pending = undefined;
    const nextAtMs = (pending?.startedAtMs ?? nowMs) + this.#periodMs;
    this.#nextAtMs = this.#isAgain ? nowMs : Math.max(nowMs, nextAtMs);
    this.#isAgain = false;
    return pending;
  }

  /** Counts a renewal that is written and seen, in either order. */
  #count(): void {
    const seen = this.#unseen.get(this.#seenVersion);
    if (seen === undefined) return;
    this.fence.renewed(seen.renewal, seen.leaseSeconds);
    for (const [version, { renewal }] of this.#unseen) {
      if (renewal.sentAtMs <= seen.renewal.sentAtMs) this.#unseen.delete(version);
    }
  }

  #takeToken(nowMs: number): void {
    const gained = ((nowMs - this.#countedAtMs) * writesPerSecond) / 1000;
    this.#tokens = Math.min(burst, this.#tokens + gained) - 1;
    this.#countedAtMs = nowMs;
  }
}
