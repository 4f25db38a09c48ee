/**
 * `--workers` of `servicenet dns` and `servicenet router`: two against one, in turns, each worker held to half a core by
 * a cgroup. `node test/bench/workers.ts [seconds [share of a core]]` as root, by default 4 and 0.5. On two cores
 * clients need more than one of them: 0.25 leaves them that. All traffic stays in a
 * network namespace of its own.
 */
import { fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startApiServer } from '../../src/testing/index.ts';
import { freePort } from '../support/free-port.ts';
import { Objects, portOf } from '../support/router/router.ts';
import { DnsClient } from './dns-client.ts';
import { load, median } from './http-load.ts';
import { cpuSecondsOf, MeasuredProcess } from './measured-process.ts';
import { report, type Row } from './report.ts';

/** Of a Pod; the namespace's own. */
const podAddress = '10.99.0.1';
const services = 1000;
const rounds = 3;
/** Senders, and queries of each at a time: the kernel gives a sender to one worker. */
const senders = 16;
const atOnce = 16;
/** Short: in the part of a period in which all workers run, clients have more to do than on the average. */
const periodUs = 20_000;

const [seconds = 4, share = 0.5] = process.argv.slice(2).map(Number);
const inside = 'BENCH_WORKERS_INSIDE';

interface Measured {
  readonly perSecond: number;
  readonly perCpuSecond: number;
  /** MiB of each worker, with its part of what processes share. */
  readonly pss: number;
}

type Command = 'dns' | 'router';

if (process.argv[2] === 'backend') {
  const body = Buffer.alloc(1024, 'a');
  const server = createServer((_, response) => response.end(body)).listen(0, podAddress);
  await once(server, 'listening');
  process.send?.(portOf(server));
} else if (process.env[inside] === undefined) {
  const group = await makeGroup(`clients-${process.pid}`, false);
  const network = `ip link set lo up && ip addr add ${podAddress}/32 dev lo`;
  const script = `echo $$ >${group}/cgroup.procs && ${network} && exec "$@"`;
  const words = [
    '--map-root-user',
    '--net',
    'sh',
    '-c',
    script,
    'sh',
    process.execPath,
    ...process.argv.slice(1),
  ];
  const { status } = spawnSync('unshare', words, {
    stdio: 'inherit',
    env: { ...process.env, [inside]: '1' },
  });
  await rmdir(group);
  process.exitCode = status ?? 1;
} else await compare();

async function compare(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'servicenet-workers-'));
  const api = await startApiServer({ controllers: [], nodes: 0 });
  const backend = fork(import.meta.filename, ['backend']);
  try {
    await writeFile(join(folder, 'kubeconfig'), api.kubeconfig, { mode: 0o600 });
    const [backendPort] = (await once(backend, 'message')) as [number];
    const objects = new Objects(api.client);
    await objects.create('/api/v1/namespaces', { metadata: { name: 'shop' } });
    const names = Array.from({ length: services }, (_, i) => `web-${i}`);
    for (const name of names) {
      const spec = { ports: [{ name: 'http', port: 80 }] };
      await objects.create('/api/v1/namespaces/shop/services', { metadata: { name }, spec });
    }
    await objects.create('/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices', {
      metadata: { name: 'web-0-1', labels: { 'kubernetes.io/service-name': 'web-0' } },
      ...{ addressType: 'IPv4', endpoints: [{ addresses: [podAddress] }] },
      ports: [{ name: 'http', port: backendPort, protocol: 'TCP' }],
    });
    await objects.ingress('web', 'web.test', 'web-0');

    const rows: Row[] = [];
    for (const command of ['dns', 'router'] as const) {
      const results: Readonly<Record<'1' | '2', Measured[]>> = { 1: [], 2: [] };
      for (let round = 0; round < rounds; round++) {
        for (const workers of [1, 2] as const) {
          results[workers].push(await measure(command, workers, join(folder, 'kubeconfig'), names));
        }
      }
      rows.push(...compared(command, results[1], results[2]));
    }
    await report('workers', rows);
  } finally {
    backend.kill();
    await api.stop();
    await rm(folder, { recursive: true });
  }
}

