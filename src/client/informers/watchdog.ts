import type { Clock, Timer } from '../clock.ts';

/** Aborts a request when {@link feed} is not called in time, or when the outer signal aborts. */
export class Watchdog {
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal;
  readonly #onAbort = (): void => this.#controller.abort();
  #timer: Timer | undefined;
  #fedAt = 0;
  #limit = 0;
  #starved = false;

  constructor(clock: Clock, outer: AbortSignal) {
    this.#clock = clock;
    this.#outer = outer;
    if (outer.aborted) this.#controller.abort();
    else outer.addEventListener('abort', this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** True when the watchdog ended the request. */
  get starved(): boolean {
    return this.#starved;
  }

  /** Restarts the time limit, in milliseconds. */
  feed(limit: number): void {
    this.#fedAt = this.#clock.monotonic();
    // One timer per limit, not per chunk: when it fires it checks the time of the last sign of life.
    if (limit === this.#limit) return;
    this.#limit = limit;
    this.#timer?.cancel();
    this.#wait(limit);
  }

  end(): void {
    this.#timer?.cancel();
    this.#outer.removeEventListener('abort', this.#onAbort);
  }

  #wait(milliseconds: number): void {
    this.#timer = this.#clock.after(milliseconds, () => {
      const left = this.#fedAt + this.#limit - this.#clock.monotonic();
      if (left > 0) {
        this.#wait(left);
        return;
      }
      this.#starved = true;
      this.#controller.abort();
    });
  }
}
