import { isRecord } from '../../../src/objects/json.ts';
import type { FastClock } from './fast-clock.ts';
import type { Choices } from './random.ts';

/** Milliseconds by which copies are late: some a little, some as much as they can be. */
const lateness = { some: 80, most: 2000 };

/** What a server said to a request. */
interface Answer {
  readonly code: number;
  readonly told: string;
}

/** A request that was answered, and arrives once more. */
interface Sent {
  readonly method: string;
  /** For people. */
  readonly what: string;
  readonly first: Answer;
  /** Made from what was there: Events count on, whatever was there. */
  readonly isConditional: boolean;
}

/** Requests that arrive a second time, when the world is another one. */
export class LateCopies {
  /** Updates and deletions that were done again, though the object was another one by then. */
  readonly doneAgain: string[] = [];
  readonly #choices: Choices;
  readonly #clock: FastClock;
  readonly #due = new AbortController();
  readonly #underWay = new Set<Promise<void>>();

  constructor(choices: Choices, clock: FastClock) {
    this.#choices = choices;
    this.#clock = clock;
  }

  /** Sends a request again, after a while or when all have to arrive. */
  send(sent: Sent, again: () => Promise<Answer>): void {
    const copy = this.#send(sent, again)
      // The server may be away by then.
      .catch(() => undefined)
      .finally(() => this.#underWay.delete(copy));
    this.#underWay.add(copy);
  }

  /** Whatever is under way arrives now. */
  async arrive(): Promise<void> {
    this.#due.abort();
    await Promise.all(this.#underWay);
  }

  async #send({ method, what, first, isConditional }: Sent, again: () => Promise<Answer>): Promise<void> {
    const longest = this.#choices.chance(0.4) ? lateness.some : lateness.most;
    await this.#clock.pause(this.#choices.below(longest), this.#due.signal);
    const last = await again();
    // A second object of a name is refused; where the server makes up names, there is one too many, and it goes.
    if (!isConditional || method === 'POST' || first.code >= 300 || last.code >= 300) return;
    const [before, after] = [subjectOf(first), subjectOf(last)];
    // An update is made from a version, a deletion of an object: of another one they must not be true.
    const isSame = method === 'DELETE' ? before.uid === after.uid : before.version === after.version;
    if (!isSame) this.doneAgain.push(`${what}: a late copy of it was done again`);
  }
}

/** Which object an answer is about, and its version; a deletion may be answered by a Status, which has only the uid. */
function subjectOf({ told }: Answer): { uid: unknown; version: unknown } {
  const parsed: unknown = JSON.parse(told);
  const { metadata, details } = isRecord(parsed) ? parsed : {};
  const { uid, resourceVersion } = isRecord(metadata) ? metadata : {};
  return { uid: uid ?? (isRecord(details) ? details['uid'] : undefined), version: resourceVersion };
}
