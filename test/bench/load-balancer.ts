/**
 * The load balancer against the embedded API server in a process of its own, over HTTP:
 * `node test/bench/load-balancer.ts [services]`. 50,000 Services from a /14 and a /108 (assignments per second, CPU,
 * the time of the writes, and the time from a Service's creation to its address), a restart into them (time until
 * every Service was looked at, writes), a full pool with 1,000 waiters and 1,000 frees; then the allocator alone, beside
 * a linear scan from the first address (load-balancer-allocator.ts). What was asked for and what Services
 * have is compared. Writes bench-results/load-balancer.json; some 2 minutes on an idle machine.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import PQueue from 'p-queue';
import { pino } from 'pino';
import { Clients } from '../../src/client/resource-client.ts';
import { createTransport } from '../../src/client/connect.ts';
import { services } from '../../src/client/resources.ts';
import type { Transport } from '../../src/client/transport.ts';
import { offerAddresses } from '../../src/commands/default-pool.ts';
import { loadBalancerController } from '../../src/controllers/load-balancer/controller.ts';
import { addressPools } from '../../src/client/resources.ts';
import { runControllers, type RunningControllers } from '../../src/controllers/run.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { measureAllocator } from './load-balancer-allocator.ts';
import { report, type Row } from './report.ts';

const count = Number(process.argv[2] ?? 50_000);
const waiters = Math.min(1000, count);
const parallel = 16;
const rows: Row[] = [];

const folder = await mkdtemp(join(tmpdir(), 'servicenet-lb-bench-'));
const main = new URL('../../src/main.js', import.meta.url).pathname;
const kubeconfig = join(folder, 'kubeconfig');
const child: ChildProcess = spawn(
  process.execPath,
  [
    ...[
      main,
      'up',
      '--port',
      '0',
      '--nodes',
      '0',
      '--controllers',
      'service-cidr-controller',
      '--default-pool',
      '',
    ],
    ...['--service-cluster-ip-range', '10.0.0.0/12,fd00:1::/108', '--write-kubeconfig', kubeconfig],
  ],
  { stdio: ['ignore', 'pipe', 'inherit'] },
);
try {
  await ready(child);
  await bench();
} finally {
  child.kill('SIGTERM');
  await once(child, 'exit');
  await rm(folder, { recursive: true, force: true });
}

async function bench(): Promise<void> {
  const { client, writes } = await connect();
  const clients = new Clients(client);
  await offerAddresses(client, []);
  await until(() =>
    clients
      .for(addressPools)
      .list()
      .then(
        () => true,
        () => false,
      ),
  );
  await clients
    .for(addressPools)
    .create({ metadata: { name: 'v4' }, spec: { addresses: ['172.16.0.0/14'] } });
  await clients
    .for(addressPools)
    .create({ metadata: { name: 'v6' }, spec: { addresses: ['2001:db8::/108'] } });

  // All Services are there before the controller: what is measured is the controller, not the creates.
  const creating = performance.now();
  await inParallel(count, (i) => create(clients, `s${i}`, i % 2 === 0 ? 'IPv4' : 'IPv6'));
  say(`${count} Services created`, count / ((performance.now() - creating) / 1000), '/s');

  let started = performance.now();
  let run = start(client);
  const cpu = process.cpuUsage();
  const serverCpu = await cpuSeconds(child.pid ?? 0);
  const creates = writes.length;
  await until(async () => (await assigned(run.metrics)) >= count, 50);
  const seconds = (performance.now() - started) / 1000;
  const spentCpu = process.cpuUsage(cpu);
  const usedByServer = (await cpuSeconds(child.pid ?? 0)) - serverCpu;
  const answers = writes.slice(creates);
  say('assignments', count / seconds, '/s', {
    cpu: (spentCpu.user + spentCpu.system) / count,
    budget: 'Cilium CI creates 278/s',
  });
  say('  CPU of the server', (1e6 * usedByServer) / count, 'µs each');
  say('  writes', answers.length / count, 'each', { budget: '1' });
  say('  answer to a write, p50', percentile(answers, 0.5), 'ms');
  say('  answer to a write, p99', percentile(answers, 0.99), 'ms');
  say('  resident memory of the controller and this bench', process.memoryUsage().rss / 2 ** 20, 'MiB');

  // One at a time, in a cluster of that size: creation to address.
  const times: number[] = [];
  for (let i = 0; i < 300; i++) {
    const name = `late${i}`;
    const begun = performance.now();
    await create(clients, name, i % 2 === 0 ? 'IPv4' : 'IPv6');
    while ((await clients.for(services).get('default', name)).status.loadBalancer?.ingress === undefined) {
      await sleep(1);
    }
    times.push(performance.now() - begun);
  }
  say('one Service to its address, p50', percentile(times, 0.5), 'ms');
  say('one Service to its address, p99', percentile(times, 0.99), 'ms');
  await compare(clients, count + 300);
  // The pools' counts are written a moment later than the last address.
  await until(async () => (await used(clients)) === count + 300);
  await run.running.stop();

  const before = writes.length;
  started = performance.now();
  const restartCpu = process.cpuUsage();
  run = start(client);
  await until(async () => (await reconciled(run.metrics)) >= count + 300, 20);
  const restarted = performance.now() - started;
  const spent = process.cpuUsage(restartCpu);
  say(`restart into ${count + 300}: all looked at`, restarted, 'ms', {
    cpu: (spent.user + spent.system) / (count + 300),
  });
  await sleep(1500);
  say('  writes', writes.length - before, '', { budget: '0' });

  // A full pool: the waiters get what is freed, oldest first.
  await clients.for(addressPools).create({
    metadata: { name: 'full' },
    spec: {
      addresses: [`192.0.2.0-192.0.${2 + Math.floor((waiters - 1) / 256)}.${(waiters - 1) % 256}`],
      autoAssign: false,
    },
  });
  const inFull = { 'servicenet.dev/pool': 'full' };
  await inParallel(2 * waiters, (i) => create(clients, `full${String(i).padStart(5, '0')}`, 'IPv4', inFull));
  const done = count + 300 + waiters;
  await until(async () => (await reasons(run.metrics, 'PoolExhausted')) >= waiters, 50);
  started = performance.now();
  const holders = (await clients.for(services).list({ namespace: 'default' })).items.filter(
    ({ metadata, status }) =>
      metadata.name?.startsWith('full') === true && status.loadBalancer?.ingress !== undefined,
  );
  const freeing = performance.now();
  const freeingCpu = process.cpuUsage();
  const freeingWrites = writes.length;
  const queue = new PQueue({ concurrency: parallel });
  for (const { metadata } of holders) {
    void queue.add(() => clients.for(services).delete('default', metadata.name ?? ''));
  }
  await queue.onIdle();
  await until(async () => (await assigned(run.metrics)) >= 2 * waiters, 20);
  const freed = performance.now() - freeing;
  const freedCpu = process.cpuUsage(freeingCpu);
  say(`${waiters} frees to ${waiters} waiters, deletes included`, freed, 'ms', {
    cpu: (freedCpu.user + freedCpu.system) / waiters,
  });
  say('  writes', (writes.length - freeingWrites) / waiters, 'each', { budget: '3' });
  await compare(clients, done);
  await run.running.stop();
  await client.close();
  rows.push(...measureAllocator(count, waiters));
  await report('load-balancer', rows);
}

interface Run {
  readonly running: RunningControllers;
  readonly metrics: Metrics;
}

function start(transport: Transport): Run {
  const metrics = new Metrics();
  const running = runControllers({
    transport,
    controllers: [loadBalancerController()],
    log: pino({ enabled: false }),
    metrics,
  });
  return { running, metrics };
}

async function create(
  clients: Clients,
  name: string,
  family: 'IPv4' | 'IPv6',
  annotations: Record<string, string> = {},
): Promise<void> {
  await clients.for(services).create({
    metadata: { namespace: 'default', name, annotations },
    spec: {
      type: 'LoadBalancer',
      allocateLoadBalancerNodePorts: false,
      ipFamilies: [family],
      ports: [{ port: 80 }],
    },
  });
}

/** Addresses in use by the status of the pools. */
async function used(clients: Clients): Promise<number> {
  const { items } = await clients.for(addressPools).list();
  return items.reduce((sum, { status }) => sum + (status?.ipv4?.used ?? 0) + (status?.ipv6?.used ?? 0), 0);
}

