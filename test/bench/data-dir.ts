/**
 * What `--data-dir` costs, as clients see it: creates, puts and applies at 1, 16 and 64 writers, in memory and durable
 * (apply beside put shows what ownership costs), what 50,000 Services with managedFields take of memory, and how long
 * the server takes to be ready again with them (and their 50,000 IPAddresses: 100,000 objects), after SIGTERM and after
 * kill -9, and to answer its first list. The column µs is the CPU time of the server for one operation.
 *
 * Run: node test/bench/data-dir.ts [--services 50000] [--only writes,restarts] [--folder /var/tmp]
 * [--node-flag=--cpu-prof]
 * Prints a table and writes bench-results/data-dir.json. The folder is where the data directory is made, for a disk that
 * is not below the system's temporary directory.
 */
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Call, Connection } from './connection.ts';
import { report, type Row } from './report.ts';
import { connect, measure, rateRow, serverAlone, service, services as path } from './requests.ts';
import { ServerProcess } from './server-process.ts';

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '50000' },
    folder: { type: 'string', default: tmpdir() },
    only: { type: 'string', default: 'writes,restarts' },
    'node-flag': { type: 'string', multiple: true, default: [] },
  },
});
const total = Number(values.services);
const parts = new Set(values.only.split(','));
const rows: Row[] = [];

/** Calls of the warm-up, and of one writer; more writers send more. */
const calls = 2000;
const callsOf = new Map([
  [1, calls],
  [16, 5000],
  [64, 10_000],
]);

/** Creates, then puts, then applies of the same Services. */
async function writes(server: ServerProcess, store: string): Promise<void> {
  // What is measured first must not pay for the compiler alone.
  const first = await connect(server, 16);
  await measure(server, first, calls, (i) => create(`warm-${i}`));
  await measure(server, first, calls, (i) => put(`warm-${i}`));
  await measure(server, first, calls, (i) => apply(`warm-${i}`, 'first'));
  close(first);
  for (const [writers, count] of callsOf) {
    const connections = await connect(server, writers);
    const each = async (verb: string, call: (i: number) => Call): Promise<void> => {
      const measured = await measure(server, connections, count, call);
      rows.push(rateRow(`${store}: ${verb}, ${writers} at a time`, measured));
      if (verb !== 'creates') return;
      rows.push({ name: `${store}: create p99, ${writers} at a time`, value: measured.p99, unit: 'ms' });
    };
    const name = (i: number): string => `w${writers}-${i}`;
    await each('creates', (i) => create(name(i)));
    await each('puts', (i) => put(name(i)));
    // The first apply of a manager makes its entry in managedFields, the second is the usual one.
    await measure(server, connections, count, (i) => apply(name(i), 'first'));
    await each('applies', (i) => apply(name(i), 'second'));
    close(connections);
  }
}

const create = (name: string): Call => ({ method: 'POST', path, body: service(name) });
const put = (name: string): Call => ({
  method: 'PUT',
  path: `${path}/${name}`,
  body: service(name, { round: 'put' }),
});
const apply = (name: string, round: string): Call => ({
  method: 'PATCH',
  path: `${path}/${name}?fieldManager=bench-apply&force=true`,
  contentType: 'application/apply-patch+yaml',
  body: service(name, { round }),
});

function close(connections: readonly Connection[]): void {
  for (const connection of connections) connection.close();
}

async function start(flags: readonly string[]): Promise<ServerProcess> {
  return ServerProcess.start([...serverAlone, '--log-level', 'error', ...flags], values['node-flag']);
}

/** Fills a directory, then starts on it again and again. */
async function restarts(directory: string): Promise<void> {
  const flags = ['--data-dir', directory];
  const filling = await start(flags);
  const connections = await connect(filling, 64);
  await measure(filling, connections, total, (i) => create(`s${i}`));
  close(connections);
  const objects = `${total} Services and ${total} IPAddresses`;
  rows.push({ name: `memory, ${objects}, durable`, value: await filling.residentMiB(), unit: 'MiB' });
  rows.push({ name: 'the directory then', value: (await bytesIn(directory)) / 2 ** 20, unit: 'MiB' });
  await filling.stop();
  for (const how of ['SIGTERM', 'SIGKILL'] as const) {
    const again = await start(flags);
    await restarted(`restart with ${objects}`, again);
    await firstAnswers(again);
    rows.push({ name: 'memory then', value: await again.residentMiB(), unit: 'MiB' });
    await again.stop(how);
  }
  const last = await start(flags);
  await restarted('restart after kill -9', last);
  await last.stop();
}

async function restarted(name: string, server: ServerProcess): Promise<void> {
  rows.push({ name, value: server.startMs, unit: 'ms', cpu: await server.cpu() });
}

/** One Service, then all of them: objects are decoded when they are read. */
async function firstAnswers(server: ServerProcess): Promise<void> {
  const connections = await connect(server, 1);
  const each = async (name: string, at: string): Promise<void> => {
    const { p99, cpu } = await measure(server, connections, 1, () => ({ method: 'GET', path: at }));
    rows.push({ name, value: p99, unit: 'ms', cpu });
  };
  await each('its first get', `${path}/s0`);
  await each('its first list of all Services', path);
  await each('its second list of all Services', path);
  close(connections);
}

async function bytesIn(directory: string): Promise<number> {
  const names = await readdir(directory);
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(directory, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

const root = await mkdtemp(join(values.folder, 'servicenet-bench-'));
try {
  const stores: [string, string[]][] = [
    ['memory', []],
    ['--data-dir', ['--data-dir', join(root, 'writes')]],
  ];
  for (const [store, flags] of parts.has('writes') ? stores : []) {
    const server = await start(flags);
    await writes(server, store);
    await server.stop();
  }
  if (parts.has('restarts')) await restarts(join(root, 'restarts'));
} finally {
  await rm(root, { recursive: true });
}
await report('data-dir', rows);
