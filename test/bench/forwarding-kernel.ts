/**
 * What it takes to bring Services into the kernel, by nft, in a network namespace of its own: `node
 * test/bench/forwarding-kernel.ts [services…]`, by default 1000 10000 30000. Needs unshare and nft, and no root. The second
 * layout is a chain for each Service, as kube-proxy has it, generated here for comparison only; it is left out beyond
 * 10,000 Services, where it takes minutes. Milliseconds are those that passed, CPU is that of nft and the kernel for it.
 */
import { performance } from 'node:perf_hooks';
import { ForwardingPlanner, type ServiceInput } from '../../src/network/forwarding/forwarding-planner.ts';
import type { Host } from '../../src/host/host.ts';
import { NftablesWriter } from '../../src/node/nftables/nftables-writer.ts';
import { missingFor } from '../network/support/gate.ts';
import { startNetwork } from '../network/support/network.ts';
import { endpointSlice, forwardingNode, forwardingOptions, service } from '../network/support/objects.ts';
import { report, type Row } from './report.ts';

const perService = 10;

/** What DESIGN.md asks of 10,000 Services in our layout. */
const budgets: Readonly<Record<string, string>> = { load: '≤ 2,500 ms', change: '≤ 25 ms' };

function rowsOf(layout: string, services: number, took: Record<string, Took>): readonly Row[] {
  return Object.entries(took).map(([name, { passed, cpu }]) => {
    const budget = layout === 'elements' && services === 10_000 ? budgets[name] : undefined;
    return {
      name: `${services.toLocaleString('en-US')} Services × ${perService}, ${layout}: ${name}`,
      ...{ value: passed, unit: 'ms' },
      // The shell counts in hundredths of a second.
      ...(cpu === 0 ? {} : { cpu: cpu * 1000 }),
      ...(budget === undefined ? {} : { budget }),
    };
  });
}

const missing = missingFor('user');
if (missing !== '') {
  console.error(`missing: ${missing}`);
  process.exit(1);
}
const asked = process.argv.slice(2).map(Number);
const rows: Row[] = [];
for (const count of asked.length > 0 ? asked : [1000, 10_000, 30_000]) {
  rows.push(...(await ours(count)));
  if (count <= 10_000) rows.push(...(await chainPerService(count)));
}
await report('forwarding-kernel', rows);

/** A Service by its number, with its endpoints; the fifth may have moved. */
function input(i: number, moved = false): ServiceInput {
  const spec = { clusterIPs: [address(10, 96, i)], ports: [{ port: 80, targetPort: 8080 }] };
  const endpoints = Array.from({ length: perService }, (_, number) => {
    const pod = address(10, 240, i * perService + number);
    return { address: moved && number === 4 ? '10.250.0.1' : pod, node: 'node-1' };
  });
  const slices = [endpointSlice('IPv4', endpoints, 8080, `web-${i}`)];
  return { key: `shop/web-${i}`, service: service(spec, `web-${i}`), slices };
}

/** `a.b.0.1` plus a number below 2^24. */
function address(a: number, b: number, plus: number): string {
  const value = (a << 24) + (b << 16) + plus + 1;
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.');
}

async function ours(count: number): Promise<readonly Row[]> {
  const network = await startNetwork('user', { 'node-1': [] });
  try {
    const meter = metered(network.at('node-1').machine.host);
    const { host } = meter;
    const node = forwardingNode('node-1', network.at('node-1').addresses);
    const planner = new ForwardingPlanner(node, { ...forwardingOptions, families: ['IPv4'] });
    const writer = new NftablesWriter({ host });
    const sync = (): Promise<unknown> => writer.sync(planner.plan);
    const apply = (...inputs: readonly ServiceInput[]): Promise<Took> => {
      planner.apply(inputs);
      return timed(meter, sync);
    };
    const load = await apply(...Array.from({ length: count }, (_, i) => input(i)));
    const change = await apply(input(count >> 1, true));
    const add = await apply(input(count));
    const remove = await apply({ key: `shop/web-${count}`, service: undefined, slices: [] });
    const restarted = new NftablesWriter({ host });
    const restart = await timed(meter, () => restarted.sync(planner.plan));
    return rowsOf('elements', count, { load, change, add, remove, restart });
  } finally {
    await network.close();
  }
}

/** kube-proxy's layout in nft's text, with elements and rules in one transaction. */
async function chainPerService(count: number): Promise<readonly Row[]> {
  const network = await startNetwork('user', { 'node-1': [] });
  try {
    const meter = metered(network.at('node-1').machine.host);
    const { host } = meter;
    const lines = [
      'add table ip compared',
      'add map ip compared service-ips { type ipv4_addr . inet_proto . inet_service : verdict; }',
      'add chain ip compared services { type nat hook prerouting priority -100; }',
      'add rule ip compared services ip daddr . meta l4proto . th dport vmap @service-ips',
    ];
    await nft(host, lines);
    const load = await timed(meter, async () => {
      // As many as fit into a message without privileges.
      for (let from = 0; from < count; from += 100) {
        const part = Array.from({ length: Math.min(100, count - from) }, (_, i) =>
          chainLines(from + i),
        ).flat();
        await nft(host, part);
      }
    });
    const changedRule = chainRule(1).replace('4 : 10.', '4 : 11.');
    const change = await timed(meter, () => nft(host, ['flush chain ip compared service-1', changedRule]));
    const add = await timed(meter, () => nft(host, chainLines(count)));
    const gone = `delete element ip compared service-ips { ${address(10, 96, count)} . tcp . 80 }`;
    const remove = await timed(meter, () => nft(host, [gone, `flush chain ip compared service-${count}`]));
    return rowsOf('a chain per Service', count, { load, change, add, remove });
  } finally {
    await network.close();
  }
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

async function nft(host: Host, lines: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await host.exec('sh', ['-c', 'cat | nft -f -'], {
    input: `${lines.join('\n')}\n`,
  });
  if (exitCode !== 0) throw new Error(stderr.slice(0, 500));
}

/** Milliseconds that passed, and that programs and the kernel for them took of the CPU. */
interface Took {
  readonly passed: number;
  readonly cpu: number;
}

async function timed({ spent }: Meter, work: () => Promise<unknown>): Promise<Took> {
  const started = performance.now();
  const before = spent();
  await work();
  return { passed: performance.now() - started, cpu: spent() - before };
}

interface Meter {
  readonly host: Host;
  /** Milliseconds of CPU that programs have taken so far. */
  readonly spent: () => number;
}

/** The host, with each program run by a shell that says what it took. */
function metered(host: Host): Meter {
  let cpu = 0;
  const exec: Host['exec'] = async (program, args, options) => {
    const measure = '"$@"; code=$?; times >&2; exit $code';
    const result = await host.exec('sh', ['-c', measure, 'sh', program, ...args], options);
    const lines = result.stderr.trimEnd().split('\n');
    for (const [, minutes = '0', seconds = '0'] of (lines.at(-1) ?? '').matchAll(/(\d+)m([\d.]+)s/g)) {
      cpu += (Number(minutes) * 60 + Number(seconds)) * 1000;
    }
    return { ...result, stderr: lines.slice(0, -2).join('\n') };
  };
  return { host: { ...host, exec }, spent: () => cpu };
}
