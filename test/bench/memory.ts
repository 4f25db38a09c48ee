/**
 * What `servicenet up` with all its controllers takes of memory when it holds much:
 * `node test/bench/memory.ts [services] [pods] [flags of node]`, by default 10,000 Services and 50,000 Pods, which takes
 * some minutes. Pods are on a node that is not simulated; each is created and set to run, as a kubelet does. Awaited is
 * that every Pod is in an EndpointSlice.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from './connection.ts';
import { fillCluster } from './many-objects.ts';
import { report } from './report.ts';
import { ServerProcess } from './server-process.ts';

const services = Number(process.argv[2] ?? 10_000);
const pods = Number(process.argv[3] ?? 50_000);
const concurrency = 16;
/** Milliseconds in which freed memory goes back to the system (`host/freed-memory.ts`). */
const restMs = 15_000;

const network = ['--service-cluster-ip-range', '10.0.0.0/12'];
const server = await ServerProcess.start([...network, '--log-level', 'error'], process.argv.slice(4));
try {
  const connections = await Promise.all(
    Array.from({ length: concurrency }, async () => Connection.open(server.target)),
  );
  await fillCluster(connections, services, pods);
  const processor = await server.cpu();
  const highest = await server.highestMiB();
  const memory = await server.residentMiB();
  await sleep(restMs);
  const rested = await server.residentMiB();
  for (const connection of connections) connection.close();
  await report('memory', [
    {
      name: `resident memory, ${services} Services and ${pods} Pods`,
      value: memory,
      unit: 'MiB',
    },
    { name: 'the same after 15 s of rest', value: rested, unit: 'MiB', budget: '≤ 900 MiB' },
    { name: 'highest resident memory', value: highest, unit: 'MiB' },
    { name: 'processor time until settled', value: processor / 1e6, unit: 's' },
  ]);
} finally {
  await server.stop();
}
