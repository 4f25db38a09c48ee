import { type Outcome, simulate } from './simulation.ts';
import type { Trace } from './trace.ts';

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

/** Simulates every seed of a range. @param heard is told of each outcome as it comes. */
export async function simulateAll(
  { first, count, parallel }: SeedRange,
  heard: (outcome: Outcome) => void = () => undefined,
  trace?: Trace,
): Promise<Total> {
  const outcomes: Outcome[] = [];
  let next = first;
  const work = async (): Promise<void> => {
    while (next < first + count) {
      const outcome = await simulate(next++, trace);
      outcomes.push(outcome);
      heard(outcome);
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
