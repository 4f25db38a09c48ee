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
import { listAt, numberAt } from '../../src/objects/json.ts';
import { report } from './report.ts';
import { ServerProcess } from './server-process.ts';

const pods = Number(process.argv[2] ?? 5000);
const nodes = Number(process.argv[3] ?? 100);
const perDeployment = 50;
const deployments = Math.ceil(pods / perDeployment);
const deadline = 600_000;
const idle = 20_000;

async function items(client: Transport, path: string): Promise<readonly unknown[]> {
  return listAt((await client.request('GET', path)).json(), 'items');
}

async function until(what: string, isDone: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + deadline;
  while (!(await isDone())) {
    if (performance.now() > end) throw new Error(`${what}: not in ${deadline} ms`);
    await sleep(100);
  }
}

function deployment(name: string): object {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: {
      replicas: perDeployment,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          containers: [{ name: 'web', image: 'nginx', ports: [{ name: 'http', containerPort: 8080 }] }],
        },
      },
    },
  };
}

function service(name: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { selector: { app: name }, ports: [{ port: 80, targetPort: 'http' }] },
  };
}

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
  await until('nodes ready', async () => {
    const all = await items(client, '/api/v1/nodes');
    const ready = all.filter((node) => JSON.stringify(node).includes('KubeletReady'));
    return ready.length === nodes;
  });
  const nodesReady = performance.now() - started;

  const begun = performance.now();
  for (let i = 0; i < deployments; i++) {
    const name = `web-${i}`;
    const apps = '/apis/apps/v1/namespaces/default/deployments';
    await client.request('POST', apps, { body: deployment(name) });
    await client.request('POST', '/api/v1/namespaces/default/services', { body: service(name) });
  }
  const available = async (): Promise<number> => {
    const all = await items(client, '/apis/apps/v1/namespaces/default/deployments');
    return all.reduce((sum: number, each) => sum + numberAt(each, 'status', 'availableReplicas'), 0);
  };
  await until('replicas available', async () => (await available()) >= deployments * perDeployment);
  await until('endpoints written', async () => {
    const slices = await items(client, '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices');
    const addresses = slices.reduce((sum: number, slice) => sum + listAt(slice, 'endpoints').length, 0);
    return addresses >= deployments * perDeployment;
  });
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
      name: `${deployments * perDeployment} Pods settled`,
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
