/**
 * What it takes to bring Services into the kernel, by nft, in a network namespace of its own: `node
 * test/bench/forwarding-kernel.ts [services…]`, by default 1000 10000 30000, with endpoints on 50 nodes. Needs unshare and
 * nft, and no root. The second layout is a chain for each Service, as kube-proxy has it, generated here for comparison
 * only; it is left out beyond 10,000 Services, where it takes minutes. Milliseconds are those that passed; CPU is that of
 * this process, of nft and of the kernel for them. Of changes it is the median.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { localHost } from '../../src/host/local-host.ts';
import { ForwardingPlanner, type ServiceInput } from '../../src/network/forwarding/planner.ts';
import { NftablesWriter } from '../../src/node/nftables/writer.ts';
import { isRecord } from '../../src/objects/json.ts';
import { missingFor } from '../network/support/gate.ts';
import { startNetwork } from '../network/support/network.ts';
import { endpointSlice, forwardingNode, forwardingOptions, service } from '../network/support/objects.ts';
import { report, type Row } from './report.ts';

const perService = 10;
const nodeCount = 50;
/** Changes of each kind. */
const times = 15;

/** What DESIGN.md asks of 10,000 Services in our layout. */
const budgets: Readonly<Record<string, string>> = { load: '≤ 2,500 ms', change: '≤ 25 ms' };

/** Milliseconds. */
interface Took {
  readonly passed: number;
  readonly cpu: number;
}

const layouts = { elements: ours, 'a chain per Service': chainPerService };
type Layout = keyof typeof layouts;

const [first, ...others] = process.argv.slice(2);
if (first === '--inside') {
  const [layout, count] = others;
  const measure = layout === 'elements' ? layouts.elements : layouts['a chain per Service'];
  process.stdout.write(JSON.stringify(await measure(Number(count))));
} else {
  const missing = missingFor('user');
  if (missing !== '') {
    console.error(`missing: ${missing}`);
    process.exit(1);
  }
  const asked = process.argv.slice(2).map(Number);
  const rows: Row[] = [];
  for (const count of asked.length > 0 ? asked : [1000, 10_000, 30_000]) {
    rows.push(...(await measureInside('elements', count)));
    if (count <= 10_000) rows.push(...(await measureInside('a chain per Service', count)));
  }
  await report('forwarding-kernel', rows);
}

/** Measures in a process of its own, inside a namespace. */
async function measureInside(layout: Layout, services: number): Promise<readonly Row[]> {
  const network = await startNetwork('user', { 'node-1': [] });
  try {
    const file = fileURLToPath(import.meta.url);
    const words = [...network.at('node-1').enter, process.execPath, '--max-semi-space-size=4', file];
    const [program, ...args] = [...words, '--inside', layout, String(services)];
    const { stdout } = await promisify(execFile)(program, args);
    const took: unknown = JSON.parse(stdout);
    return Object.entries(isRecord(took) ? took : {}).flatMap(([name, measured]) => {
      if (!isRecord(measured)) return [];
      const budget = layout === 'elements' && services === 10_000 ? budgets[name] : undefined;
      return {
        name: `${services.toLocaleString('en-US')} Services × ${perService}, ${layout}: ${name}`,
        ...{ value: Number(measured['passed']), unit: 'ms', cpu: Number(measured['cpu']) * 1000 },
        ...(budget === undefined ? {} : { budget }),
      };
    });
  } finally {
    await network.close();
  }
}

/** A Service by its number, with its endpoints; the fifth may have moved. */
function input(i: number, moved = false): ServiceInput {
  const spec = { clusterIPs: [address(10, 96, i)], ports: [{ port: 80, targetPort: 8080 }] };
  const endpoints = Array.from({ length: perService }, (_, number) => {
    const pod = address(10, 240, i * perService + number);
    return {
      address: moved && number === 4 ? '10.250.0.1' : pod,
      node: `node-${(i * perService + number) % nodeCount}`,
    };
  });
  const slices = [endpointSlice('IPv4', endpoints, 8080, `web-${i}`)];
  return { key: `shop/web-${i}`, service: service(spec, `web-${i}`), slices };
}

/** `a.b.0.1` plus a number below 2^24. */
function address(a: number, b: number, plus: number): string {
  const value = (a << 24) + (b << 16) + plus + 1;
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.');
}

