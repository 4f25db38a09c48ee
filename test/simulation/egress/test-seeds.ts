import { expect, test } from 'vitest';
import { simulateEgress } from './simulation.ts';

const steps = 60;

/** One test for each seed. */
export function testEgressSeeds(first: number, count: number): void {
  test.each(Array.from({ length: count }, (_, n) => first + n))(
    'nodes come and go while EgressIPs move: no address is ever on two nodes, no object twice on one, seed %i',
    async (seed) => {
      const { wrong, changes } = await simulateEgress(seed, steps);
      expect(wrong).toEqual([]);
      // Something has happened.
      expect(changes).toBeGreaterThan(3);
    },
    180_000,
  );
}