/** Every address once, and so many of them. */
async function compare(clients: Clients, expected: number): Promise<void> {
  const seen = new Set<string>();
  for await (const page of clients.for(services).pages({ namespace: 'default' })) {
    for (const { metadata, status } of page.items) {
      for (const { ip = '' } of status.loadBalancer?.ingress ?? []) {
        if (seen.has(ip)) throw new Error(`${ip} is given twice, also to ${metadata.name ?? ''}`);
        seen.add(ip);
      }
    }
  }
  if (seen.size !== expected) throw new Error(`${seen.size} addresses are in use instead of ${expected}`);
}

function assigned(metrics: Metrics): Promise<number> {
  return reasons(metrics, 'Assigned');
}

async function reasons(metrics: Metrics, reason: string): Promise<number> {
  const metric = await metrics.registry.getSingleMetric('servicenet_load_balancer_transitions_total')?.get();
  return metric?.values.find(({ labels }) => labels['reason'] === reason)?.value ?? 0;
}

async function reconciled(metrics: Metrics): Promise<number> {
  const { values } = await metrics.reconciles.get();
  return values.find(({ labels }) => labels.controller === 'load_balancer')?.value ?? 0;
}

async function inParallel(times: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let i = next++; i < times; i = next++) await work(i);
  };
  await Promise.all(Array.from({ length: parallel }, worker));
}

async function until(condition: () => Promise<boolean>, pause = 20): Promise<void> {
  const deadline = performance.now() + 600_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('it never came');
    await sleep(pause);
  }
}

/** A transport that notes how long each write took, in milliseconds, but for Events. */
async function connect(): Promise<{ client: Transport; writes: readonly number[] }> {
  const inner = await createTransport({ kind: 'kubeconfig', path: kubeconfig });
  const writes: number[] = [];
  const client: Transport = {
    server: inner.server,
    request: async (method, path, options) => {
      const sent = performance.now();
      const answer = await inner.request(method, path, options);
      if (method !== 'GET' && !path.includes('/events')) writes.push(performance.now() - sent);
      return answer;
    },
    stream: (path, options) => inner.stream(path, options),
    close: () => inner.close(),
  };
  return { client, writes };
}

function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

async function ready(process_: ChildProcess): Promise<void> {
  for (let i = 0; i < 600; i++) {
    if (process_.exitCode !== null) throw new Error('the server ended');
    const text = await readFile(kubeconfig, 'utf8').catch(() => '');
    if (text !== '') return;
    await sleep(50);
  }
  throw new Error('the server never came');
}

/** User and system time of a process; Linux only. */
async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / 100;
}

function say(name: string, value: number, unit: string, more: Pick<Row, 'cpu' | 'budget'> = {}): void {
  rows.push({ name, value, unit, ...more });
  process.stdout.write(`${name}: ${value.toFixed(1)} ${unit}\n`);
}