async function ours(count: number): Promise<Record<string, Took>> {
  const node = forwardingNode('node-1', { IPv4: '192.0.2.11', IPv6: '2001:db8::b' });
  const planner = new ForwardingPlanner(node, { ...forwardingOptions, families: ['IPv4'] });
  const writer = new NftablesWriter({ host: localHost });
  const apply = (...inputs: readonly ServiceInput[]): Promise<Took> => {
    const touched = planner.apply(inputs).map(({ key }) => key);
    return timed(() => writer.sync(planner.plan, touched));
  };
  const load = await apply(...Array.from({ length: count }, (_, i) => input(i)));
  const change = await median((time) => apply(input(count >> 1, time % 2 === 0)));
  const add = await median((time) => apply(input(count + time)));
  const gone = (i: number): ServiceInput => ({ key: `shop/web-${i}`, service: undefined, slices: [] });
  const remove = await median((time) => apply(gone(count + time)));
  const restarted = new NftablesWriter({ host: localHost });
  const restart = await timed(() => restarted.sync(planner.plan));
  await writer.close();
  return { load, change, add, remove, restart };
}

/** kube-proxy's layout in nft's text, with elements and rules in one transaction. */
async function chainPerService(count: number): Promise<Record<string, Took>> {
  await nft([
    'add table ip compared',
    'add map ip compared service-ips { type ipv4_addr . inet_proto . inet_service : verdict; }',
    'add chain ip compared services { type nat hook prerouting priority -100; }',
    'add rule ip compared services ip daddr . meta l4proto . th dport vmap @service-ips',
  ]);
  const load = await timed(async () => {
    // As many as fit into a message without privileges.
    for (let from = 0; from < count; from += 100) {
      const part = Array.from({ length: Math.min(100, count - from) }, (_, i) => chainLines(from + i)).flat();
      await nft(part);
    }
  });
  const change = await median((time) => {
    const rule = time % 2 === 0 ? chainRule(1).replace('4 : 10.', '4 : 11.') : chainRule(1);
    return timed(() => nft(['flush chain ip compared service-1', rule]));
  });
  const add = await median((time) => timed(() => nft(chainLines(count + time))));
  const remove = await median((time) => {
    const element = `${address(10, 96, count + time)} . tcp . 80`;
    const gone = `delete element ip compared service-ips { ${element} }`;
    return timed(() => nft([gone, `flush chain ip compared service-${count + time}`]));
  });
  return { load, change, add, remove };
}

function chainLines(i: number): string[] {
  return [
    `add chain ip compared service-${i}`,
    chainRule(i),
    `add element ip compared service-ips { ${address(10, 96, i)} . tcp . 80 : goto service-${i} }`,
  ];
}

function chainRule(i: number): string {
  const endpoints = Array.from(
    { length: perService },
    (_, number) => `${number} : ${address(10, 240, i * perService + number)} . 8080`,
  );
  return `add rule ip compared service-${i} meta l4proto tcp dnat ip to numgen random mod ${perService} map { ${endpoints.join(', ')} }`;
}

async function nft(lines: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await localHost.exec('sh', ['-c', 'cat | nft -f -'], {
    input: `${lines.join('\n')}\n`,
  });
  if (exitCode !== 0) throw new Error(stderr.slice(0, 500));
}

async function timed(work: () => Promise<unknown>): Promise<Took> {
  const started = performance.now();
  const before = spent();
  await work();
  return { passed: performance.now() - started, cpu: spent() - before };
}

/** @param work is given 0 and on. */
async function median(work: (time: number) => Promise<Took>): Promise<Took> {
  const took: Took[] = [];
  for (let time = 0; time < times; time++) took.push(await work(time));
  const middle = (what: keyof Took): number =>
    took.map((one) => one[what]).toSorted((a, b) => a - b)[times >> 1] ?? 0;
  // The kernel counts the CPU time of ended programs in hundredths of a second.
  return { passed: middle('passed'), cpu: took.reduce((sum, { cpu }) => sum + cpu, 0) / times };
}

/** Milliseconds of CPU that this process and the programs that it runs, or has run, have taken so far. */
function spent(): number {
  const { user, system } = process.cpuUsage();
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim();
  const running = children === '' ? [] : children.split(' ').map((pid) => ticks(pid, 'utime'));
  return (user + system) / 1000 + [ticks('self', 'cutime'), ...running].reduce((a, b) => a + b);
}

/** Milliseconds by one of the pairs of times in `stat` of a process, in user space and in the kernel. */
function ticks(pid: string, which: 'utime' | 'cutime'): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // Behind the name, fields 14 to 17 count ticks of 10 ms (proc_pid_stat(5)).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const first = which === 'utime' ? 11 : 13;
  return (Number(fields[first]) + Number(fields[first + 1])) * 10;
}
