/**
 * Measures how long callbacks hold the event loop of this thread, in CPU time: what other processes take of the machine
 * does not count.
 */
export class TurnWatchdog {
  /** Milliseconds between two looks; a turn is measured too large by no more than this. */
  static readonly interval = 5;
  #longest = 0;
  #before = cpuTime();
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = setInterval(() => this.#look(), TurnWatchdog.interval).unref();
  }

  /** Milliseconds of CPU of the longest turn since the last call. */
  longest(): number {
    this.#look();
    const longest = this.#longest;
    this.#longest = 0;
    return longest;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** A timer fires at most once in each turn of the loop, so no two turns are added up. */
  #look(): void {
    const now = cpuTime();
    this.#longest = Math.max(this.#longest, now - this.#before);
    this.#before = now;
  }
}

/** Milliseconds of CPU that this thread has taken. */
function cpuTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
