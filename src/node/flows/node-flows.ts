import { closeSync, readSync } from 'node:fs';
import type { Logger } from 'pino';
import type { NetlinkHost } from '../../host/host.ts';
import {
  conntrackEvents,
  readConntrackEvents,
  type TrackedConnection,
  readConntrackLine,
  type Tuple,
  followConnection,
} from '../../network/flows/conntrack.ts';
import type { CountedDenial } from '../../network/flows/tracker.ts';
import { counterKey, DeniedReader, type DeniedSet } from '../nftables/denied.ts';
import { deniedServices } from '../nftables/layout.ts';
import { Nft } from '../nftables/nft.ts';
import { nftFamily } from '../nftables/writer.ts';
import { deniedByPolicies } from '../policy/policy-commands.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { SeenConnection } from '../../network/path/way.ts';

interface NodeFlowsOptions {
  readonly node: string;
  readonly host: NetlinkHost;
  readonly families: readonly IPFamily[];
  /** The addresses of the other nodes, and the ranges of their Pods. */
  readonly elsewhere: readonly string[];
  readonly log: Logger;
  readonly onConnection: (connection: TrackedConnection) => void;
  readonly onDenial: (denial: CountedDenial) => void;
  readonly now: () => number;
}

/** There while somebody looks. */
const table = { family: 'inet', name: 'servicenet-flows' } as const;

/** New connections that a node tells each second, and at once. */
const eachSecond = 500;
const atOnce = 1000;

/**
 * Of each connection the kernel tells its beginning, its first answer and its end; without it, each step of TCP too. What
 * begins on another node is told there. Of more than {@link eachSecond} the rest is not told at all. The counters have the
 * beginnings, and those that are not told, so that it is known how many were lost.
 */
const tableText = `table ${table.family} ${table.name}
delete table ${table.family} ${table.name}
table ${table.family} ${table.name} {
  counter begun { }
  counter beyond { }
  set elsewhere-4 { type ipv4_addr; flags interval; }
  set elsewhere-6 { type ipv6_addr; flags interval; }
  chain tell {
    ip saddr @elsewhere-4 ct event set 0x0 return
    ip6 saddr @elsewhere-6 ct event set 0x0 return
    limit rate over ${eachSecond}/second burst ${atOnce} packets counter name beyond ct event set 0x0 return
    ct event set new,reply,destroy
  }
  chain prerouting {
    type filter hook prerouting priority -105
    ct state new jump tell
  }
  chain output {
    type filter hook output priority -105
    ct state new jump tell
  }
  chain count {
    ip saddr @elsewhere-4 return
    ip6 saddr @elsewhere-6 return
    meta l4proto { tcp, udp, sctp } counter name begun
  }
  chain postrouting {
    type filter hook postrouting priority 300
    ct state new ct status & confirmed == 0 jump count
  }
  chain input {
    type filter hook input priority 300
    ct state new ct status & confirmed == 0 jump count
  }
}
`;

/** The addresses and ranges of the other nodes and of their Pods. */
function elsewhereText(elsewhere: readonly string[]): string {
  return (['4', '6'] as const)
    .map((suffix) => {
      const set = `${table.family} ${table.name} elsewhere-${suffix}`;
      const own = elsewhere.filter((each) => each.includes(':') === (suffix === '6'));
      return `flush set ${set}\n${own.length === 0 ? '' : `add element ${set} { ${own.join(', ')} }\n`}`;
    })
    .join('');
}

/** Bytes that the kernel keeps until they are read. */
const receiveBytes = 8 * 1024 * 1024;
/** Milliseconds between two reads of events: to wait for each would wake this process for each. */
const readMs = 50;
/** Events of one turn of the event loop. */
const eachRead = 500;
/** Bytes of the longest datagram; an event has about 300. */
const datagramBytes = 16_384;

/** Denied packets of one turn of the event loop: for each that is new, the planner is asked. */
const eachTurn = 100;

/** Looks by which it is known how many were lost, while connections begin all the time. */
const looks = 5;

/** Takes away what an agent left that was killed. @throws {NftError} */
export async function removeFlowsTable(nft: Nft): Promise<void> {
  await nft.runText(`table ${table.family} ${table.name}\ndelete table ${table.family} ${table.name}\n`);
}

/** What the kernel of one node tells of connections and denied packets, until {@link NodeFlows.stop}. */
export class NodeFlows {
  readonly #options: NodeFlowsOptions;
  readonly #nft: Nft;
  readonly #denied: DeniedReader;
  readonly #events: number;
  readonly #datagram = Buffer.alloc(datagramBytes);
  #reading: NodeJS.Timeout;
  /** Beginnings that were read. */
  #read = 0;
  #hasLoss = false;
  /** Beginnings that the kernel counted, and that were not read, for other reasons than a loss. */
  #notRead = 0;
  #lost = 0;
  #last = { begun: -1, read: -1 };
  /** What was missing at the last looks. */
  readonly #missing: number[] = [];

  private constructor(options: NodeFlowsOptions, events: number) {
    this.#options = options;
    this.#events = events;
    this.#nft = new Nft(options.host);
    const services = options.families.flatMap((family) => deniedServices(nftFamily(family)));
    this.#denied = new DeniedReader(this.#nft, [...deniedByPolicies, ...services]);
    this.#reading = setTimeout(() => this.#readEvents(), readMs);
  }

