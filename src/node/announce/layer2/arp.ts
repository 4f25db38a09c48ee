import { setTimeout as sleep } from 'node:timers/promises';
import { type Host, ProgramMissingError } from '../../../host/host.ts';
import { type Link, neighbours, neighboursIn, isPlaced, ownLinkName } from './links.ts';

/** Addresses that are asked for at once: the kernel remembers 1,024 neighbours by default. */
const atOnce = 256;

/** Milliseconds after the question at which the neighbours are read: most machines answer within the first. */
const readAfterMs = [25, 175] as const;

/** The discard port (RFC 863). */
const discardPort = 9;

/**
 * Probes for other owners of addresses, without a raw socket: one byte to each makes the kernel ask by ARP and NDP, and its
 * neighbour table has the answers. The addresses are in subnets of the machine, and none is its own.
 *
 * @returns the MAC address of each that was answered for, within 0.2 s for each 256 of them.
 * @throws {Error} if the neighbours cannot be listed.
 */
export async function arpProbe(
  host: Host,
  addresses: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (let begin = 0; begin < addresses.length; begin += atOnce) {
    const some = addresses.slice(begin, begin + atOnce);
    await forget(host, some);
    await askFor(host, some);
    for (const milliseconds of readAfterMs) {
      await sleep(milliseconds);
      const known = await neighbours(host);
      for (const address of some) {
        const mac = known.get(address);
        if (mac !== undefined) found.set(address, mac);
      }
      if (some.every((address) => found.has(address))) break;
    }
  }
  return found;
}

/** An address that this machine announces, and the interface of the machine's own on whose network it is. */
export interface AddressOnLink {
  readonly address: string;
  readonly link: Link;
}

/** Milliseconds after which those that have an address, too, have answered. */
const othersReadAfterMs = 150;

/**
 * Asks the network who else has addresses of this machine, each once, without a raw socket: an entry of a neighbour that is
 * to be used makes the kernel ask, even for an address of its own. It does not hear its own answers: interfaces of ours
 * hear nothing of the ones below. On the interface itself (`on: 'interface'`) it ignores those of IPv6.
 *
 * @param asked at most 256: the kernel remembers 1,024 neighbours by default.
 * @returns the MAC address of a machine that has answered.
 * @throws {Error} where the neighbours are not listed, or not asked.
 */
export async function probeOthers(
  host: Host,
  asked: readonly AddressOnLink[],
): Promise<ReadonlyMap<string, string>> {
  const addresses = asked.map(({ address }) => address);
  // One program: to start one takes this process longer than all that it does.
  const lines = async function* (): AsyncGenerator<string> {
    const uses = asked.map(
      ({ address, link }) => `neighbour replace ${address} dev ${link.name} nud none use`,
    );
    yield linesOf([...addresses.map(forgetLine), ...uses]);
    await sleep(othersReadAfterMs);
    yield linesOf(['neighbour show', ...addresses.map(forgetLine)]);
  };
  const { exitCode, stdout, stderr } = await host.exec('ip', ['-json', '-force', '-batch', '-'], {
    input: lines(),
  });
  if (exitCode !== 0) throw new Error(`ip neighbour replace: ${stderr.trim().slice(-200)}`);
  const known = neighboursIn(stdout);
  return new Map(
    addresses.flatMap((address) => {
      const mac = known.get(address);
      return mac === undefined ? [] : [[address, mac] as const];
    }),
  );
}

/** An entry of an earlier holder would count as an answer. */
async function forget(host: Host, addresses: readonly string[]): Promise<void> {
  await host.exec('ip', ['-force', '-batch', '-'], { input: linesOf(addresses.map(forgetLine)) });
}

function linesOf(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}

function forgetLine(address: string): string {
  return `neighbour flush to ${address}`;
}

async function askFor(host: Host, addresses: readonly string[]): Promise<void> {
  for (const any of ['0.0.0.0', '::'] as const) {
    const ofFamily = addresses.filter((address) => address.includes(':') === (any === '::'));
    if (ofFamily.length === 0) continue;
    const socket = await host.datagram(any, 0);
    try {
      // ICMP errors of former datagrams come as errors of the socket.
      socket.on('error', () => undefined);
      await Promise.all(
        ofFamily.map(
          (address) =>
            new Promise<void>((resolve) => socket.send(Buffer.of(0), discardPort, address, () => resolve())),
        ),
      );
    } finally {
      socket.close();
    }
  }
}

/** The name of our own interface on a link ({@link ownLinkName}). */
export function ownNameFor({ index }: Link): string {
  return `servicenet${index}`;
}

/** Which interfaces carry the addresses that are announced, and which addresses they have. */
export class MacvlanLinks {
  /** All interfaces, ours too. */
  readonly links: readonly Link[];
  readonly #on: 'macvlan' | 'interface';
  #placed: ReadonlyMap<string, readonly string[]> | undefined;
  #uplinks: ReadonlyMap<string, readonly string[]> | undefined;

