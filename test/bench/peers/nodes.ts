import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createTransport } from '../../../src/client/connect.ts';
import type { Transport } from '../../../src/client/transport.ts';
import { moduleFolder, program } from '../../cluster/programs.ts';
import type { Connection } from '../connection.ts';
import { runDeployments, untilNodesReady } from '../deployments.ts';
import { each, post } from '../many-objects.ts';
import { MeasuredProcess } from '../measured-process.ts';
import { connect } from '../requests.ts';
import { ServerProcess } from '../server-process.ts';
import { atMost, type Compared, type Goal, type Part, progress } from './compared.ts';

const nodeCount = 1000;
const podCount = 10_000;
const settlingMs = 10_000;
const restMs = 20_000;

interface Took {
  /** From the start of `up`, or the first create of a Node. */
  readonly nodesSeconds: number;
  /** Of a core. */
  readonly restPercent: number;
  readonly podsSeconds: number;
  readonly cpuSeconds: number;
}

/**
 * A thousand simulated nodes, beside those of kwok. kwok works for an API server of ours too, with our controllers
 * and scheduler: what differs is who simulates the kubelets.
 */
export const nodes: Part = {
  needs: [],
  peers: ['kwok'],
  async measure(isAlone) {
    const ours = await measureOurs();
    const peer = isAlone ? undefined : await measureKwok();
    const row = (name: string, unit: string, of: (took: Took) => number, goal?: Goal): Compared => ({
      ...{ name: `nodes: ${name}`, unit, ours: of(ours) },
      ...(peer === undefined ? {} : { peer: { name: 'kwok, our API server', value: of(peer) } }),
      ...(goal === undefined ? {} : { goal }),
    });
    return [
      row(`${nodeCount} Ready`, 's', (took) => took.nodesSeconds, atMost(10)),
      row(`${nodeCount} at rest, of a core`, '%', (took) => took.restPercent, atMost(8)),
      row(`${podCount} Pods ready`, 's', (took) => took.podsSeconds, atMost(60)),
      row('CPU of all that', 's', (took) => took.cpuSeconds),
    ];
  },
};

const common = ['--network', 'off', '--default-pool', '', '--log-level', 'error'];

async function measureOurs(): Promise<Took> {
  progress(`nodes: up --nodes ${nodeCount} --network=off`);
  const started = performance.now();
  const server = await ServerProcess.start([...common, '--nodes', String(nodeCount)], []);
  const client = await createTransport({ kind: 'endpoint', ...server.target });
  try {
    await untilNodesReady(client, nodeCount);
    return await measureRest(client, (performance.now() - started) / 1000, async () => {
      return (await server.cpu()) / 1e6;
    });
  } finally {
    await client.close();
    await server.stop();
  }
}

async function measureKwok(): Promise<Took> {
  progress(`nodes: kwok, ${nodeCount} nodes`);
  const folder = await mkdtemp(join(tmpdir(), 'servicenet-kwok-'));
  // All of our controllers but the simulated kubelets. There is one node of ours, which is to get no Pods.
  const flags = ['--nodes', '1', '--cluster-cidr', '10.128.0.0/9', '--controllers', '*,-kubelet'];
  const server = await ServerProcess.start([...common, ...flags], []);
  const client = await createTransport({ kind: 'endpoint', ...server.target });
  const stages = join(folder, 'stages.yaml');
  await writeFile(stages, await usualStages());
  const words = ['--kubeconfig', server.kubeconfig, '--config', stages, '--manage-all-nodes'];
  const kwok = new MeasuredProcess(
    program('kwok'),
    [...words, '--node-lease-duration-seconds', '40', '--cidr', '10.0.0.0/8'],
    { log: join(folder, 'kwok.log') },
  );
  try {
    await delay(settlingMs / 2);
    const started = performance.now();
    const connections = await connect(server, 16);
    await each(connections, nodeCount - 1, (connection, i) => createNode(connection, `kwok-${i}`));
    await untilNodesReady(client, nodeCount);
    const seconds = (performance.now() - started) / 1000;
    // Our controller of nodes leaves those of others alone: kube-controller-manager takes the taint away elsewhere.
    await patchNode(connections[0], 'node-1', { unschedulable: true });
    await each(connections, nodeCount - 1, (connection, i) =>
      patchNode(connection, `kwok-${i}`, { taints: null }),
    );
    for (const connection of connections) connection.close();
    return await measureRest(client, seconds, async () => {
      return (await server.cpu()) / 1e6 + (await kwok.cpuSeconds());
    });
  } finally {
    await kwok.stop();
    await client.close();
    await server.stop();
    await rm(folder, { recursive: true });
  }
}

function createNode(connection: Connection, name: string): Promise<void> {
  return post(connection, '/api/v1/nodes', {
    metadata: { name, labels: { 'kubernetes.io/hostname': name, type: 'kwok' } },
    status: { capacity: { cpu: '32', memory: '256Gi', pods: '110' } },
  });
}

async function patchNode(connection: Connection | undefined, name: string, spec: object): Promise<void> {
  await connection?.request({
    method: 'PATCH',
    path: `/api/v1/nodes/${name}`,
    contentType: 'application/merge-patch+json',
    body: JSON.stringify({ spec }),
  });
}

/** The stages that kwok is released with: nodes become ready and have Leases, Pods become ready at once and are deleted. */
async function usualStages(): Promise<string> {
  const folder = join(moduleFolder('kwok', 'sigs.k8s.io/kwok'), 'kustomize/stage');
  const files: string[] = [];
  for (const stage of ['node/fast', 'node/heartbeat-with-lease', 'pod/fast']) {
    for (const file of await readdir(join(folder, stage))) {
      if (file.endsWith('.yaml') && file !== 'kustomization.yaml') files.push(join(folder, stage, file));
    }
  }
  return (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join('\n---\n');
}

async function measureRest(
  client: Transport,
  nodesSeconds: number,
  cpu: () => Promise<number>,
): Promise<Took> {
  progress('nodes: 20 s at rest');
  await delay(settlingMs);
  const before = await cpu();
  await delay(restMs);
  const restPercent = (((await cpu()) - before) / (restMs / 1000)) * 100;
  progress(`nodes: ${podCount} Pods`);
  const begun = performance.now();
  await runDeployments(client, podCount);
  const podsSeconds = (performance.now() - begun) / 1000;
  return { nodesSeconds, restPercent, podsSeconds, cpuSeconds: await cpu() };
}
