import { setImmediate } from 'node:timers/promises';

/** Milliseconds of work before yielding to the event loop. */
const sliceLength = 10;

/** Cuts long synchronous work into slices, so that lease renewals and answers are not delayed by a long list. */
export class TimeSlices {
  #began = performance.now();

  /** Resolves at once within a slice, and after a turn of the event loop at its end. */
  async pause(): Promise<void> {
    await setImmediate();
    this.#began = performance.now();
  }

  /** True when {@link pause} is due. */
  get due(): boolean {
    return performance.now() - this.#began > sliceLength;
  }
}
