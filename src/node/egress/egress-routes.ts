import { isDeepStrictEqual } from 'node:util';
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

/**
 * Keeps a routing table for each other node by which Pods leave the cluster, and a rule that sends packets with the
 * mark of that node to it. The route to a node is that to its Pods, as the network plugin made it (a tunnel, a
 * route). One call at a time.
 */
export class EgressRoutes {
  readonly #host: Host;
  readonly #markMask: number;
  readonly #numbers = new Map<string, number>();
  /** The routes that were written, by node and family; undefined: what the kernel has is not known. */
  #written: Map<string, string> | undefined;

  /** @param markMask the bits of the packet mark that the agent may use. */
  constructor(host: Host, markMask: number) {
    this.#host = host;
    this.#markMask = markMask;
  }

  /** The next sync takes all away that a former agent may have left. */
  invalidate(): void {
    this.#written = undefined;
  }

  /**
   * Makes tables for these nodes, and keeps others until {@link prune}.
   *
   * @returns the number of each: it is in the packet mark.
   * @throws {EgressRouteError} where `ip` refuses something.
   * @throws {RangeError} where the mark has too few bits.
   */
  async sync(peers: readonly EgressPeer[]): Promise<ReadonlyMap<string, number>> {
    this.#written ??= await this.#removeLeftovers();
    for (const { name } of peers) if (!this.#numbers.has(name)) this.#numbers.set(name, this.#freeNumber());
    for (const peer of peers) {
      for (const { family, option } of families) {
        const key = keyOf(peer.name, family);
        const route = await this.#routeTo(peer, family);
        const before = this.#written.get(key) ?? '';
        if (before === route) continue;
        this.#written.delete(key);
        // A table with routes always has its rule, by which the next process finds it.
        if (before === '') {
          await this.#ip(option, `rule del priority ${priority} ${this.#selector(peer.name)}`, true);
          await this.#ip(option, `rule add priority ${priority} ${this.#selector(peer.name)}`);
        }
        if (route === '') {
          await this.#ip(option, `route flush table ${this.#tableOf(peer.name)}`, true);
          await this.#ip(option, `rule del priority ${priority} ${this.#selector(peer.name)}`);
          continue;
        }
        await this.#ip(option, `route replace ${route} onlink table ${this.#tableOf(peer.name)}`);
        this.#written.set(key, route);
      }
    }
    return new Map(peers.map(({ name }) => [name, this.#numbers.get(name) ?? 0]));
  }

  /** Takes away the tables of all other nodes. @throws {EgressRouteError} */
  async prune(names: ReadonlySet<string>): Promise<void> {
    for (const name of this.#numbers.keys()) {
      if (names.has(name)) continue;
      for (const { family, option } of families) {
        if (this.#written?.delete(keyOf(name, family)) !== true) continue;
        await this.#ip(option, `route flush table ${this.#tableOf(name)}`, true);
        await this.#ip(option, `rule del priority ${priority} ${this.#selector(name)}`);
      }
      this.#numbers.delete(name);
    }
  }

  /**
   * Whether the rules and tables of the kernel are others than those that were written: somebody else has changed them, or
   * the kernel itself took routes away with their interface.
   */
  async isChanged(): Promise<boolean> {
    const written = this.#written;
    if (written === undefined || written.size === 0) return false;
    const names = [...this.#numbers.keys()];
    const input = ['rule list', ...names.map((name) => `route show table ${this.#tableOf(name)}`), ''].join(
      '\n',
    );
    for (const { family, option } of families) {
      const peers = names.filter((name) => written.has(keyOf(name, family)));
      const rules = peers.map((name) => `${priority}:\tfrom all ${this.#selector(name)}`);
      const routes = peers.map((name) => written.get(keyOf(name, family)) ?? '');
      // A table that is empty may be no table.
      const { stdout } = await this.#host.exec('ip', [option, '-force', '-batch', '-'], { input });
      if (!isDeepStrictEqual(rulesAndRoutes(stdout), { rules: new Set(rules), routes })) return true;
    }
    return false;
  }

  /** Takes all away, also what a former agent has left. @throws {EgressRouteError} */
  async cleanUp(): Promise<void> {
    this.invalidate();
    await this.#removeLeftovers();
  }

  /** Takes away what a former agent has left. */
  async #removeLeftovers(): Promise<Map<string, string>> {
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

  /** The default route by a node, as `ip` prints it; empty: the node has no such family, or nothing leads to it. */
  async #routeTo(peer: EgressPeer, family: IPFamily): Promise<string> {
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
      if (device !== '' && device !== 'lo' && via !== '') return `default via ${via} dev ${device}`;
    }
    return '';
  }

  async #ip(option: string, line: string, mayFail = false): Promise<void> {
    const { exitCode, stderr } = await this.#host.exec('ip', [option, ...line.split(' ')]);
    if (exitCode !== 0 && !mayFail) throw new EgressRouteError(`ip ${option} ${line}: ${stderr.trim()}`);
  }
}

function keyOf(node: string, family: IPFamily): string {
  return `${node} ${family}`;
}

/** Our rules, and the routes in the order of their tables without what the kernel adds: a metric, the state of the link. */
function rulesAndRoutes(text: string): {
  readonly rules: ReadonlySet<string>;
  readonly routes: readonly string[];
} {
  const lines = text.split('\n').map((line) => line.trim());
  const isRule = (line: string): boolean => /^\d+:/.test(line);
  return {
    rules: new Set(lines.filter((line) => line.startsWith(`${priority}:`))),
    routes: lines
      .filter((line) => line !== '' && !isRule(line))
      .map((line) => /^default via \S+ dev \S+/.exec(line)?.[0] ?? line),
  };
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
