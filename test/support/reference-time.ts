/**
 * Times as the machine would take them on which the budgets of the tests were set: no test judges a time of the machine
 * that it happens to run on. That machine had two cores of an AMD EPYC, and nothing else to do.
 */

/** Milliseconds of CPU that {@link fixedWork} takes there. */
const fixedWorkMs = 20;

const fixedText = JSON.stringify(
  Array.from({ length: 400 }, (_, n) => ({
    metadata: { name: `object-${n}`, labels: { a: 'b' } },
    spec: { ports: [{ port: n, name: 'x'.repeat(n % 40) }] },
  })),
);

/** Work of the kinds that servers do: texts, objects, maps, patterns and garbage. */
function fixedWork(): void {
  for (let round = 0; round < 20; round++) {
    const values: unknown = JSON.parse(fixedText);
    const byText = new Map(
      Array.isArray(values) ? values.map((value) => [JSON.stringify(value), value]) : [],
    );
    for (const text of [...byText.keys()].sort()) text.replaceAll(/object-(\d+)/g, 'o$1');
  }
}

/** Milliseconds of CPU of this thread, as the kernel counts them. */
export function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/**
 * How many times as much CPU as there a piece of work takes here and now: more on a slower machine, and on one whose
 * cores and caches others use, too. Never less than 1.
 */
export function slowness(): number {
  const before = threadMs();
  fixedWork();
  return Math.max(1, (threadMs() - before) / fixedWorkMs);
}

/** Milliseconds of CPU that this thread takes for the work. */
export function cpuMs(work: () => void): number {
  const slownessBefore = slowness();
  const before = threadMs();
  work();
  const taken = threadMs() - before;
  return taken / Math.max(slownessBefore, slowness());
}

/**
 * Milliseconds in which this process went on: what it was held up counts as one tick, since then others were, too.
 */
export class Stopwatch {
  static readonly #tickMs = 5;
  #ticks = 0;
  readonly #slowness = slowness();
  readonly #timer = setInterval(() => this.#ticks++, Stopwatch.#tickMs).unref();

  /** Stops it. */
  elapsedMs(): number {
    clearInterval(this.#timer);
    return (this.#ticks * Stopwatch.#tickMs) / Math.max(this.#slowness, slowness());
  }
}
