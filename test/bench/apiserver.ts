/**
 * Measures the embedded server as a client sees it: a server process, this process as its clients, HTTPS with
 * keep-alive. Prints a table and writes bench-results/apiserver.json.
 *
 * Run: node test/bench/apiserver.ts [--services 50000]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import { createTransport } from '../../src/client/connect.ts';
import type { Transport } from '../../src/client/transport.ts';
import { isRecord } from '../../src/objects/json.ts';
import { report, type Row } from './report.ts';

const { values } = parseArgs({ options: { services: { type: 'string', default: '50000' } } });
const services = Number(values.services);

/** The server without its controllers, as kube-apiserver is measured: each of them would write for every Service. */
const serverAlone = ['--nodes', '0', '--default-pool', '', '--controllers=-load-balancer-controller'];

interface Server {
  readonly child: ChildProcess;
  readonly client: Transport;
  /** Milliseconds from spawn to the line that says that it is ready. */
  readonly startMs: number;
}

/** Starts `servicenet up` as its users do and reads its kubeconfig. */
async function startServer(folder: string): Promise<Server> {
  const kubeconfig = join(folder, 'kubeconfig');
  const started = performance.now();
  const main = new URL('../../src/main.ts', import.meta.url).pathname;
  const child = spawn(
    process.execPath,
    [
      main,
      'up',
      '--port',
      '0',
      '--write-kubeconfig',
      kubeconfig,
      '--service-cluster-ip-range',
      '10.0.0.0/12',
      ...serverAlone,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  await once(child.stdout, 'data');
  const startMs = performance.now() - started;
  const config: unknown = parse(await readFile(kubeconfig, 'utf8'));
  const cluster = first(config, 'clusters', 'cluster');
  const user = first(config, 'users', 'user');
  const client = await createTransport({
    kind: 'endpoint',
    url: String(cluster['server']),
    ca: Buffer.from(String(cluster['certificate-authority-data']), 'base64'),
    token: String(user['token']),
  });
  return { child, client, startMs };
}

function first(config: unknown, list: string, member: string): Record<string, unknown> {
  const items: unknown = isRecord(config) ? config[list] : undefined;
  const item: unknown = Array.isArray(items) ? items[0] : undefined;
  const value = isRecord(item) ? item[member] : undefined;
  if (!isRecord(value)) throw new Error(`the kubeconfig has no ${list}`);
  return value;
}

/** Resident memory of a process in MiB. */
async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
}

interface Rate {
  readonly perSecond: number;
  readonly p99: number;
}

/** Runs `count` calls, `concurrency` at a time. */
async function measure(
  count: number,
  concurrency: number,
  call: (i: number) => Promise<unknown>,
): Promise<Rate> {
  const times = new Float64Array(count);
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (let i = next++; i < count; i = next++) {
        const before = performance.now();
        await call(i);
        times[i] = performance.now() - before;
      }
    }),
  );
  const perSecond = (count / (performance.now() - started)) * 1000;
  times.sort();
  return { perSecond, p99: times[Math.floor(count * 0.99)] ?? 0 };
}

const base = '/api/v1/namespaces/default/services';

function service(name: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, labels: { app: name } },
    spec: { selector: { app: name }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
  };
}

async function watchFanOut(client: Transport, watchers: number, events: number): Promise<number> {
  const list = (await client.request('GET', `${base}?limit=1`)).json();
  const version =
    isRecord(list) && isRecord(list['metadata']) ? String(list['metadata']['resourceVersion']) : '';
  const abort = new AbortController();
  let delivered = 0;
  const finished = Promise.withResolvers<undefined>();
  const streams = Array.from({ length: watchers }, async () => {
    const stream = await client.stream(`/api/v1/namespaces/default/configmaps`, {
      query: { watch: 'true', resourceVersion: version },
      signal: abort.signal,
    });
    try {
      for await (const chunk of stream.chunks) {
        for (const byte of chunk) if (byte === 10) delivered++;
        if (delivered >= watchers * events) finished.resolve(undefined);
      }
    } catch (error) {
      if (!abort.signal.aborted) throw error;
    }
  });
  const started = performance.now();
  await measure(events, 16, async (i) =>
    client.request('POST', '/api/v1/namespaces/default/configmaps', {
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `fan-${i}` }, data: { k: 'v' } },
    }),
  );
  await finished.promise;
  const seconds = (performance.now() - started) / 1000;
  abort.abort();
  await Promise.allSettled(streams);
  return (watchers * events) / seconds;
}

