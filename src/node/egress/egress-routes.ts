import type { Host } from '../../host/host.ts';
import type { EgressPeer } from '../../network/egress/egress-plan.ts';
import { formatAddress, type IPFamily, parseAddress } from '../../objects/address.ts';
import { isRecord } from '../../objects/json.ts';
import { textAt } from '../../objects/json.ts';
import { egressMark, egressMask } from '../nftables/marks.ts';

/** A program of the machine failed. */
class EgressRouteError extends Error {
  override readonly name = 'EgressRouteError';
}

/** `ip` of each family. */
const families = [
  { family: 'IPv4', option: '-4' },
  { family: 'IPv6', option: '-6' },
] as const;

/** A priority that network plugins usually do not use for rules of routing tables; behind `local`, before `main`. */
const priority = 20_157;

/** The routing table of node number 0. */
const firstTable = 1_570_000;

/** The route to a node: the output of `ip route get` for its Pods. */
interface NextHop {
  readonly family: IPFamily;
  readonly via: string;
  readonly device: string;
}

/**
 * Keeps a routing table for each other node by which Pods leave the cluster, and a rule that sends packets with the
 * mark of that node to it. The route to a node is that to its Pods, as the network plugin made it (a tunnel, a
 * route). One call at a time.
 */
export class EgressRoutes {
  readonly #host: Host;
  readonly #markMask: number;
  readonly #numbers = new Map<string, number>();
  /** Lines of `ip -batch` that were done, by node and family; undefined: what the kernel has is not known. */
  #done: Map<string, string> | undefined;
  /** What the kernel had after the last write. */
  #seen: string | undefined;

  /** @param markMask the bits of the packet mark that the agent may use. */
  constructor(host: Host, markMask: number) {
    this.#host = host;
    this.#markMask = markMask;
  }

  /** The next sync takes all away that a former agent may have left. */
  invalidate(): void {
    this.#done = undefined;
  }

