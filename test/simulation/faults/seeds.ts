import { type Outcome, simulate } from './simulation.ts';

/** What many seeds came to. */
export interface Total {
  readonly failed: readonly Outcome[];
  readonly changes: number;
  readonly writes: number;
  /** What was done to the controllers, by name, and how often. */
  readonly faults: ReadonlyMap<string, number>;
}

/** Which seeds to run. */
export interface SeedRange {
  readonly first: number;
  readonly count: number;
  /** At once: a simulation mostly waits. */
  readonly parallel: number;
}

/** How a seed went, and all that happened, a line each, if a trace is wanted. */
export interface Heard {
  readonly outcome: Outcome;
  readonly lines: readonly string[];
}

/**
 * Simulates every seed of a range.
 *
 * @param heard called with each outcome as it comes.
 * @param traced whether the outcomes carry all that happened.
 */
export async function simulateAll(
  { first, count, parallel }: SeedRange,
  heard: (heard: Heard) => void = () => undefined,
  traced = false,
): Promise<Total> {
  const outcomes: Outcome[] = [];
  let next = first;
  const work = async (): Promise<void> => {
    while (next < first + count) {
      const lines: string[] = [];
      const trace = (line: string): number => lines.push(`${performance.now().toFixed(0)} ${line.trimEnd()}`);
      const outcome = await simulate(next++, traced ? trace : undefined);
      outcomes.push(outcome);
      heard({ outcome, lines });
    }
  };
  await Promise.all(Array.from({ length: parallel }, work));
  const faults = new Map<string, number>();
  for (const outcome of outcomes) {
    for (const [name, times] of outcome.faults) faults.set(name, (faults.get(name) ?? 0) + times);
  }
  return {
    failed: outcomes.filter(({ findings }) => findings.length > 0),
    changes: outcomes.reduce((sum, { changes }) => sum + changes, 0),
    writes: outcomes.reduce((sum, { writes }) => sum + writes, 0),
    faults,
  };
}
