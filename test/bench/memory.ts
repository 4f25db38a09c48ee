/**
 * What `servicenet up` with all its controllers takes of memory when it holds much:
 * `node test/bench/memory.ts [services] [pods] [flags of node]`, by default 10,000 Services and 50,000 Pods, which takes
 * some minutes. Pods are on a node that is not simulated; each is created and set to run, as a kubelet does. Awaited is
 * that every Pod is in an EndpointSlice.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { Connection } from './connection.ts';
import { report } from './report.ts';
import { ServerProcess } from './server-process.ts';

const services = Number(process.argv[2] ?? 10_000);
const pods = Number(process.argv[3] ?? 50_000);
const concurrency = 16;
/** Milliseconds in which everything must be written. */
const deadline = 300_000;
/** Milliseconds in which freed memory goes back to the system (`host/freed-memory.ts`). */
const restMs = 15_000;

const namespace = '/api/v1/namespaces/default';
const post = async (connection: Connection, path: string, object: object): Promise<unknown> =>
  connection.request({ method: 'POST', path, body: JSON.stringify(object) });

async function createService(connection: Connection, i: number): Promise<void> {
  await post(connection, `${namespace}/services`, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: `web-${i}` },
    spec: { selector: { app: `web-${i}` }, ports: [{ port: 80, targetPort: 8080 }] },
  });
}

async function createPod(connection: Connection, i: number): Promise<void> {
  const name = `web-${i}`;
  await post(connection, `${namespace}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: `web-${i % services}` } },
    spec: {
      nodeName: 'elsewhere',
      containers: [{ name: 'web', image: 'nginx', ports: [{ containerPort: 8080 }] }],
    },
  });
  const ip = `10.${128 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`;
  const status = {
    phase: 'Running',
    podIP: ip,
    podIPs: [{ ip }],
    conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
  };
  await connection.request({
    method: 'PATCH',
    path: `${namespace}/pods/${name}/status`,
    contentType: 'application/merge-patch+json',
    body: JSON.stringify({ status }),
  });
}

async function each(
  connections: readonly Connection[],
  count: number,
  call: (connection: Connection, i: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  await Promise.all(
    connections.map(async (connection) => {
      for (let i = next++; i < count; i = next++) await call(connection, i);
    }),
  );
}

/** Endpoints in all slices, read in pages as kubectl does: a list of 25 MB would be measured too. */
async function endpoints(connection: Connection): Promise<number> {
  const path = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?limit=500';
  let count = 0;
  for (let next = ''; ;) {
    const page = await connection.request({ method: 'GET', path: `${path}&continue=${next}` });
    const list = recordAt(JSON.parse(page.toString()));
    count += listAt(list, 'items').reduce<number>((sum, slice) => sum + listAt(slice, 'endpoints').length, 0);
    next = textAt(list['metadata'], 'continue');
    if (next === '') return count;
  }
}

/** Waits until every Pod is in a slice. */
async function settle(connection: Connection): Promise<void> {
  const end = performance.now() + deadline;
  while ((await endpoints(connection)) < pods) {
    if (performance.now() > end) throw new Error(`not settled in ${deadline} ms`);
    await sleep(2000);
  }
}

const network = ['--service-cluster-ip-range', '10.0.0.0/12'];
const server = await ServerProcess.start([...network, '--log-level', 'error'], process.argv.slice(4));
try {
  const connections = await Promise.all(
    Array.from({ length: concurrency }, async () => Connection.open(server.target)),
  );
  const [first] = connections;
  if (first === undefined) throw new RangeError('there must be a connection');
  // Endpoints of Pods whose Node is not there are left out.
  await post(first, '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'elsewhere' } });
  await each(connections, services, createService);
  await each(connections, pods, createPod);
  await settle(first);
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
