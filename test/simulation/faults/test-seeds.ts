import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Heard, simulateAll, type Total } from './seeds.ts';
import { reportOf } from './simulation.ts';
import { keepTrace } from './trace.ts';

/** Seeds in a test. */
const chunk = 10;

/** What the network and the world can do; each of it happens in a hundred seeds. */
const kinds = [
  ...['409', '410', '429', '500', '503', '410 in a watch'],
  ...['drop', 'lose-answer', 'cut in an answer', 'cut in a watch', 'twice', 'late-copy', 'overtaken'],
  ...['put off by the server', 'server away', 'restart of the server', 'crash', 'stop', 'hand-over, unheard'],
  ...[
    'a leader stopped for a while',
    'a follower stopped for a while',
    'a leader cut off',
    'a follower cut off',
    'news come late',
    'a wall clock was set',
  ],
];

/** Where all that happened in a seed that failed is kept. */
const traces = join(tmpdir(), 'servicenet-simulation');

/** Simulates seeds; one that fails is a failure, which names the seed, its trace and the command that repeats it. */
export function testSeeds(first: number, count: number): void {
  describe('controllers behind a hostile network', () => {
    const totals: Total[] = [];
    const starts = Array.from({ length: Math.ceil(count / chunk) }, (_, i) => first + i * chunk);

    test.each(starts)(
      'seed %i and those after it come to what the planners say',
      async (start) => {
        const reports: string[] = [];
        const keep = ({ outcome, lines }: Heard): void => {
          if (outcome.findings.length === 0) return;
          const report = reportOf(outcome);
          reports.push(`${report}\n  trace: ${keepTrace(traces, outcome.seed, lines, report)}`);
        };
        const range = { first: start, count: Math.min(chunk, first + count - start), parallel: 3 };
        totals.push(await simulateAll(range, keep, true));
        expect(reports.join('\n')).toBe('');
      },
      600_000,
    );

    // Fewer seeds do not meet all of it.
    if (count < 100) return;
    test('nothing that can go wrong was left out', () => {
      const counts = kinds.map((kind) =>
        totals.reduce((sum, { faults }) => sum + (faults.get(kind) ?? 0), 0),
      );
      expect(kinds.filter((_, i) => counts[i] === 0)).toEqual([]);
    });
  });
}
