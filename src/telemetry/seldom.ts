/** Lets what would be said again and again be said now and then: the first time, then once in a while. */
export class Seldom {
  readonly #monotonic: () => number;
  readonly #pause: number;
  readonly #said = new Map<string, number>();

  /**
   * @param monotonic milliseconds that only grow.
   * @param pause milliseconds between two times that the same is said.
   */
  constructor(monotonic: () => number, pause = 60_000) {
    this.#monotonic = monotonic;
    this.#pause = pause;
  }

  /** Whether it is time to say it; then it counts as said. */
  isDue(what: string): boolean {
    const now = this.#monotonic();
    const before = this.#said.get(what);
    if (before !== undefined && now - before < this.#pause) return false;
    this.#said.set(what, now);
    return true;
  }
}