function compared(command: Command, one: readonly Measured[], two: readonly Measured[]): Row[] {
  const of = (results: readonly Measured[], member: keyof Measured): number =>
    median(results.map((result) => result[member]));
  const ratio = (member: keyof Measured): number => of(two, member) / of(one, member);
  const what = command === 'dns' ? 'queries' : 'requests';
  return [
    { name: `${command}: ${what}, one worker`, value: of(one, 'perSecond'), unit: '/s' },
    { name: `${command}: ${what}, two workers`, value: of(two, 'perSecond'), unit: '/s' },
    { name: `${command}: two by one`, value: ratio('perSecond'), unit: '', budget: '≥ 1.6' },
    { name: `${command}: ${what} for each second of CPU, one`, value: of(one, 'perCpuSecond'), unit: '/s' },
    { name: `${command}: ${what} for each second of CPU, two`, value: of(two, 'perCpuSecond'), unit: '/s' },
    { name: `${command}: the same, two by one`, value: ratio('perCpuSecond'), unit: '', budget: '≥ 0.9' },
    { name: `${command}: PSS of each of two workers then`, value: of(two, 'pss'), unit: 'MiB' },
  ];
}

/** One server from its start to its end, with the flag of the image. */
async function measure(
  command: Command,
  workers: number,
  kubeconfig: string,
  names: readonly string[],
): Promise<Measured> {
  const [port, other, metrics] = [await freePort(), await freePort(), await freePort()];
  const own = {
    dns: ['--port', String(port), '--upstream', ''],
    router: [
      ...['--http-port', String(port), '--https-port', String(other), '--watch-ingress-without-class'],
      ...['--max-client-requests', '0', '--lease-namespace', 'default'],
    ],
  }[command];
  const { pathname: main } = new URL(
    process.env['BENCH_DIST'] === '1' ? '../../dist/main.js' : '../../src/main.js',
    import.meta.url,
  );
  const server = new MeasuredProcess(process.execPath, [
    ...['--max-semi-space-size=4', main, command, ...own, '--workers', String(workers)],
    ...['--kubeconfig', kubeconfig, '--metrics-bind-address', `127.0.0.1:${metrics}`, '--log-level', 'error'],
  ]);
  const held: string[] = [];
  try {
    await untilReady(`http://127.0.0.1:${metrics}/readyz`);
    // Compiled by then.
    await work(command, port, names, 2 * seconds);
    const pids = await server.pids();
    if (pids.length !== workers) throw new Error(`${pids.length} processes for ${workers} workers`);
    for (const pid of pids) {
      const group = await makeGroup(String(pid), true);
      held.push(group);
      await writeFile(join(group, 'cgroup.procs'), String(pid));
    }
    await work(command, port, names, 1);
    const before = await cpuSecondsOf(pids);
    const perSecond = await work(command, port, names, seconds);
    const cpu = (await cpuSecondsOf(pids)) - before;
    const pss = await Promise.all(pids.map((pid) => pssMiB(pid)));
    return {
      perSecond,
      perCpuSecond: (perSecond * seconds) / cpu,
      pss: pss.reduce((sum, one) => sum + one, 0) / pss.length,
    };
  } finally {
    await server.stop();
    for (const group of held) await rmdir(group);
  }
}

async function untilReady(url: string): Promise<void> {
  const isReady = async (): Promise<boolean> => (await fetch(url)).ok;
  while (!(await isReady().catch(() => false))) await delay(100);
}

/** @returns answers a second. */
async function work(
  command: Command,
  port: number,
  names: readonly string[],
  forSeconds: number,
): Promise<number> {
  if (command === 'router') return (await load(port, 'web.test', forSeconds)).perSecond;
  const clients = await Promise.all(Array.from({ length: senders }, () => DnsClient.open(port)));
  const answers = await Promise.all(clients.map((one) => one.askFor(names, forSeconds * 1000, atOnce)));
  for (const one of clients) one.close();
  return answers.reduce((sum, count) => sum + count, 0) / forSeconds;
}

async function pssMiB(pid: number): Promise<number> {
  const [, kB = '0'] = /^Pss:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? [];
  return Number(kB) / 1024;
}

/**
 * Makes a cgroup for processes that get what they may have whatever else the machine does.
 *
 * @param held to the share of a core.
 */
async function makeGroup(name: string, held: boolean): Promise<string> {
  const isUnified = existsSync('/sys/fs/cgroup/cgroup.controllers');
  const group = join(isUnified ? '/sys/fs/cgroup' : '/sys/fs/cgroup/cpu', `servicenet-bench-${name}`);
  await mkdir(group);
  const quotaUs = Math.round(share * periodUs);
  const weight = isUnified ? { 'cpu.weight': 10_000 } : { 'cpu.shares': 262_144 };
  const quota = isUnified
    ? { 'cpu.max': `${quotaUs} ${periodUs}` }
    : { 'cpu.cfs_period_us': periodUs, 'cpu.cfs_quota_us': quotaUs };
  for (const [file, value] of Object.entries({ ...weight, ...(held ? quota : {}) })) {
    await writeFile(join(group, file), String(value));
  }
  return group;
}
