/**
 * The DNS server as a process of its own: A queries by the CPU time that it takes for them, and the time from a
 * Service's create to its name resolving. `node test/bench/dns.ts [queries [Services]]`, by default 200,000 and 1000.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { startApiServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';
import { freePort } from '../support/free-port.ts';
import { DnsClient } from './dns-client.ts';
import { MeasuredProcess } from './measured-process.ts';
import { report } from './report.ts';

const queries = Number(process.argv[2] ?? 200_000);
const services = Number(process.argv[3] ?? 1000);
const creates = 100;

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
const server = new MeasuredProcess(process.execPath, [main, 'dns', ...flags]);
const client = await DnsClient.open(port);
const names = Array.from({ length: services }, (_, i) => `web-${i}`);
try {
  await client.untilResolved('web-0');
  const idle = await server.residentMiB();
  await client.ask(names, 20_000); // compiled by now
  const before = await server.cpuSeconds();
  await client.ask(names, queries);
  const seconds = (await server.cpuSeconds()) - before;

  const took: number[] = [];
  for (let i = 0; i < creates; i++) {
    const name = `new-${i}`;
    const started = performance.now();
    await createService(name);
    await client.untilResolved(name);
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
    {
      name: 'resident memory of the server after the queries',
      value: await server.residentMiB(),
      unit: 'MiB',
    },
  ]);
} finally {
  client.close();
  await server.stop();
  await api.stop();
  await rm(folder, { recursive: true });
}

async function createService(name: string): Promise<void> {
  await create('/api/v1/namespaces/shop/services', { metadata: { name }, spec: { ports: [{ port: 80 }] } });
}

async function create(path: string, body: object): Promise<void> {
  const answer = await call(api.client, 'POST', path, { body });
  if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
}
