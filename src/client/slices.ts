import { setImmediate } from 'node:timers/promises';

/** Milliseconds of work between two looks at other work: far below the 50 ms that a loop may be held up. */
const sliceLength = 10;

/** Cuts long synchronous work into slices, so that lease renewals and answers are never late because of a big list. */
export class TimeSlices {
  #began = performance.now();

  /** Resolves at once within a slice, and after other work had its turn at the end of one. */
  async pause(): Promise<void> {
    await setImmediate();
    this.#began = performance.now();
  }

  /** True when it is time for {@link pause}. */
  get due(): boolean {
    return performance.now() - this.#began > sliceLength;
  }
}
