import { slowness, threadMs } from '../reference-time.ts';

/**
 * Measures how long callbacks hold the event loop of this thread, in CPU time: what other processes take of the machine
 * does not count.
 */
export class TurnWatchdog {
  /** Milliseconds between two looks; a turn is measured too large by no more than this. */
  static readonly interval = 5;
  /** Milliseconds of a turn that no test objects to, on the slowest machine: how slow this one is does not matter then. */
  static readonly #short = 50;
  #longest = 0;
  #before = threadMs();
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = setInterval(() => this.#look(), TurnWatchdog.interval).unref();
  }

  /** Milliseconds of CPU that the longest turn since the last call takes on the reference machine. */
  longest(): number {
    this.#look();
    const longest = this.#longest < TurnWatchdog.#short ? this.#longest : this.#longest / slowness();
    this.#longest = 0;
    this.#before = threadMs();
    return longest;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** A timer fires at most once in each turn of the loop, so no two turns are added up. */
  #look(): void {
    const now = threadMs();
    this.#longest = Math.max(this.#longest, now - this.#before);
    this.#before = now;
  }
}
