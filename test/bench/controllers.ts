/**
 * Measures the endpoints controllers on an API server that knows nothing of them: cold start, restart into a settled
 * cluster, idling, and the way of one Pod change to both objects. Prints a table and writes
 * bench-results/controllers.json.
 *
 * Run: node test/bench/controllers.ts [--services 1000] [--pods 10] [--changes 200]
 * The large one, some minutes: --services 10000 --pods 5
 * The server runs as `npm start` runs it, the controllers with the image's flags of Node.js, and those of --node-flag.
 * With KUBECONFIG it measures against that cluster, whose own endpoints controllers must be off, and removes the
 * namespaces and Nodes `servicenet-bench-…` that it made there.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { createTransport } from '../../src/client/connect.ts';
import { ResourceClient } from '../../src/client/resource-client.ts';
import { endpoints, endpointSlices, nodes, pods, services } from '../../src/client/resources.ts';
import type { Transport } from '../../src/client/transport.ts';
import { isRecord, isStringList } from '../../src/objects/json.ts';
import type { Settled } from './controllers-process.ts';
import { report, type Row } from './report.ts';
import { serverAlone } from './requests.ts';
import { ServerProcess } from './server-process.ts';

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '1000' },
    pods: { type: 'string', default: '10' },
    changes: { type: 'string', default: '200' },
    'node-flag': { type: 'string', multiple: true, default: [] },
  },
});
const serviceCount = Number(values.services);
const podsEach = Number(values.pods);
const namespaceCount = 10;
const nodeCount = 20;
const prefix = 'servicenet-bench';
/** A cluster that is not ours. */
const isForeign = (process.env['KUBECONFIG'] ?? '') !== '';

/** Starts a server of our own, or answers the way to a cluster. */
async function connect(): Promise<{ connection: object; server?: ServerProcess }> {
  if (isForeign) return { connection: {} };
  const server = await ServerProcess.start(serverAlone, []);
  return { connection: server.target, server };
}

/** The flags of Node.js that the image starts the program with. */
async function imageFlags(): Promise<readonly string[]> {
  const text = await readFile(new URL('../../Dockerfile', import.meta.url), 'utf8');
  const words: unknown = JSON.parse(/^ENTRYPOINT (.*)$/m.exec(text)?.[1] ?? '[]');
  return isStringList(words) ? words.filter((word) => word.startsWith('--')) : [];
}

async function inParallel(
  count: number,
  width: number,
  task: (i: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await task(next++);
  };
  await Promise.all(Array.from({ length: width }, worker));
}

/** Namespaces, Nodes, Services, and ready Pods behind each Service. */
async function fill(transport: Transport): Promise<void> {
  const service = new ResourceClient(transport, services);
  const pod = new ResourceClient(transport, pods);
  await inParallel(namespaceCount, 4, (i) =>
    transport.request('POST', '/api/v1/namespaces', { body: { metadata: { name: `${prefix}-${i}` } } }),
  );
  await inParallel(nodeCount, 4, (i) =>
    new ResourceClient(transport, nodes).create({
      metadata: { name: `${prefix}-${i}`, labels: { 'topology.kubernetes.io/zone': `zone-${i % 3}` } },
    }),
  );
  await inParallel(serviceCount, 16, async (i) => {
    const namespace = `${prefix}-${i % namespaceCount}`;
    await service.create({
      metadata: { namespace, name: `s${i}` },
      spec: { selector: { app: `s${i}` }, ports: [{ port: 80 }] },
    });
    for (let p = 0; p < podsEach; p++) {
      const name = `s${i}-${p}`;
      await pod.create({
        metadata: { namespace, name, labels: { app: `s${i}`, tier: 'bench', 'pod-template-hash': `h${i}` } },
        spec: {
          nodeName: `${prefix}-${(i + p) % nodeCount}`,
          terminationGracePeriodSeconds: 0,
          containers: [{ name: 'c', image: 'i' }],
        },
      });
      await pod.mergePatch(namespace, name, statusPatch(i * podsEach + p, true), { subresource: 'status' });
    }
  });
}

/** Takes everything away again. */
async function remove(transport: Transport): Promise<void> {
  const gone = (path: string) => transport.request('DELETE', path).catch(() => undefined);
  await inParallel(namespaceCount, 4, (i) => gone(`/api/v1/namespaces/${prefix}-${i}`));
  await inParallel(nodeCount, 4, (i) => gone(`/api/v1/nodes/${prefix}-${i}`));
}

function statusPatch(serial: number, ready: boolean): Readonly<Record<string, unknown>> {
  const podIP = `10.${64 + (serial >> 16)}.${(serial >> 8) & 255}.${serial & 255}`;
  return {
    status: {
      phase: 'Running',
      podIP,
      conditions: [
        { type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: new Date().toISOString() },
      ],
    },
  };
}