  /** @param on `macvlan`: an interface of ours on each; `interface`: the interface itself. */
  constructor(links: readonly Link[], on: 'macvlan' | 'interface') {
    this.links = links;
    this.#on = on;
  }

  /** The interface that carries addresses for a link; undefined: there is none yet. */
  of(link: Link): Link | undefined {
    if (this.#on === 'interface') return link;
    return this.links.find(({ name }) => name === ownNameFor(link));
  }

  /** The name of the interface that carries addresses for another one. */
  nameOn(uplink: string): string | undefined {
    const link = this.links.find(({ name }) => name === uplink);
    return link === undefined ? undefined : this.of(link)?.name;
  }

  /** Our addresses, canonical, and the interfaces that have them. */
  get placed(): ReadonlyMap<string, readonly string[]> {
    this.#placed ??= byAddress(
      this.links.flatMap((link) => this.placedOn(link).map((address) => [address, link.name] as const)),
    );
    return this.#placed;
  }

  /** Our addresses, canonical, and the interfaces for which they are carried. */
  get uplinks(): ReadonlyMap<string, readonly string[]> {
    this.#uplinks ??= byAddress(
      this.links.flatMap((link) => {
        const own = this.of(link);
        return own === undefined ? [] : this.placedOn(own).map((address) => [address, link.name] as const);
      }),
    );
    return this.#uplinks;
  }

  /** Our addresses, and the interfaces with a link for which they are carried. */
  announced(): readonly AddressOnLink[] {
    return this.links.flatMap((link) => {
      const own = link.hasCarrier && !ownLinkName.test(link.name) ? this.of(link) : undefined;
      if (own === undefined) return [];
      return this.placedOn(own).map((address) => ({ address, link }));
    });
  }

  /** Our addresses on an interface, canonical. */
  placedOn({ name, addresses }: Link): readonly string[] {
    if (this.#on === 'macvlan' && !ownLinkName.test(name)) return [];
    return addresses.filter(isPlaced).map(({ address }) => address.canonical);
  }
}

function byAddress(entries: readonly (readonly [string, string])[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const [address, name] of entries) {
    const names = found.get(address);
    if (names === undefined) found.set(address, [name]);
    else names.push(name);
  }
  return found;
}

/** Why neighbours do not hear of addresses: a reason word, and what to do. */
interface ArpingProblem {
  readonly reason: 'NoArping' | 'ReannounceRefused';
  readonly message: string;
  readonly error: unknown;
}

/** Programs at once: each sends at its start, and then waits for a second. */
const programsAtOnce = 250;

/**
 * Announces addresses of interfaces to neighbours with the program arping. The kernel itself announces those of
 * IPv6 when they are added (`arpingSysctls`). Needs the right NET_RAW.
 */
export class Arping {
  readonly #host: Host;
  readonly #failed: (name: string, problem: ArpingProblem) => void;
  /** Ends the programs, by interface. */
  readonly #running = new Map<string, AbortController>();

  constructor(host: Host, failed: (name: string, problem: ArpingProblem) => void) {
    this.#host = host;
    this.#failed = failed;
  }

  /** Begins, and does not wait: it takes a second at least, in which lifetimes are to be refreshed. */
  announce(name: string, addresses: readonly string[]): void {
    this.#running.get(name)?.abort();
    const running = new AbortController();
    this.#running.set(name, running);
    void arpingAll(this.#host, name, addresses, running.signal).then((problem) => {
      if (problem !== undefined) this.#failed(name, problem);
    });
  }

  end(): void {
    for (const running of this.#running.values()) running.abort();
  }
}

/** @returns the first problem; undefined: all are out. */
async function arpingAll(
  host: Host,
  name: string,
  addresses: readonly string[],
  signal: AbortSignal,
): Promise<ArpingProblem | undefined> {
  const ofIPv4 = addresses.filter((one) => !one.includes(':'));
  for (let begin = 0; begin < ofIPv4.length && !signal.aborted; begin += programsAtOnce) {
    const some = ofIPv4.slice(begin, begin + programsAtOnce);
    const problems = await Promise.all(some.map((address) => arping(host, name, address, signal)));
    const problem = problems.find((one) => one !== undefined);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

async function arping(
  host: Host,
  name: string,
  address: string,
  signal: AbortSignal,
): Promise<ArpingProblem | undefined> {
  try {
    const { exitCode, stderr } = await host.exec('arping', ['-U', '-c', '1', '-I', name, address], {
      signal,
    });
    if (exitCode !== 0 && stderr !== '') throw new Error(stderr.trim());
    return undefined;
  } catch (error) {
    if (signal.aborted) return undefined;
    if (error instanceof ProgramMissingError) {
      const message =
        'there is no program arping: install the package iputils-arping, or do without --arping';
      return { reason: 'NoArping', message, error };
    }
    return { reason: 'ReannounceRefused', message: 'arping fails: it needs the right NET_RAW', error };
  }
}
