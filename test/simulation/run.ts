/**
 * Runs the simulation of faults (faults/simulation.ts) for many seeds: `npm run simulate -- --seeds 2000`. Prints each
 * seed that fails, with what was wrong; `--first N` begins there, so that `--first N --seeds 1` runs one again.
 */
import { parseArgs } from 'node:util';
import { simulate } from './faults/simulation.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '200' },
    first: { type: 'string', default: '1' },
    parallel: { type: 'string', default: '2' },
  },
});
const first = Number(values.first);
const last = first + Number(values.seeds) - 1;
let next = first;
let failed = 0;
let writes = 0;
let changes = 0;
const started = performance.now();

async function work(): Promise<void> {
  while (next <= last) {
    const outcome = await simulate(next++);
    writes += outcome.writes;
    changes += outcome.changes;
    if (outcome.findings.length === 0) continue;
    failed++;
    process.stdout.write(
      `seed ${outcome.seed} failed:\n${outcome.findings
        .slice(0, 8)
        .map((line) => `  ${line}\n`)
        .join('')}`,
    );
  }
}

await Promise.all(Array.from({ length: Number(values.parallel) }, work));
const seconds = ((performance.now() - started) / 1000).toFixed(1);
process.stdout.write(
  `${last - first + 1} seeds, ${failed} failed, ${changes} changes, ${writes} writes of controllers, ${seconds} s\n`,
);
process.exitCode = failed === 0 ? 0 : 1;
