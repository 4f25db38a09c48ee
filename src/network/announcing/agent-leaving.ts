import { type Announcer, planAnnouncement } from './announcement-plan.ts';
import type { KeptAddresses } from './agent-report.ts';
import { takeOverAfterMs } from './fence.ts';
import { secondsLeft } from './handover.ts';
import { othersWith, type Situation } from './layer2-ownership.ts';

/** Milliseconds that an orderly end waits until others have taken over. */
const leaveWithinMs = 5000;

/** Milliseconds between two looks at what others announce. */
const lookEveryMs = 50;

/** What an agent knows while it ends. */
export interface LeavingSituation extends Situation {
  /** The other nodes that announce. */
  readonly announcers: readonly Announcer[];
  /** Whether no other agent can have taken addresses: the Lease names none, as it is written and as it was seen. */
  readonly isAlone: boolean;
  /** Whether a renewal is on its way: no other write may overtake it. */
  readonly isWriting: boolean;
}

/** The next action of an agent that ends. */
export type LeavingStep =
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
