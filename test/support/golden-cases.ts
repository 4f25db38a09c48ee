import { readFile } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { parseAllDocuments } from 'yaml';
import { EgressAgent } from '../../src/node/egress/egress-agent.ts';
import { NodeAgent } from '../../src/node/forwarding/agent.ts';
import { defaultMarkMask } from '../../src/node/nftables/marks.ts';
import { PolicyAgent } from '../../src/node/policy/policy-agent.ts';
import type { IPFamily } from '../../src/objects/address.ts';
import { type KubeObject, isKubeObject } from '../../src/objects/meta.ts';
import type { ControllerContext, Runnable } from '../../src/runtime/context.ts';
import { controllerContext } from './controller-context.ts';
import { FakeClock } from './fake-clock.ts';
import { FakeNft } from './fake-nft.ts';
import { FixedInformers } from './fixed-informers.ts';
import { listingWithout, parseListing, printListing } from './nft-listing.ts';

/**
 * What agents make of objects: `<name>.yaml` beside `nodes.yaml`, and the text of nft in `<name>.nft`. Where there is
 * `<name>.then.yaml`, the agent sees these objects after the others.
 */
export interface GoldenCase {
  /** Of `test/unit/node`. */
  readonly folder: 'nftables' | 'policy' | 'egress';
  readonly name: string;
  /** Of Services. */
  readonly families?: readonly IPFamily[];
  /**
   * `tables`: all. `additions`: what the same agent does not have without a Service. `transactions`: what was sent to nft
   * after the objects of `<name>.then.yaml`.
   */
  readonly shows: 'tables' | 'additions' | 'transactions';
}

export const goldenCases: readonly GoldenCase[] = [
  { folder: 'nftables', name: 'no-services', shows: 'tables' },
  { folder: 'nftables', name: 'cluster-ip', shows: 'additions' },
  { folder: 'nftables', name: 'dual-stack', families: ['IPv4', 'IPv6'], shows: 'additions' },
  { folder: 'nftables', name: 'local-node-port', shows: 'additions' },
  { folder: 'nftables', name: 'source-ranges', shows: 'additions' },
  { folder: 'nftables', name: 'session-affinity', shows: 'additions' },
  { folder: 'nftables', name: 'no-endpoints', shows: 'additions' },
  { folder: 'nftables', name: 'terminating-only', shows: 'additions' },
  { folder: 'nftables', name: 'hairpin', shows: 'additions' },
  { folder: 'nftables', name: 'endpoint-gone', shows: 'transactions' },
  { folder: 'policy', name: 'default-deny', shows: 'tables' },
  { folder: 'policy', name: 'peers-and-ports', shows: 'tables' },
  { folder: 'policy', name: 'ip-block', shows: 'tables' },
  { folder: 'policy', name: 'egress-firewall', shows: 'tables' },
  { folder: 'egress', name: 'egress-ip', shows: 'tables' },
];

/** A file of a golden case. @param suffix `.yaml`, `.nft`. */
export function goldenFile({ folder, name }: Pick<GoldenCase, 'folder' | 'name'>, suffix: string): URL {
  return new URL(`../unit/node/${folder}/golden/${name}${suffix}`, import.meta.url);
}

/** Runs the agent of a case on a fake nft. @returns it, and the text for the golden file. */
export async function playGolden(
  golden: GoldenCase,
): Promise<{ readonly nft: FakeNft; readonly text: string }> {
  const nft = new FakeNft(machinePrograms);
  const clock = new FakeClock();
  const informers = new FixedInformers();
  informers.set([
    ...(await objectsOf(goldenFile({ ...golden, name: 'nodes' }, '.yaml'))),
    ...(await objectsOf(goldenFile(golden, '.yaml'))),
  ]);
  const stopping = new AbortController();
  const agent = agentOf(golden, nft, { ...controllerContext(clock), informers });
  const running = agent.run(stopping.signal);
  await someTransactionAfter(nft, 0);
  if (golden.shows === 'transactions') {
    await clock.advance(0);
    const before = nft.transactions.length;
    informers.set(await objectsOf(goldenFile(golden, '.then.yaml')));
    await clock.advance(100);
    await someTransactionAfter(nft, before);
    stopping.abort();
    await running;
    return { nft, text: nft.transactions.slice(before).map(transactionText).join('\n') };
  }
  // A stop waits for what has begun.
  stopping.abort();
  await running;
  if (golden.shows === 'tables') return { nft, text: nft.listing() };
  const empty = await playGolden({ ...golden, name: 'no-services', shows: 'tables' });
  return { nft, text: printListing(listingWithout(parseListing(nft.listing()), parseListing(empty.text))) };
}

function agentOf(
  { folder, families = ['IPv4'] }: GoldenCase,
  { host }: FakeNft,
  context: ControllerContext,
): Runnable {
  const common = { context, host, nodeName: 'node-1' };
  const times = { minSyncMs: 50, fullSyncMs: 3_600_000 };
  switch (folder) {
    case 'nftables': {
      const nodePorts = { nodePortAddresses: 'primary', allowExternalIPs: true } as const;
      const forwarding = {
        families,
        masqueradeAll: false,
        podDetection: { by: 'nodeCIDR' },
        ...nodePorts,
      } as const;
      return new NodeAgent({ ...common, ...times, markMask: defaultMarkMask, forwarding });
    }
    case 'policy':
      return new PolicyAgent({ ...common, ...times, routesPods: true });
    case 'egress':
      return new EgressAgent({ ...common, markMask: defaultMarkMask, clusterCIDRs: [] });
  }
}

/** As far as the agents use them: Pods of node-2 are behind its address. */
const machinePrograms = {
  cat: () => '',
  conntrack: () => '',
  ip: (args: readonly string[]) => {
    const words = args.filter((word) => !word.startsWith('-')).join(' ');
    if (words.startsWith('route get')) return JSON.stringify([{ gateway: '192.0.2.12', dev: 'eth0' }]);
    // The rules and routes, to be compared later.
    if (args.includes('-batch')) return '';
    if (/^(address show|rule list)/.test(words)) return '[]';
    if (/^(route (replace|flush)|rule (add|del)) /.test(words)) return '';
    throw new Error(`the fake machine does not know ip ${words}`);
  },
};

async function objectsOf(file: URL): Promise<readonly KubeObject[]> {
  return parseAllDocuments(await readFile(file, 'utf8')).map((document) => {
    const object: unknown = document.toJS();
    if (!isKubeObject(object)) throw new Error(`no object in ${file.pathname}: ${JSON.stringify(object)}`);
    return object;
  });
}

async function someTransactionAfter(nft: FakeNft, count: number): Promise<void> {
  while (nft.transactions.length === count) await setImmediate();
}

function transactionText(commands: readonly string[]): string {
  return commands.map((command) => `${command}\n`).join('');
}