  /**
   * Makes tables for these nodes, and keeps others until {@link prune}.
   *
   * @returns the number of each: it is in the packet mark.
   * @throws {EgressRouteError} where `ip` refuses something.
   * @throws {RangeError} where the mark has too few bits.
   */
  async sync(peers: readonly EgressPeer[]): Promise<ReadonlyMap<string, number>> {
    this.#done ??= await this.#removeLeftovers();
    for (const { name } of peers) if (!this.#numbers.has(name)) this.#numbers.set(name, this.#freeNumber());
    for (const peer of peers) {
      for (const { family, option } of families) {
        const key = `${peer.name} ${family}`;
        const nextHop = await this.#nextHopTo(peer, family);
        const line = nextHop === undefined ? '' : routeLine(nextHop, this.#tableOf(peer.name));
        const before = this.#done.get(key) ?? '';
        if (before === line) continue;
        this.#seen = undefined;
        this.#done.delete(key);
        // A table with routes always has its rule, by which the next process finds it.
        if (before === '') {
          await this.#ip(option, `rule del priority ${priority} ${this.#selector(peer.name)}`, true);
          await this.#ip(option, `rule add priority ${priority} ${this.#selector(peer.name)}`);
        }
        if (line === '') {
          await this.#ip(option, `route flush table ${this.#tableOf(peer.name)}`, true);
          await this.#ip(option, `rule del priority ${priority} ${this.#selector(peer.name)}`);
          continue;
        }
        await this.#ip(option, line);
        this.#done.set(key, line);
      }
    }
    if (this.#done.size > 0) this.#seen ??= await this.#look();
    return new Map(peers.map(({ name }) => [name, this.#numbers.get(name) ?? 0]));
  }

  /** Takes away the tables of all other nodes. @throws {EgressRouteError} */
  async prune(names: ReadonlySet<string>): Promise<void> {
    for (const name of this.#numbers.keys()) {
      if (names.has(name)) continue;
      for (const { family, option } of families) {
        if (this.#done?.delete(`${name} ${family}`) !== true) continue;
        this.#seen = undefined;
        await this.#ip(option, `route flush table ${this.#tableOf(name)}`, true);
        await this.#ip(option, `rule del priority ${priority} ${this.#selector(name)}`);
      }
      this.#numbers.delete(name);
    }
    if (this.#numbers.size > 0) this.#seen ??= await this.#look();
  }

  /**
   * Whether others have changed the rules or tables since they were written: the kernel itself takes routes away with their
   * interface.
   */
  async isChanged(): Promise<boolean> {
    return this.#seen !== undefined && this.#seen !== (await this.#look());
  }

  /** Our rules and routes as `ip` prints them. */
  async #look(): Promise<string> {
    const tables = [...this.#numbers.keys()].map((name) => `route show table ${this.#tableOf(name)}\n`);
    const input = `rule list\n${tables.join('')}`;
    let text = '';
    for (const { option } of families) {
      // A table that is empty may be no table.
      const { stdout } = await this.#host.exec('ip', [option, '-force', '-batch', '-'], { input });
      text += stdout;
    }
    const ours = (line: string): boolean => !/^\d+:/.test(line) || line.startsWith(`${priority}:`);
    // Whether a cable is in says the kernel too.
    return text
      .replaceAll(/ (dead|linkdown)\b/g, '')
      .split('\n')
      .filter(ours)
      .join('\n');
  }

  /** Takes all away, also what a former agent has left. @throws {EgressRouteError} */
  async cleanUp(): Promise<void> {
    this.invalidate();
    await this.#removeLeftovers();
  }

  /** Takes away what a former agent has left. */
  async #removeLeftovers(): Promise<Map<string, string>> {
    this.#seen = undefined;
    for (const { option } of families) {
      const { exitCode, stdout } = await this.#host.exec('ip', [option, '-json', 'rule', 'list']);
      // A kernel without IPv6.
      if (exitCode !== 0) continue;
      for (const rule of recordsOf(stdout)) {
        if (rule['priority'] !== priority) continue;
        const table = Number(textAt(rule, 'table'));
        // There is no table without routes.
        await this.#ip(option, `route flush table ${table}`, true);
        await this.#ip(option, `rule del priority ${priority} lookup ${table}`);
      }
    }
    return new Map();
  }

  #freeNumber(): number {
    const taken = new Set(this.#numbers.values());
    let number = 1;
    while (taken.has(number)) number++;
    // Throws before anything is written if the mark has too few bits.
    egressMark(this.#markMask, number);
    return number;
  }

  #tableOf(name: string): number {
    return firstTable + (this.#numbers.get(name) ?? 0);
  }

  #selector(name: string): string {
    const hex = (value: number): string => `0x${value.toString(16)}`;
    const mark = egressMark(this.#markMask, this.#numbers.get(name) ?? 0);
    return `fwmark ${hex(mark)}/${hex(egressMask(this.#markMask))} lookup ${this.#tableOf(name)}`;
  }

  /** Undefined: the node has no such family, or nothing leads to it. */
  async #nextHopTo(peer: EgressPeer, family: IPFamily): Promise<NextHop | undefined> {
    const pods = peer.podCIDRs.find((cidr) => cidr.family === family);
    const own = peer.addresses.find((address) => parseAddress(address)?.family === family);
    const targets = [
      ...(pods === undefined ? [] : [formatAddress(family, pods.network + 1n)]),
      ...(own === undefined ? [] : [own]),
    ];
    for (const target of targets) {
      const option = family === 'IPv4' ? '-4' : '-6';
      const { stdout } = await this.#host.exec('ip', [option, '-json', 'route', 'get', target]);
      const [route] = recordsOf(stdout);
      const device = textAt(route, 'dev');
      const via = textAt(route, 'gateway') || (target === own ? target : '');
      if (device !== '' && device !== 'lo' && via !== '') return { family, via, device };
    }
    return undefined;
  }

  async #ip(option: string, line: string, mayFail = false): Promise<void> {
    const { exitCode, stderr } = await this.#host.exec('ip', [option, ...line.split(' ')]);
    if (exitCode !== 0 && !mayFail) throw new EgressRouteError(`ip ${option} ${line}: ${stderr.trim()}`);
  }
}

function routeLine({ via, device }: NextHop, table: number): string {
  return `route replace default via ${via} dev ${device} onlink table ${table}`;
}

/** The output of `ip -json`; nothing if it fails. */
function recordsOf(text: string): readonly Readonly<Record<string, unknown>>[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.filter(isRecord) : [];
  } catch {
    return [];
  }
}
