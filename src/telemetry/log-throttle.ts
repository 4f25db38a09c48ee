/** Limits repeated log lines: each text is due the first time, then once per interval. */
export class LogThrottle {
  readonly #monotonic: () => number;
  readonly #interval: number;
  readonly #lastLogged = new Map<string, number>();

  /**
   * @param monotonic a clock in milliseconds that never goes back.
   * @param intervalMs milliseconds between two lines of the same text.
   */
  constructor(monotonic: () => number, intervalMs = 60_000) {
    this.#monotonic = monotonic;
    this.#interval = intervalMs;
  }

  /** True when the text may be logged now; it then counts as logged. */
  isDue(text: string): boolean {
    const now = this.#monotonic();
    const before = this.#lastLogged.get(text);
    if (before !== undefined && now - before < this.#interval) return false;
    this.#lastLogged.set(text, now);
    return true;
  }
}
