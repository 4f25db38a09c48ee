/**
 * How fast simulated workloads settle: `node test/bench/workloads.ts [pods] [nodes] [flags of node]`. `servicenet up`
 * runs the API server, all controllers, the scheduler and the kubelet; Deployments of 50 Pods, each with a Service, are
 * created and everything is awaited: Pods ready, Deployments complete, every endpoint in its EndpointSlice. Then a
 * minute's third of idling, in which nothing but heartbeats may be written.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createTransport } from '../../src/client/connect.ts';
import type { Transport } from '../../src/client/transport.ts';
import { isRecord } from '../../src/objects/json.ts';
import { items, runDeployments, untilNodesReady } from './deployments.ts';
import { report } from './report.ts';
import { ServerProcess } from './server-process.ts';

const pods = Number(process.argv[2] ?? 5000);
const nodes = Number(process.argv[3] ?? 100);
const idle = 20_000;

async function revision(client: Transport): Promise<number> {
  const list = (await client.request('GET', '/api/v1/nodes', { query: { limit: 1 } })).json();
  return isRecord(list) && isRecord(list['metadata']) ? Number(list['metadata']['resourceVersion']) : 0;
}

async function leaseRenewals(client: Transport, since: number): Promise<number> {
  const leases = await items(client, '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases');
  const newer = leases.filter(
    (lease) =>
      isRecord(lease) && isRecord(lease['metadata']) && Number(lease['metadata']['resourceVersion']) > since,
  );
  return newer.length;
}

const server = await ServerProcess.start(
  ['--nodes', String(nodes), '--log-level', 'error'],
  process.argv.slice(4),
);
const client = await createTransport({ kind: 'endpoint', ...server.target });
try {
  const started = performance.now();
  await untilNodesReady(client, nodes);
  const nodesReady = performance.now() - started;

  const begun = performance.now();
  const running = await runDeployments(client, pods);
  const settled = performance.now() - begun;
  const memory = await server.residentMiB();
  const highest = await server.highestMiB();
  const processor = await server.cpu();
  const [busiest = 0, next = 0] = await server.cpuOfThreads();

  await sleep(3000);
  const before = await revision(client);
  await sleep(idle);
  const after = await revision(client);
  const renewals = await leaseRenewals(client, before);

  await report('workloads', [
    { name: `${nodes} nodes ready`, value: nodesReady / 1000, unit: 's' },
    {
      name: `${running} Pods settled`,
      value: settled / 1000,
      unit: 's',
      budget: '≤ 20 s',
    },
    { name: 'resident memory', value: memory, unit: 'MiB', budget: '≤ 400 MiB' },
    { name: 'highest resident memory', value: highest, unit: 'MiB' },
    { name: 'processor time until settled', value: processor / 1e6, unit: 's' },
    { name: 'of it the busiest thread', value: busiest / 1e6, unit: 's' },
    { name: 'and the next', value: next / 1e6, unit: 's' },
    { name: `revisions in ${idle / 1000} idle seconds`, value: after - before, unit: 'writes' },
    { name: 'of them heartbeats (leases renewed, at least)', value: renewals, unit: 'writes' },
  ]);
} finally {
  await client.close();
  await server.stop();
}
