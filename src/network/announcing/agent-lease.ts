import { Fence, leaseSecondsFor, type LeaseTimes, type Renewal, takeOverAfterMs } from './fence.ts';
import { type Announcer, planAnnouncement } from './announcement-plan.ts';
import type { KeptAddresses } from './agent-report.ts';
import { secondsLeft } from './handover.ts';
import { othersWith, type Situation } from './layer2-ownership.ts';

/** The Lease of an agent: its renewals while the agent runs, and its release at the end. */

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

/** Milliseconds that an orderly end waits until others have taken over. */
const leaveWithinMs = 5000;

/** Milliseconds between two looks at what others announce. */
const lookEveryMs = 50;

/** What an agent knows while it ends. */
interface LeavingSituation extends Situation {
  /** The other nodes that announce. */
  readonly announcers: readonly Announcer[];
  /** Whether no other agent can have taken addresses: the Lease names none, as it is written and as it was seen. */
  readonly isAlone: boolean;
  /** Whether a renewal is on its way: no other write may overtake it. */
  readonly isWriting: boolean;
}

/** The next action of an agent that ends. */
type LeavingStep =
  /** Let all addresses live on without refreshes. */
  | { readonly do: 'stay'; readonly seconds: number }
  /** Release the Lease. {@link AgentLeaving.kept} is to be in its report. */
  | { readonly do: 'release' }
  | { readonly do: 'wait'; readonly untilMs: number }
  | { readonly do: 'end'; readonly addresses: ReadonlySet<string>; readonly seconds: number };

/**
 * The orderly end of an agent: it releases its Lease, so that others take over at once, and waits for them. Addresses that no
 * other node can announce stay for `restartGraceSeconds`, which the Lease says: an agent that has not seen it
 * cannot begin to announce them. Times are milliseconds of a monotonic clock.
 */
export class AgentLeaving {
  readonly #restartGraceSeconds: number;
  readonly #startedAtMs: number;
  #phase: 'begun' | 'deciding' | 'releasing' | 'released' | 'failed' = 'begun';
  #kept: readonly string[] = [];
  /** Before and after the last write of the Lease. */
  #releasingAtMs: number;
  #releasedAtMs: number | undefined;

  constructor(restartGraceSeconds: number, nowMs: number) {
    this.#restartGraceSeconds = restartGraceSeconds;
    this.#startedAtMs = nowMs;
    this.#releasingAtMs = nowMs;
  }

  /** The addresses that this agent leaves in the kernel at its end, by its Lease. */
  get kept(): KeptAddresses | undefined {
    if (this.#kept.length === 0) return undefined;
    return { addresses: this.#kept, seconds: this.#restartGraceSeconds };
  }

  /** The Lease is released, or could not be. */
  released(isDone: boolean): void {
    this.#phase = isDone ? 'released' : 'failed';
  }

  /** To be called when the step before has ended, and again when something has changed or the wait is over. */
  next(situation: LeavingSituation, nowMs: number): LeavingStep {
    const { isAlone } = situation;
    if (this.#phase === 'begun') {
      this.#phase = 'deciding';
      if (isAlone) return this.#stay(nowMs);
    }
    if (this.#phase === 'failed') {
      // As long as the Lease is held, only agents that it names can take over.
      if (!isAlone) this.#kept = [];
      return this.#end(situation, nowMs);
    }
    if (this.#phase === 'released') {
      this.#phase = 'deciding';
      const isFirst = this.#releasedAtMs === undefined;
      this.#releasedAtMs = nowMs;
      if (isFirst && !isAlone) return this.#stay(nowMs);
    }
    const { orphans, isTaken } = succession(situation, this.#kept);
    const keeps = this.#restartGraceSeconds > 0 ? orphans : [];
    if (this.#releasedAtMs === undefined || keeps.length > this.#kept.length) {
      if (situation.isWriting) return { do: 'wait', untilMs: Number.POSITIVE_INFINITY };
      this.#kept = keeps;
      this.#releasingAtMs = nowMs;
      if (situation.kernel.announced.size > 0) {
        this.#phase = 'releasing';
        return { do: 'release' };
      }
      this.#releasedAtMs = nowMs;
    }
    const isHeard = this.#kept.length === 0 || isAlone || nowMs >= this.#releasedAtMs + takeOverAfterMs;
    const isLate = nowMs >= this.#startedAtMs + leaveWithinMs;
    if (isLate && !isHeard) this.#kept = [];
    if (isLate || (isTaken && isHeard)) return this.#end(situation, nowMs);
    return { do: 'wait', untilMs: nowMs + lookEveryMs };
  }

  /** For longer than all of this takes. Others that can release the Lease do so after less. */
  #stay(nowMs: number): LeavingStep {
    return { do: 'stay', seconds: secondsLeft(leaveWithinMs / 1000 + 1, this.#startedAtMs, nowMs) };
  }

  #end(situation: Situation, nowMs: number): LeavingStep {
    const left = this.#kept.filter((address) => othersWithMember(situation, address).length === 0);
    const seconds = secondsLeft(this.#restartGraceSeconds, this.#releasingAtMs, nowMs);
    return { do: 'end', addresses: new Set(left), seconds };
  }
}

/**
 * What happens to the addresses of this node: which stay because no other node takes them, and whether others have
 * the rest.
 *
 * @param kept the addresses that stay by the Lease: no other agent begins to announce them.
 */
function succession(
  situation: LeavingSituation,
  kept: readonly string[],
): { readonly orphans: readonly string[]; readonly isTaken: boolean } {
  const { announcers, kernel, view } = situation;
  const orphans: string[] = [];
  let isTaken = true;
  for (const assigned of view.addresses.values()) {
    const { address } = assigned;
    if (!kernel.announced.has(address) || othersWithMember(situation, address).length > 0) continue;
    const isOrphan = kept.includes(address) || planAnnouncement(assigned, announcers).layer2 === undefined;
    if (isOrphan) orphans.push(address);
    else isTaken = false;
  }
  return { orphans, isTaken };
}

/** The other agents that announce an address, renew their Leases, and have not released them. */
function othersWithMember(situation: Situation, address: string): readonly string[] {
  return othersWith(situation, address).filter((node) => situation.members.has(node));
}
