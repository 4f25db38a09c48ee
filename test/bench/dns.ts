/**
 * The DNS server as a process of its own: A queries by the CPU time that it takes for them, and the time from a
 * Service's create to its name resolving. `node test/bench/dns.ts [queries [Services]]`, by default 200,000 and 1000.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { spawn } from 'node:child_process';
import { encode } from 'dns-packet';
import { startApiServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';
import { report } from './report.ts';

const queries = Number(process.argv[2] ?? 200_000);
const services = Number(process.argv[3] ?? 1000);
const creates = 100;
const inFlight = 64;
/** Of /proc/PID/stat: `getconf CLK_TCK`, which is 100 on every Linux. */
const ticksPerSecond = 100;

const api = await startApiServer({ controllers: [], nodes: 0 });
const folder = await mkdtemp(join(tmpdir(), 'servicenet-dns-'));
const port = await freePort();
const kubeconfig = join(folder, 'kubeconfig');
await writeFile(kubeconfig, api.kubeconfig, { mode: 0o600 });
await create('/api/v1/namespaces', { metadata: { name: 'shop' } });
for (let i = 0; i < services; i++) await createService(`web-${i}`);
const main = new URL('../../src/main.js', import.meta.url).pathname;
const flags = [
  '--kubeconfig',
  kubeconfig,
  '--port',
  String(port),
  '--upstream',
  '',
  '--metrics-bind-address',
  '0',
];
const server = spawn(process.execPath, [main, 'dns', ...flags], { stdio: 'inherit' });
const socket = createSocket('udp4');
try {
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  await untilResolved('web-0');
  const idle = await residentMiB();
  await ask(20_000); // compiled by now
  const before = await cpuSeconds();
  await ask(queries);
  const seconds = (await cpuSeconds()) - before;

  const took: number[] = [];
  for (let i = 0; i < creates; i++) {
    const name = `new-${i}`;
    const started = performance.now();
    await createService(name);
    await untilResolved(name);
    took.push(performance.now() - started);
  }
  took.sort((a, b) => a - b);
  const at = (part: number): number => took[Math.min(took.length - 1, Math.floor(took.length * part))] ?? 0;
  await report('dns', [
    {
      name: 'A queries per second of CPU',
      value: queries / seconds,
      unit: '/s',
      cpu: (seconds / queries) * 1e6,
      budget: '≥ 40,000/s',
    },
    { name: 'Service create → its name resolves, p50', value: at(0.5), unit: 'ms', budget: '≤ 50 ms' },
    { name: 'Service create → its name resolves, p99', value: at(0.99), unit: 'ms' },
    { name: `resident memory of the server with ${services} Services, idle`, value: idle, unit: 'MiB' },
    { name: 'resident memory of the server after the queries', value: await residentMiB(), unit: 'MiB' },
  ]);
} finally {
  socket.close();
  server.kill();
  await api.stop();
  await rm(folder, { recursive: true });
}

/** Asks so many times, some at once; what gets lost is asked again. */
async function ask(count: number): Promise<void> {
  const packets = Array.from({ length: services }, (_, i) => query(`web-${i}`));
  let sent = 0;
  let answered = 0;
  const send = (): void => socket.send(packets[sent++ % packets.length] ?? '', port, '127.0.0.1');
  const next = (): void => {
    if (sent < count) send();
  };
  await new Promise<void>((resolve) => {
    const lost = setInterval(send, 1000);
    socket.on('message', () => {
      answered++;
      if (answered >= count) {
        clearInterval(lost);
        resolve();
      } else next();
    });
    for (let i = 0; i < inFlight; i++) next();
  });
  socket.removeAllListeners('message');
}

async function untilResolved(name: string): Promise<void> {
  const packet = query(name);
  await new Promise<void>((resolve) => {
    const send = (): void => socket.send(packet, port, '127.0.0.1');
    // Before the server listens, nothing answers.
    const again = setInterval(send, 100);
    socket.on('message', (bytes: Buffer) => {
      if (bytes.readUInt16BE(6) === 0) {
        setTimeout(send, 1);
        return;
      }
      clearInterval(again);
      resolve();
    });
    send();
  });
  socket.removeAllListeners('message');
}

function query(name: string): Buffer {
  const questions = [{ name: `${name}.shop.svc.cluster.local`, type: 'A' as const }];
  return encode({ type: 'query', id: 1, flags: 0x0100, questions });
}

async function createService(name: string): Promise<void> {
  await create('/api/v1/namespaces/shop/services', { metadata: { name }, spec: { ports: [{ port: 80 }] } });
}

async function create(path: string, body: object): Promise<void> {
  const answer = await call(api.client, 'POST', path, { body });
  if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
}

/** User and system time of all threads of the server. */
async function cpuSeconds(): Promise<number> {
  const stat = await readFile(`/proc/${server.pid ?? 0}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

async function residentMiB(): Promise<number> {
  const status = await readFile(`/proc/${server.pid ?? 0}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024;
}

async function freePort(): Promise<number> {
  const probe = createSocket('udp4');
  probe.bind(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port: free } = probe.address();
  probe.close();
  return free;
}