const folder = await mkdtemp(join(tmpdir(), 'servicenet-bench-'));
const rows: Row[] = [];
const { child, client, startMs } = await startServer(folder);
try {
  const pid = child.pid ?? 0;
  rows.push({ name: 'spawn to ready', value: startMs, unit: 'ms', budget: '≤ 500' });
  rows.push({ name: 'memory, empty', value: await residentMiB(pid), unit: 'MiB', budget: '≤ 120' });
  for (const concurrency of [1, 16]) {
    const n = concurrency === 1 ? 2000 : 5000;
    const create = await measure(n, concurrency, async (i) =>
      client.request('POST', base, { body: service(`b${concurrency}-${i}`) }),
    );
    rows.push({
      name: `create, ${concurrency} at a time`,
      value: create.perSecond,
      unit: '/s',
      ...(concurrency === 16 ? { budget: '≥ 4000' } : {}),
    });
    rows.push({
      name: `create p99, ${concurrency} at a time`,
      value: create.p99,
      unit: 'ms',
      ...(concurrency === 16 ? { budget: '≤ 20' } : {}),
    });
    const get = await measure(n, concurrency, async (i) =>
      client.request('GET', `${base}/b${concurrency}-${i}`),
    );
    rows.push({ name: `get, ${concurrency} at a time`, value: get.perSecond, unit: '/s' });
    const list = await measure(100, concurrency, async () =>
      client.request('GET', base, { query: { limit: 1000 } }),
    );
    rows.push({ name: `list of 1,000, ${concurrency} at a time`, value: list.perSecond, unit: '/s' });
    const patch = await measure(n, concurrency, async (i) =>
      client.request('PATCH', `${base}/b${concurrency}-${i}`, {
        contentType: 'application/merge-patch+json',
        body: { metadata: { annotations: { round: String(i) } } },
      }),
    );
    rows.push({ name: `patch, ${concurrency} at a time`, value: patch.perSecond, unit: '/s' });
    const remove = await measure(n, concurrency, async (i) =>
      client.request('DELETE', `${base}/b${concurrency}-${i}`),
    );
    rows.push({ name: `delete, ${concurrency} at a time`, value: remove.perSecond, unit: '/s' });
  }
  const slice = 5000;
  const rates: number[] = [];
  for (let start = 0; start < services; start += slice) {
    const rate = await measure(Math.min(slice, services - start), 16, async (i) =>
      client.request('POST', base, { body: service(`s${start + i}`) }),
    );
    rates.push(rate.perSecond);
  }
  rows.push({ name: `creates, first ${slice}`, value: rates[0] ?? 0, unit: '/s' });
  rows.push({
    name: `creates, last ${slice} of ${services}`,
    value: rates.at(-1) ?? 0,
    unit: '/s',
    budget: '> 80% of the first',
  });
  rows.push({ name: `memory, ${services} Services`, value: await residentMiB(pid), unit: 'MiB' });
  rows.push({
    name: 'watch deliveries, 100 watchers × 10,000',
    value: await watchFanOut(client, 100, 10_000),
    unit: '/s',
    budget: '≥ 200000',
  });
} finally {
  await client.close();
  child.kill('SIGTERM');
  await once(child, 'exit');
  await rm(folder, { recursive: true, force: true });
}
await report('apiserver', rows);
