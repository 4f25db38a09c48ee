import { setTimeout as sleep } from 'node:timers/promises';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import type { Connection } from './connection.ts';
import { connect } from './requests.ts';
import { ServerProcess } from './server-process.ts';

/** Milliseconds without a further endpoint after which something is wrong. */
const deadline = 300_000;

const namespace = '/api/v1/namespaces/default';

/** Creates an object. */
export async function post(connection: Connection, path: string, object: object): Promise<void> {
  await connection.request({ method: 'POST', path, body: JSON.stringify(object) });
}

async function createService(connection: Connection, i: number): Promise<void> {
  await post(connection, `${namespace}/services`, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: `web-${i}` },
    spec: { selector: { app: `web-${i}` }, ports: [{ port: 80, targetPort: 8080 }] },
  });
}

async function createPod(connection: Connection, i: number, services: number): Promise<void> {
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

/** @param call with each number below the count, on any connection. */
export async function each(
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
async function settle(connection: Connection, pods: number): Promise<void> {
  let last = { count: -1, at: performance.now() };
  for (;;) {
    const began = performance.now();
    const count = await endpoints(connection);
    if (count >= pods) return;
    const now = performance.now();
    if (count > last.count) last = { count, at: now };
    if (now - last.at > deadline) throw new Error(`not settled: ${count} endpoints of ${pods}`);
    // The server has to read all of them for an answer.
    await sleep(Math.max(2000, 4 * (now - began)));
  }
}

/**
 * Creates Services, and Pods that run on a node without a simulated kubelet, `elsewhere`: Pod `web-7` is of Service `web-7` modulo
 * their number. Resolves when every Pod is in a slice.
 */
export async function fillCluster(
  connections: readonly Connection[],
  services: number,
  pods: number,
): Promise<void> {
  const [first] = connections;
  if (first === undefined) throw new RangeError('there must be a connection');
  // Endpoints of Pods whose Node is not there are left out.
  await post(first, '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'elsewhere' } });
  await each(connections, services, createService);
  await each(connections, pods, (connection, i) => createPod(connection, i, services));
  await settle(first, pods);
}

/** MiB, and seconds of CPU. */
interface Filled {
  readonly memory: number;
  readonly rested: number;
  readonly highest: number;
  readonly cpuSeconds: number;
}

/** Milliseconds in which freed memory goes back to the system (`host/unused-memory.ts`). */
const restMs = 15_000;

/** What `up` with all its controllers takes when {@link fillCluster} is done. */
export async function measureFilled(
  services: number,
  pods: number,
  nodeFlags: readonly string[],
): Promise<Filled> {
  const network = ['--service-cluster-ip-range', '10.0.0.0/12'];
  const server = await ServerProcess.start([...network, '--log-level', 'error'], nodeFlags);
  try {
    const connections = await connect(server, 16);
    await fillCluster(connections, services, pods);
    const cpuSeconds = (await server.cpu()) / 1e6;
    const highest = await server.highestMiB();
    const memory = await server.residentMiB();
    await sleep(restMs);
    const rested = await server.residentMiB();
    for (const connection of connections) connection.close();
    return { memory, rested, highest, cpuSeconds };
  } finally {
    await server.stop();
  }
}
