/**
 * Memory and CPU of `servicenet node` in a network namespace, against a `servicenet up` on the same machine: `node
 * test/bench/forwarding-agent.ts [services…]`, by default 1000 10000 30000, with 10 endpoints each. With `--processes`:
 * the memory of one process for all features against that of one for each. Needs unshare, nft and curl, and no root.
 * Prints a table and writes bench-results/forwarding-agent.json or node-processes.json.
 */
import { writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { missingFor } from '../network/support/gate.ts';
import type { Machine } from '../network/support/machine.ts';
import { startNetwork } from '../network/support/network.ts';
import { ApiRelay, NodeProgram } from '../network/support/node-program.ts';
import { createServices, createShop } from './forwarding-objects.ts';
import { report, type Row } from './report.ts';
import { ServerProcess } from './server-process.ts';

const endpointsEach = 10;
/** Milliseconds after a sync until all that it caused is over. */
const settleTime = 5000;
/** Milliseconds without any change, in which CPU time is measured. */
const idleTime = 20_000;

const missing = missingFor('user');
if (missing !== '') {
  console.error(`missing: ${missing}`);
  process.exit(1);
}
const isOfProcesses = process.argv.includes('--processes');
const asked = process.argv.slice(2).flatMap((word) => (word === '--processes' ? [] : [Number(word)]));
const rows: Row[] = [];
for (const count of asked.length > 0 ? asked : [1000, 10_000, 30_000])
  rows.push(...(await onNode(count, isOfProcesses ? compareProcesses : measure)));
await report(isOfProcesses ? 'node-processes' : 'forwarding-agent', rows);

/** Measures programs on a node of a cluster with so many Services. */
async function onNode(
  count: number,
  run: (name: string, count: number, machine: Machine, start: Start) => Promise<Row[]>,
): Promise<Row[]> {
  const flags = ['--nodes', '0', '--controllers', '', '--service-cluster-ip-range', '10.96.0.0/12'];
  const server = await ServerProcess.start(flags, []);
  const network = await startNetwork('user', { 'node-0': [] });
  try {
    await createShop(server.target, '192.0.2.11');
    await createServices(server.target, { to: count, endpointsEach });
    const { machine } = network.at('node-0');
    const relay = await ApiRelay.open(machine, server.target.url);
    const name = `${count.toLocaleString('en-US')} Services × ${endpointsEach}`;
    // As in a Pod, with the files of a service account.
    const { ca, token } = server.target;
    await writeFile(relay.file('ca.crt'), ca);
    await writeFile(relay.file('token'), token);
    const access = ['--server', relay.url, '--token-file', relay.file('token')];
    access.push('--certificate-authority', relay.file('ca.crt'));
    const ofNode = ['--node-name', 'node-0', '--cluster-cidr', '10.128.0.0/9'];
    const start: Start = (file, ...flags) =>
      new NodeProgram(machine, relay, file, ...access, ...ofNode, ...flags);
    try {
      return await run(name, count, machine, start);
    } finally {
      await relay.close();
    }
  } finally {
    await network.close();
    await server.stop();
  }
}

/** Starts an agent; its PID stands in a file of the name. */
type Start = (file: string, ...flags: readonly string[]) => NodeProgram;

async function compareProcesses(name: string, _: number, machine: Machine, start: Start): Promise<Row[]> {
  const each = [
    ['proxy', 10_249],
    ['announce', 10_263],
    ['policy', 10_264],
  ] as const;
  const row = (what: string, value: number): Row => ({ name: `${name}: ${what}`, value, unit: 'MiB' });
  const measured = async (what: string, agents: readonly NodeProgram[]): Promise<Row[]> => {
    await untilSynced(machine);
    await delay(settleTime + idleTime);
    const figures = await Promise.all(agents.map((agent) => agent.memory()));
    await Promise.all(agents.map((agent) => agent.signal('TERM')));
    const sum = (of: 'pssMiB' | 'residentMiB'): number => figures.reduce((all, one) => all + one[of], 0);
    return [
      row(`${what}, resident, with nft`, sum('residentMiB')),
      row(`${what}, PSS, with nft`, sum('pssMiB')),
    ];
  };
  const features = each.map(([feature]) => feature).join(',');
  const whole = (file: string): NodeProgram => start(file, `--features=${features}`);
  const apart = (): NodeProgram[] =>
    each.map(([feature, port]) =>
      start(feature, `--features=${feature}`, `--metrics-bind-address=127.0.0.1:${port}`),
    );
  const warming = whole('warming');
  await untilSynced(machine);
  await warming.signal('TERM');
  return [...(await measured('one process', [whole('whole')])), ...(await measured('three', apart()))];
}

async function measure(name: string, count: number, machine: Machine, start: Start): Promise<Row[]> {
  const of10k = (budget: string): { budget?: string } => (count === 10_000 ? { budget } : {});
  const warming = start('warming'); // Node.js keeps what it compiled.
  await untilSynced(machine);
  await warming.signal('TERM');
  await start('cleaning', '--cleanup').ended;
  const loading = start('loading');
  await untilSynced(machine);
  const loaded = await loading.usage();
  await delay(settleTime);
  const resting = await loading.usage();
  await delay(idleTime);
  const idle = await loading.usage();
  await loading.signal('TERM');
  const again = start('again');
  await untilSynced(machine);
  const restarted = await again.usage();
  await delay(idleTime);
  const settled = await again.usage();
  await again.signal('TERM');
  return [
    {
      name: `${name}: agent's CPU from its start to the end of the first sync`,
      value: loaded.cpuMs,
      unit: 'ms',
    },
    { name: `${name}: resident after the first sync`, value: loaded.residentMiB, unit: 'MiB' },
    {
      name: `${name}: resident ${(settleTime + idleTime) / 1000} s later`,
      value: idle.residentMiB,
      unit: 'MiB',
      ...of10k('≤ 200 MiB'),
    },
    { name: `${name}: resident at most`, value: idle.highestMiB, unit: 'MiB' },
    {
      name: `${name}: CPU when idle`,
      value: ((idle.cpuMs - resting.cpuMs) / idleTime) * 100,
      unit: '%',
      ...of10k('≤ 0.1 %'),
    },
    { name: `${name}: agent's CPU of a restart that changes nothing`, value: restarted.cpuMs, unit: 'ms' },
    {
      name: `${name}: resident ${idleTime / 1000} s after the restart`,
      value: settled.residentMiB,
      unit: 'MiB',
    },
    { name: `${name}: resident at most, restarted`, value: settled.highestMiB, unit: 'MiB' },
  ];
}

async function untilSynced(machine: Machine): Promise<void> {
  for (;;) {
    const { stdout } = await machine.host.exec('curl', [
      '-sS',
      '--max-time',
      '60',
      'http://127.0.0.1:10249/metrics',
    ]);
    if (/^kubeproxy_sync_proxy_rules_last_timestamp_seconds\{ip_family="IPv4"\} [1-9]/m.test(stdout)) return;
    await delay(500);
  }
}