  /** Begins to listen, then reads what the kernel has of before. @throws {Error} where it cannot. */
  static async start(options: NodeFlowsOptions): Promise<NodeFlows> {
    const flows = new NodeFlows(options, await options.host.netlink({ ...conntrackEvents, receiveBytes }));
    try {
      await flows.#nft.runText(`${tableText}${elsewhereText(options.elsewhere)}`);
      for (const family of options.families) await flows.#list(family);
      await flows.poll();
    } catch (error) {
      await flows.stop();
      throw error;
    }
    return flows;
  }

  /** Beginnings of connections that the kernel did not tell, or threw away. */
  get lost(): number {
    return this.#lost;
  }

  /** Other nodes have come or gone. @throws {NftError} */
  async setElsewhere(elsewhere: readonly string[]): Promise<void> {
    await this.#nft.runText(elsewhereText(elsewhere));
  }

  /** Reads what was denied since the last time, and how many connections were lost. @throws {NftError} */
  async poll(): Promise<void> {
    const { changed, counters } = await this.#denied.read();
    const { node, now, onDenial } = this.#options;
    let count = 0;
    for (const [set, packets] of changed) {
      for (const { agoSeconds, ...each } of packets) {
        if (++count % eachTurn === 0) await new Promise((resolve) => setImmediate(resolve));
        onDenial({ ...each, node, ...sourceOfSet(set), lastMs: now() - agoSeconds * 1000 });
      }
    }
    const packets = (name: string): number => counters.get(counterKey(table.family, table.name, name)) ?? 0;
    if (packets('beyond') > 0) this.#hasLoss = true;
    this.#count(packets('begun'));
  }

  /**
   * While connections begin, some of those that the kernel has counted are on their way, and others were read after it had
   * counted: what is missing is known where nothing has changed since the last look, or else by several looks.
   */
  #count(begun: number): void {
    const read = this.#read;
    const isQuiet = begun === this.#last.begun && read === this.#last.read;
    this.#last = { begun, read };
    if (!this.#hasLoss) {
      if (isQuiet) this.#notRead = begun - read;
      return;
    }
    this.#missing.push(begun - read - this.#notRead);
    if (this.#missing.length > looks) this.#missing.shift();
    const [last = 0, ...before] = this.#missing.toReversed();
    const missing = isQuiet ? last : before.reduce((least, each) => Math.min(least, each), last);
    if (isQuiet || this.#missing.length === looks) this.#lost = Math.max(this.#lost, missing);
  }

  /** Leaves nothing in the kernel. */
  async stop(): Promise<void> {
    clearTimeout(this.#reading);
    closeSync(this.#events);
    await this.#nft.close();
    await removeFlowsTable(this.#nft);
  }

  #readEvents(): void {
    let hasMore = true;
    try {
      for (let n = 0; hasMore && n < eachRead; n++) hasMore = this.#readDatagram();
    } catch (error) {
      const { log, node } = this.#options;
      log.warn({ node, err: error }, 'connections cannot be read from the kernel: no flows of this node');
      return;
    }
    this.#reading = setTimeout(() => this.#readEvents(), hasMore ? 0 : readMs);
  }

  /** @returns false where nothing has come. @throws the system's error. */
  #readDatagram(): boolean {
    let bytes = 0;
    try {
      bytes = readSync(this.#events, this.#datagram);
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined;
      if (code === 'EAGAIN') return false;
      if (code !== 'ENOBUFS') throw error;
      this.#hasLoss = true;
    }
    for (const connection of readConntrackEvents(this.#datagram.subarray(0, bytes))) {
      if (connection.event === 'new') this.#read++;
      this.#options.onConnection(connection);
    }
    return true;
  }

  async #list(family: IPFamily): Promise<void> {
    const name = family === 'IPv4' ? 'ipv4' : 'ipv6';
    const args = ['-L', '-f', name, '-o', 'ktimestamp'];
    let rest = '';
    await this.#options.host.exec('conntrack', args, {
      output: (text) => {
        const lines = `${rest}${text}`.split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) {
          const connection = readConntrackLine(line);
          if (connection !== undefined) this.#options.onConnection(connection);
        }
      },
    });
  }
}

function sourceOfSet({ family, name }: DeniedSet): Pick<CountedDenial, 'by' | 'outcome'> {
  return {
    by: family === 'inet' ? 'policies' : 'services',
    outcome: name === 'refused' ? 'refused' : 'dropped',
  };
}

/**
 * What the kernels of nodes know of a connection of TCP, in the order of its way: each remembers one that has passed for two
 * minutes, also without an answer.
 *
 * @throws {Error} where conntrack cannot be run.
 */
export async function seenOnNodes(
  nodes: readonly { readonly name: string; readonly host: Pick<NetlinkHost, 'exec'> }[],
  connection: Tuple,
): Promise<readonly SeenConnection[]> {
  const family = connection.source.includes(':') ? 'ipv6' : 'ipv4';
  return await followConnection(connection, async (sourcePort) => {
    const args = ['-L', '-f', family, '-p', 'tcp', '--orig-port-src', String(sourcePort)];
    const found = await Promise.all(
      nodes.map(async ({ name, host }) => {
        const { stdout } = await host.exec('conntrack', args);
        return stdout.split('\n').flatMap((line) => {
          const tracked = readConntrackLine(line);
          return tracked === undefined ? [] : [[name, tracked] as const];
        });
      }),
    );
    return found.flat();
  });
}
