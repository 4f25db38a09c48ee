import type { Clock, Timer } from '../../client/clock.ts';

/** A sleep that can be ended. */
export class Alarm {
  readonly #clock: Clock;
  #hasRung = false;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends the sleep, or the next one before it begins. */
  ring(): void {
    this.#hasRung = true;
    this.#wake?.();
  }

  /** Resolves after so many milliseconds, or when the alarm rings. One call at a time. */
  async sleep(milliseconds: number): Promise<void> {
    if (!this.#hasRung && milliseconds > 0) {
      let timer: Timer | undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        timer = this.#clock.after(milliseconds, resolve);
      });
      timer?.cancel();
      this.#wake = undefined;
    }
    this.#hasRung = false;
  }
}
