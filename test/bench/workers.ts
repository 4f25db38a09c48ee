/**
 * `--workers` of `servicenet dns` and `servicenet router`: two against one, in turns, each worker held to half a core by
 * a cgroup. `node test/bench/workers.ts [seconds [share of a core]]` as root, by default 4 and 0.5. On two cores
 * clients need more than one of them: 0.25 leaves them that. Needs dnsperf. All traffic stays in a
 * network namespace of its own.
 */
import { makeGroup } from './cgroups.ts';
import { isInside, podAddress, runInside } from './own-network.ts';
import { report, type Row } from './report.ts';
import { compareWorkers, type WorkersCompared, type WorkersLoad } from './workers-compared.ts';

const rounds = 3;
const [seconds = 4, share = 0.5] = process.argv.slice(2).map(Number);

if (!isInside()) runInside([podAddress]);
const clients = await makeGroup(`clients-${process.pid}`);
try {
  await clients.add(process.pid);
  const results = await compareWorkers({ rounds, seconds, share });
  await report(
    'workers',
    Object.entries(results).flatMap(([command, compared]) => rowsOf(command, compared)),
  );
} finally {
  await clients.remove();
}

function rowsOf(command: string, { one, two }: WorkersCompared): Row[] {
  const ratio = (member: keyof WorkersLoad): number => two[member] / one[member];
  const what = command === 'dns' ? 'queries' : 'requests';
  return [
    { name: `${command}: ${what}, one worker`, value: one.perSecond, unit: '/s' },
    { name: `${command}: ${what}, two workers`, value: two.perSecond, unit: '/s' },
    { name: `${command}: two by one`, value: ratio('perSecond'), unit: '', budget: '≥ 1.6' },
    { name: `${command}: ${what} for each second of CPU, one`, value: one.perCpuSecond, unit: '/s' },
    { name: `${command}: ${what} for each second of CPU, two`, value: two.perCpuSecond, unit: '/s' },
    { name: `${command}: the same, two by one`, value: ratio('perCpuSecond'), unit: '', budget: '≥ 0.9' },
    { name: `${command}: PSS of each of two workers then`, value: two.pss, unit: 'MiB' },
  ];
}
