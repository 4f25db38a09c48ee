import { setImmediate as nextImmediate } from 'node:timers/promises';

/** Milliseconds of work after which other requests get a turn. */
const maxMs = 20;
/** Milliseconds that a request always has: short ones do not wait behind long ones. */
const leastMs = 2;

/** When work began in the present turn of the event loop; undefined: in this one, none has. */
let turnBeganMs: number | undefined;
/** What waits for a turn of its own, the first first. */
const waiting: (() => void)[] = [];

/** True when the work of all requests in this turn has taken its time. */
function isTurnOver(): boolean {
  const now = performance.now();
  if (turnBeganMs === undefined) {
    turnBeganMs = now;
    endTurn();
  }
  return now - turnBeganMs > maxMs;
}

function endTurn(): void {
  setImmediate(() => (turnBeganMs = undefined));
}

/**
 * Resolves in a later turn of the event loop, as many callers in each as its time allows: however many requests wait, others
 * are read and answered between two slices.
 */
async function nextTurn(): Promise<void> {
  const turn = Promise.withResolvers<undefined>();
  waiting.push(() => turn.resolve(undefined));
  if (!isTurnScheduled) scheduleTurn();
  await turn.promise;
}

let isTurnScheduled = false;

/** Behind a callback of I/O, the first immediate comes before timers and other I/O have had their turn. */
function scheduleTurn(): void {
  isTurnScheduled = true;
  setImmediate(() => {
    // What one has resolved goes on before the next one looks at the time.
    waiting.forEach((_, n) => {
      setImmediate(() => {
        if (n === 0) turnBeganMs = performance.now();
        if (n === 0 || !isTurnOver()) waiting.shift()?.();
      });
    });
    setImmediate(() => {
      turnBeganMs = undefined;
      isTurnScheduled = false;
      if (waiting.length > 0) scheduleTurn();
    });
  });
}

/** Before work that takes long and cannot be cut, as parsing a large body: waits where this turn has had its time. */
export async function turnForLongWork(): Promise<void> {
  if (isTurnOver()) await nextTurn();
}

/** Long work in slices: what is asked for thousands of objects must not hold the event loop. */
export class TimeSlice {
  #begin = performance.now();

  /** True when it is time to {@link yield}. */
  get isOver(): boolean {
    const ownMs = performance.now() - this.#begin;
    return ownMs > maxMs || (ownMs > leastMs && isTurnOver());
  }

  /** Lets the event loop turn, and begins the next slice. */
  async yield(): Promise<void> {
    await nextTurn();
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
    await nextImmediate();
    this.#began = performance.now();
  }

  /** True when {@link yield} is due. */
  get due(): boolean {
    return performance.now() - this.#began > sliceMs;
  }
}
