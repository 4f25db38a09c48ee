/**
 * servicenet beside programs that it replaces, in one run on one machine: memory at rest, and DNS against CoreDNS.
 * `npm run bench:peers [queries [Services]]`, by default 200,000 and 1,000; `BENCH_DIST=1` measures what `npm run build`
 * has made. The first run builds CoreDNS by the go command, which takes minutes; with `--alone`, it is left out. All
 * traffic stays in a network namespace of its own, which an ordinary user may make.
 */
import { spawnSync } from 'node:child_process';
import { writeFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { program } from '../cluster/programs.ts';
import { freePort } from '../support/free-port.ts';
import { Connection } from './connection.ts';
import { DnsClient } from './dns-client.ts';
import { MeasuredProcess } from './measured-process.ts';
import { report, type Row } from './report.ts';
import { ServerProcess } from './server-process.ts';

/** Names the program of CoreDNS to the process in the namespace; empty for none. */
const variable = 'BENCH_COREDNS';
/** Milliseconds until a program is at rest. */
const restMs = 20_000;

const coredns = process.env[variable];
if (coredns === undefined) {
  const inside = [
    'sh',
    '-c',
    'ip link set lo up && exec "$@"',
    'sh',
    process.execPath,
    ...process.argv.slice(1),
  ];
  const env = { ...process.env, [variable]: process.argv.includes('--alone') ? '' : program('coredns') };
  const { status } = spawnSync('unshare', ['--map-root-user', '--net', ...inside], { stdio: 'inherit', env });
  process.exit(status ?? 1);
}

const numbers = process.argv.slice(2).flatMap((word) => (word === '--alone' ? [] : [Number(word)]));
const [queries = 200_000, services = 1000] = numbers;
const names = Array.from({ length: services }, (_, i) => `web-${i}`);
const main = new URL(
  process.env['BENCH_DIST'] === '1' ? '../../dist/main.js' : '../../src/main.js',
  import.meta.url,
).pathname;

const folder = await mkdtemp(join(tmpdir(), 'servicenet-peers-'));
const server = await ServerProcess.start(['--network', 'off', '--nodes', '0', '--log-level', 'error'], []);
try {
  const ca = join(folder, 'ca.crt');
  const token = join(folder, 'token');
  await writeFile(ca, server.target.ca);
  await writeFile(token, server.target.token, { mode: 0o600 });
  const account = ['--server', server.target.url, '--token-file', token, '--certificate-authority', ca];
  const access = { 'a service account': account, 'a kubeconfig': ['--kubeconfig', server.kubeconfig] };
  const addresses = [{ type: 'InternalIP', address: '127.0.0.1' }];
  await create('/api/v1/nodes', [{ metadata: { name: 'node-0' }, status: { addresses } }]);
  const namespaces = ['servicenet-system', 'shop'].map((name) => ({ metadata: { name } }));
  await create('/api/v1/namespaces', namespaces);

  const rows: Row[] = [];
  for (const [how, flags] of Object.entries(access)) {
    for (const command of ['dns', 'controller', 'node', 'router'] as const) {
      const value = await atRest(() => start(command, flags));
      rows.push({ name: `${command} at rest, with ${how}`, value, unit: 'MiB' });
    }
  }
  const program = async (cache: string): Promise<DnsServer> => {
    const port = await freePort();
    const file = join(folder, 'Corefile');
    const zone = `kubernetes cluster.local {\nkubeconfig ${server.kubeconfig}\n}`;
    await writeFile(file, `.:${port} {\nbind 127.0.0.1\n${zone}\n${cache}\n}\n`);
    return { port, process: new MeasuredProcess(coredns, ['-conf', file]) };
  };
  if (coredns !== '') {
    const value = await atRest(async () => (await program('')).process);
    rows.push({ name: 'CoreDNS at rest, with a kubeconfig', value, unit: 'MiB' });
  }
  const made = names.map((name) => ({ metadata: { name }, spec: { ports: [{ port: 80 }] } }));
  await create('/api/v1/namespaces/shop/services', made);
  const compared: readonly (readonly [string, () => Promise<DnsServer>])[] = [
    ['servicenet dns', () => startDns(account)],
    ...(coredns === ''
      ? []
      : ([
          ['CoreDNS', () => program('')],
          ['CoreDNS with cache', () => program('cache 30')],
        ] as const)),
  ];
  for (const [name, run] of compared) rows.push(...(await measureDns(name, await run())));
  await report('peers', rows);
} finally {
  await server.stop();
  await rm(folder, { recursive: true });
}

/** A DNS server, and its port. */
interface DnsServer {
  readonly port: number;
  readonly process: MeasuredProcess;
}

async function startDns(flags: readonly string[]): Promise<DnsServer> {
  const port = await freePort();
  const own = ['--bind-address', '127.0.0.1', '--port', String(port), '--upstream', ''];
  return { port, process: ours('dns', [...own, '--metrics-bind-address', await free(), ...flags]) };
}

/** Starts one of our programs as it runs in a cluster. */
async function start(
  command: 'dns' | 'controller' | 'node' | 'router',
  flags: readonly string[],
): Promise<MeasuredProcess> {
  if (command === 'dns') return (await startDns(flags)).process;
  const features = ['--features', 'proxy,announce,policy,egress', '--cluster-cidr', '10.128.0.0/9'];
  const own = {
    controller: [],
    node: [...features, '--node-name', 'node-0'],
    router: ['--bind-address', '127.0.0.1', '--http-port', '18080', '--https-port', '18443'],
  }[command];
  return ours(command, [...own, '--metrics-bind-address', await free(), ...flags]);
}

/** With the flag of the image. */
function ours(command: string, flags: readonly string[]): MeasuredProcess {
  const log = ['--log-level', 'error'];
  return new MeasuredProcess(process.execPath, ['--max-semi-space-size=4', main, command, ...flags, ...log]);
}

async function free(): Promise<string> {
  return `127.0.0.1:${await freePort()}`;
}

/** The second start: at the first one, Node.js keeps what it compiles. */
async function atRest(run: () => Promise<MeasuredProcess>): Promise<number> {
  const first = await run();
  await delay(restMs / 4);
  await first.stop();
  const second = await run();
  await delay(restMs);
  const value = await second.residentMiB();
  await second.stop();
  return value;
}

async function measureDns(name: string, { port, process: measured }: DnsServer): Promise<Row[]> {
  const client = await DnsClient.open(port);
  try {
    await client.untilResolved('web-0');
    await client.ask(names, 20_000); // compiled by now
    const before = await measured.cpuSeconds();
    await client.ask(names, queries);
    const seconds = (await measured.cpuSeconds()) - before;
    const cpu = (seconds / queries) * 1e6;
    return [
      { name: `${name}: A queries per second of CPU`, value: queries / seconds, unit: '/s', cpu },
      { name: `${name}: memory after them`, value: await measured.residentMiB(), unit: 'MiB' },
    ];
  } finally {
    client.close();
    await measured.stop();
  }
}

/** On a connection of its own: the server closes one that is idle while programs rest. */
async function create(path: string, bodies: readonly object[]): Promise<void> {
  const connection = await Connection.open(server.target);
  for (const body of bodies) await connection.request({ method: 'POST', path, body: JSON.stringify(body) });
  connection.close();
}
