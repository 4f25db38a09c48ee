import { backoffDelay } from '../../runtime/backoff.ts';
import type { ObjectKey } from '../../objects/key.ts';
import type { Service } from '../../objects/core.generated.ts';
import { takenOut } from './present.ts';

/** Between writing back for the second time and for the third, and at most, in milliseconds. */
const limits = { base: 1000, max: 300_000 };

interface Contest {
  /** How often it was written back. */
  times: number;
  /** When it was written back last, in milliseconds since 1970. */
  at: number;
}

/** What to do with a Service whose addresses somebody took out of its status. */
export interface Verdict {
  /** Milliseconds before its addresses may be written back; 0 for now. */
  readonly rest: number;
  /** How often in a row they have been written back, this time included. */
  readonly times: number;
}

/**
 * Services whose addresses somebody else takes out of their status: another load balancer that serves the same ones,
 * most likely. Two that write over each other as fast as they can would keep the API server busy for ever, so each
 * time an address is written back later than the time before.
 */
export class Contests {
  readonly #contests = new Map<ObjectKey, Contest>();

  /** Judges a Service that is about to be written. Call it once for each write. */
  judge(key: ObjectKey, service: Service, now: number): Verdict {
    const contest = this.#contests.get(key);
    if (!takenOut(service)) return { rest: 0, times: 0 };
    if (contest === undefined) {
      this.#contests.set(key, { times: 1, at: now });
      return { rest: 0, times: 1 };
    }
    const delay = backoffDelay(contest.times - 1, limits, () => 0);
    const rest = contest.at + delay - now;
    if (rest > 0) return { rest, times: contest.times };
    // It stood for long: whoever took it out does so no more than that.
    contest.times = now - contest.at > PEACE * delay ? 1 : contest.times + 1;
    contest.at = now;
    return { rest: 0, times: contest.times };
  }

  forget(key: ObjectKey): void {
    this.#contests.delete(key);
  }
}

/** After so many delays without a quarrel one begins anew. */
const PEACE = 10;