/** Starts the controllers in a process of their own, and waits until they have nothing left to do. */
async function start(connection: object): Promise<{ child: ChildProcess; settled: Settled }> {
  const script = new URL('controllers-process.ts', import.meta.url);
  const execArgv = [...(await imageFlags()), ...values['node-flag']];
  const child = fork(script, [JSON.stringify(connection), String(2 * serviceCount)], { execArgv });
  const heard: unknown[] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
  const [said] = heard;
  if (!isSettled(said)) throw new Error('the controllers ended early');
  return { child, settled: said };
}

function isSettled(value: unknown): value is Settled {
  return isRecord(value) && typeof value['residentMiB'] === 'number';
}

/** Writes and seconds of CPU until now. */
async function usedBy(child: ChildProcess): Promise<{ writes: number; cpuSeconds: number }> {
  const answer = once(child, 'message');
  child.send('used');
  const heard: unknown[] = await answer;
  const [said] = heard;
  const { writes, cpuSeconds } = isRecord(said) ? said : {};
  return { writes: Number(writes), cpuSeconds: Number(cpuSeconds) };
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.send('stop');
  await ended;
}

/** The times from a change of one Pod to both objects showing it, in milliseconds. */
async function changes(transport: Transport, count: number): Promise<number[]> {
  const pod = new ResourceClient(transport, pods);
  const endpointsClient = new ResourceClient(transport, endpoints);
  const sliceClient = new ResourceClient(transport, endpointSlices);
  const times: number[] = [];
  const unready = new Set<number>();
  for (let i = 0; i < count; i++) {
    const s = (i * 7) % serviceCount;
    const namespace = `${prefix}-${s % namespaceCount}`;
    const controller = new AbortController();
    const seen = async (path: string, query: Record<string, string>): Promise<void> => {
      const stream = await transport.stream(path, {
        query: { watch: true, ...query },
        signal: controller.signal,
      });
      opened++;
      for await (const chunk of stream.chunks) if (chunk.includes('"MODIFIED"')) return;
    };
    let opened = 0;
    const { metadata } = await endpointsClient.list({ namespace, limit: 1 });
    const resourceVersion = metadata.resourceVersion ?? '';
    const both = Promise.all([
      seen(endpointsClient.path(namespace), { fieldSelector: `metadata.name=s${s}`, resourceVersion }),
      seen(sliceClient.path(namespace), {
        labelSelector: `kubernetes.io/service-name=s${s}`,
        resourceVersion,
      }),
    ]);
    while (opened < 2) await new Promise((resolve) => setTimeout(resolve, 1));
    const began = performance.now();
    const ready = unready.delete(s);
    if (!ready) unready.add(s);
    await pod.mergePatch(namespace, `s${s}-0`, statusPatch(s * podsEach, ready), { subresource: 'status' });
    await both;
    times.push(performance.now() - began);
    controller.abort();
  }
  return times.sort((a, b) => a - b);
}

const { server, connection } = await connect();
const rows: Row[] = [];
const size = `${serviceCount} × ${podsEach}`;
const filler = await createTransport(
  server === undefined ? { kind: 'kubeconfig' } : { kind: 'endpoint', ...server.target },
);
try {
  const filling = performance.now();
  await fill(filler);
  console.log(`filled ${size} in ${Math.round(performance.now() - filling)} ms`);

  const { child: running, settled: cold } = await start(connection);
  rows.push({ name: `cold start to everything written, ${size}`, value: cold.seconds, unit: 's' });
  rows.push({ name: 'writes of the cold start', value: cold.writes, unit: '' });
  rows.push({ name: 'CPU of the cold start', value: cold.cpuSeconds, unit: 's' });
  rows.push({ name: 'resident memory', value: cold.residentMiB, unit: 'MiB' });

  await new Promise((resolve) => setTimeout(resolve, 5000));
  const idle = await usedBy(running);
  rows.push({ name: 'writes when idle for 5 s', value: idle.writes - cold.writes, unit: '', budget: '0' });

  const times = await changes(filler, Number(values.changes));
  const changed = await usedBy(running);
  const at = (share: number): number =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  rows.push({ name: 'one Pod change to both objects, median', value: at(0.5), unit: 'ms' });
  rows.push({ name: 'one Pod change to both objects, p99', value: at(0.99), unit: 'ms', budget: '≤ 50' });
  rows.push({
    name: 'CPU of one Pod change',
    value: ((changed.cpuSeconds - idle.cpuSeconds) * 1000) / times.length,
    unit: 'ms',
  });
  await stop(running);

  const { child: again, settled: warm } = await start(connection);
  rows.push({
    name: 'writes after a restart into a settled cluster',
    value: warm.writes,
    unit: '',
    budget: '0',
  });
  await stop(again);
} finally {
  if (isForeign) await remove(filler);
  await filler.close();
  await server?.stop();
}
await report('controllers', rows);
