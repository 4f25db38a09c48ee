/**
 * The load balancer over HTTP, against the embedded API server in a process of its own:
 * `node test/bench/load-balancer-http.ts [services]`. 50,000 Services from a /14 and a /108 (assignments per second, and
 * the time from a Service's creation to its address while it goes on), a restart into them (time until every Service
 * was looked at, writes), and a full pool with 1,000 waiters and 1,000 frees.
 * Writes bench-results/load-balancer-http.json. What was asked for and what Services have is compared at the end.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import PQueue from 'p-queue';
import { pino } from 'pino';
import { Clients } from '../../src/client/clients.ts';
import { createTransport } from '../../src/client/connect.ts';
import { services } from '../../src/client/resources.ts';
import type { Transport } from '../../src/client/transport.ts';
import { loadBalancerController } from '../../src/controllers/load-balancer/controller.ts';
import { addressPools } from '../../src/controllers/load-balancer/resource.ts';
import { runControllers, type RunningControllers } from '../../src/controllers/run.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { report, type Row } from './report.ts';

const count = Number(process.argv[2] ?? 50_000);
const waiters = Math.min(1000, count);
const parallel = 16;
const rows: Row[] = [];

const folder = await mkdtemp(join(tmpdir(), 'servicenet-lb-bench-'));
const main = new URL('../../src/main.ts', import.meta.url).pathname;
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
  const { offerAddresses } = await import('../../src/commands/default-pool.ts');
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
  await until(async () => (await assigned(run.metrics)) >= count, 50);
  const seconds = (performance.now() - started) / 1000;
  const used = process.cpuUsage(cpu);
  say('assignments', count / seconds, '/s', 'Cilium CI creates 278/s');
  say('CPU of the controller per assignment', (used.user + used.system) / 1000 / count, 'ms');
  say(
    'CPU of the server per assignment',
    (1000 * ((await cpuSeconds(child.pid ?? 0)) - serverCpu)) / count,
    'ms',
  );
  say('writes per assignment', writes() / count, '', 'creates included: 3');
  say('resident memory of the controller and this bench', process.memoryUsage().rss / 2 ** 20, 'MiB');

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
  times.sort((a, b) => a - b);
  say('one Service to its address, p50', times[150] ?? 0, 'ms');
  say('one Service to its address, p99', times[297] ?? 0, 'ms');
  await compare(clients, count + 300);
  await run.running.stop();

  const before = writes();
  started = performance.now();
  const restartCpu = process.cpuUsage();
  run = start(client);
  await until(async () => (await reconciled(run.metrics)) >= count + 300, 20);
  say(`restart into ${count + 300}: all looked at`, performance.now() - started, 'ms');
  const spent = process.cpuUsage(restartCpu);
  say('  CPU of the controller', (spent.user + spent.system) / 1000, 'ms');
  await sleep(1500);
  say('writes after the restart', writes() - before, '', '0');

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
  const queue = new PQueue({ concurrency: parallel });
  for (const { metadata } of holders) {
    void queue.add(() => clients.for(services).delete('default', metadata.name ?? ''));
  }
  await queue.onIdle();
  await until(async () => (await assigned(run.metrics)) >= 2 * waiters, 20);
  say(`${waiters} frees to ${waiters} waiters`, performance.now() - freeing, 'ms');
  await compare(clients, done);
  await run.running.stop();
  say('load average of the machine', loadavg()[0] ?? 0, '');
  await client.close();
  await report('load-balancer-http', rows);
}

interface Run {
  readonly running: RunningControllers;
  readonly metrics: Metrics;
}

function start(transport: Transport): Run {
  const definition = loadBalancerController();
  const metrics = new Metrics();
  const entry = {
    name: definition.name,
    start: definition.start.bind(definition),
    onByDefault: true,
    eventSource: 'servicenet-load-balancer',
  };
  const running = runControllers({ transport, catalog: [entry], log: pino({ enabled: false }), metrics });
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

/** A transport whose writes are counted, but for Events. */
async function connect(): Promise<{ client: Transport; writes: () => number }> {
  process.env['KUBECONFIG'] = kubeconfig;
  const inner = await createTransport({ kind: 'kubeconfig', path: kubeconfig });
  let writes = 0;
  const client: Transport = {
    server: inner.server,
    request: (method, path, options) => {
      if (method !== 'GET' && !path.includes('/events')) writes++;
      return inner.request(method, path, options);
    },
    stream: (path, options) => inner.stream(path, options),
    close: () => inner.close(),
  };
  return { client, writes: () => writes };
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

function say(name: string, value: number, unit: string, budget?: string): void {
  rows.push({ name, value, unit, ...(budget === undefined ? {} : { budget }) });
  process.stdout.write(`${name}: ${value.toFixed(1)} ${unit}\n`);
}
