/**
 * What `servicenet up` with all its controllers takes of memory when it holds much:
 * `node test/bench/memory.ts [services] [pods] [flags of node]`, by default 10,000 Services and 50,000 Pods, which takes
 * some minutes. Pods are on a node that is not simulated; each is created and set to run, as a kubelet does. Awaited is
 * that every Pod is in an EndpointSlice.
 */
import { measureFilled } from './many-objects.ts';
import { report } from './report.ts';

const services = Number(process.argv[2] ?? 10_000);
const pods = Number(process.argv[3] ?? 50_000);

const filled = await measureFilled(services, pods, process.argv.slice(4));
await report('memory', [
  {
    name: `resident memory, ${services} Services and ${pods} Pods`,
    value: filled.memory,
    unit: 'MiB',
  },
  { name: 'the same after 15 s of rest', value: filled.rested, unit: 'MiB', budget: '≤ 900 MiB' },
  { name: 'highest resident memory', value: filled.highest, unit: 'MiB' },
  { name: 'processor time until settled', value: filled.cpuSeconds, unit: 's' },
]);
