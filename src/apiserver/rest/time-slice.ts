import { setImmediate } from 'node:timers/promises';

/** Milliseconds of work after which other requests get a turn. */
const maxMs = 20;

/** Long work in slices: what is asked for thousands of objects must not hold the event loop. */
export class TimeSlice {
  #begin = performance.now();

  /** True when it is time to {@link giveWay}. */
  get isOver(): boolean {
    return performance.now() - this.#begin > maxMs;
  }

  /** Lets the event loop turn, and begins the next slice. */
  async giveWay(): Promise<void> {
    await setImmediate();
    this.#begin = performance.now();
  }
}

/** Maps a long list in slices. */
export async function mapInSlices<T, U>(list: readonly T[], map: (item: T) => U): Promise<U[]> {
  const slice = new TimeSlice();
  const mapped: U[] = [];
  for (const item of list) {
    mapped.push(map(item));
    if (slice.isOver) await slice.giveWay();
  }
  return mapped;
}
