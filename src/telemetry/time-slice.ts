import { setImmediate } from 'node:timers/promises';

/** Milliseconds of work after which other requests get a turn. */
const maxMs = 20;

/** Long work in slices: what is asked for thousands of objects must not hold the event loop. */
export class TimeSlice {
  #begin = performance.now();

  /** True when it is time to {@link yield}. */
  get isOver(): boolean {
    return performance.now() - this.#begin > maxMs;
  }

  /**
   * Lets the event loop turn, and begins the next slice. Behind a callback of I/O, the first wait ends before timers and
   * other I/O have had their turn.
   */
  async yield(): Promise<void> {
    await setImmediate();
    await setImmediate();
    this.#begin = performance.now();
  }
}

/** Runs work in slices that are cut where it yields: at once when it takes no longer than one. */
export function runInSlices<T>(work: Generator<undefined, T, undefined>): T | Promise<T> {
  const slice = new TimeSlice();
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
    if (slice.isOver) return slice.yield().then(() => runInSlices(work));
  }
}

/** All that a generator makes, in slices. */
export async function inSlices<T>(made: Iterable<T>): Promise<T[]> {
  const slice = new TimeSlice();
  const all: T[] = [];
  for (const each of made) {
    all.push(each);
    if (slice.isOver) await slice.yield();
  }
  return all;
}

/** Maps a long list in slices. */
export async function mapInSlices<T, U>(list: readonly T[], map: (item: T) => U): Promise<U[]> {
  return await inSlices(mapped(list, map));
}

function* mapped<T, U>(list: readonly T[], map: (item: T) => U): Generator<U> {
  for (const item of list) yield map(item);
}

/** Milliseconds of work before yielding to the event loop. */
const sliceMs = 10;

/** Cuts long synchronous work into slices, so that lease renewals and answers are not delayed by a long list. */
export class TimeSlices {
  #began = performance.now();

  /** Resolves at once within a slice, and after a turn of the event loop at its end. */
  async yield(): Promise<void> {
    await setImmediate();
    this.#began = performance.now();
  }

  /** True when {@link yield} is due. */
  get due(): boolean {
    return performance.now() - this.#began > sliceMs;
  }
}
