/**
 * Runs the simulation of faults (faults/simulation.ts) for many seeds: `npm run simulate -- --seeds 2000`. Prints each
 * seed that fails, with what was wrong; `--first N` begins there, so that `--first N --seeds 1` runs one again, and
 * `--traces FOLDER` keeps every request, event and log line of a seed that fails. A run that is ended before its last
 * seed says how many it came to.
 */
import { parseArgs } from 'node:util';
import { simulateAll } from './faults/seeds.ts';
import { reportOf } from './faults/simulation.ts';
import { keepTrace } from './faults/trace.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '200' },
    first: { type: 'string', default: '1' },
    parallel: { type: 'string', default: '3' },
    traces: { type: 'string' },
  },
});
const { traces } = values;
const range = {
  first: Number(values.first),
  count: Number(values.seeds),
  parallel: Number(values.parallel),
};
const seen = { seeds: 0, failed: 0 };
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    process.stdout.write(`ended after ${seen.seeds} of ${range.count} seeds, ${seen.failed} failed\n`);
    process.exit(1);
  });
}
const total = await simulateAll(
  range,
  ({ outcome, lines }) => {
    seen.seeds++;
    if (outcome.findings.length === 0) return;
    seen.failed++;
    const report = reportOf(outcome);
    process.stdout.write(`${report}\n`);
    if (traces !== undefined) keepTrace(traces, outcome.seed, lines, report);
  },
  traces !== undefined,
);
const { user, system } = process.cpuUsage();
const faults = [...total.faults].sort().map(([name, times]) => `${times} ${name}`);
process.stdout.write(
  `${range.count} seeds, ${total.failed.length} failed, ${total.changes} changes, ${total.writes} writes of controllers, ` +
    `${(performance.now() / 1000).toFixed(1)} s, ${((user + system) / 1e6).toFixed(1)} s of CPU\n` +
    `faults: ${faults.join(', ')}\n`,
);
process.exitCode = total.failed.length === 0 ? 0 : 1;
