import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds that the first question has to be answered. */
const firstTimeout = 100;
/** The same for the second one: a client's, whose SYN may be lost once, and is sent again after 1 s. */
const clientTimeout = 3000;
/**
 * Milliseconds for a second question that is about to measure a gap: a lost SYN is sent again after 1 s, and would be
 * answered up to so much later than the address is there (RFC 6298).
 */
export const gapTimeout = 250;

/** An answer: when, and the name of who gave it. */
interface Answer {
  readonly at: number;
  readonly by: string;
}

/** Asks once. @returns a name in the answer; undefined: none came within the milliseconds. */
export type Question = (timeout: number) => Promise<string | undefined>;

/**
 * What a client saw of an address over some time: it asks every 20 ms. Beside it, it asks an address that nothing happens
 * to: what that one is silent for is the machine's own load.
 */
export class AddressWatch {
  readonly #asking: Promise<void>;
  readonly #secondTimeout: number;
  readonly #answers: Answer[] = [];
  readonly #besides: Answer[] = [];
  #isOver = false;
  /** Questions that were not answered, and neither when they were asked again at once. */
  failedTwice = 0;

  /** @param secondTimeout milliseconds that a question has which is asked again, and the one beside. */
  constructor(question: Question, beside: Question, secondTimeout: number = clientTimeout) {
    this.#secondTimeout = secondTimeout;
    this.#asking = Promise.all([this.#ask(question), this.#askBeside(beside)]).then(() => undefined);
  }

  /** The names of those that answered, in order, each once in a row. */
  get owners(): readonly string[] {
    return this.#answers.map(({ by }) => by).filter((by, index, all) => all[index - 1] !== by);
  }

  /** How long it has watched. */
  get seconds(): number {
    return ((this.#answers.at(-1)?.at ?? 0) - (this.#answers[0]?.at ?? 0)) / 1000;
  }

  /** Milliseconds of the longest time between two answers, without what the machine was late by itself. */
  get gap(): number {
    return Math.max(0, longestPause(this.#answers) - longestPause(this.#besides));
  }

  /** Ends it. */
  async stop(): Promise<this> {
    this.#isOver = true;
    await this.#asking;
    return this;
  }

  async #ask(question: Question): Promise<void> {
    while (!this.#isOver) {
      if (
        !(await this.#askOnce(question, firstTimeout, this.#answers)) &&
        !(await this.#askOnce(question, this.#secondTimeout, this.#answers))
      ) {
        this.failedTwice++;
      }
      await sleep(20);
    }
  }

  async #askBeside(question: Question): Promise<void> {
    while (!this.#isOver) {
      await this.#askOnce(question, this.#secondTimeout, this.#besides);
      await sleep(20);
    }
  }

  async #askOnce(question: Question, timeout: number, answers: Answer[]): Promise<boolean> {
    const by = await question(timeout);
    if (by === undefined) return false;
    answers.push({ at: performance.now(), by });
    return true;
  }
}

function longestPause(answers: readonly Answer[]): number {
  return answers.reduce(
    (longest, { at }, index) => Math.max(longest, at - (answers[index - 1]?.at ?? at)),
    0,
  );
}
