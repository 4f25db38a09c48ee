import type { Host } from '../../../host/host.ts';
import { parseAddress, parseCidr, type ParsedAddress, type ParsedCidr } from '../../../objects/address.ts';
import { at, listAt, numberAt, textAt } from '../../../objects/json.ts';
import { ResidentProgram } from '../../../host/resident-program.ts';

/** An interface of a machine with its addresses, as `ip` (package iproute2) lists it. */
export interface Link {
  readonly index: number;
  readonly name: string;
  /** Lower case. */
  readonly mac: string;
  /** Up, and something at the other end (`LOWER_UP`). */
  readonly hasCarrier: boolean;
  readonly isEthernet: boolean;
  readonly addresses: readonly LinkAddress[];
}

export interface LinkAddress {
  readonly address: ParsedAddress;
  readonly prefixLength: number;
  /** Of scope `global`: others are of no use beyond the link. */
  readonly isGlobal: boolean;
  /** For use by nothing of the machine itself, and only for a time: how announced addresses are placed. */
  readonly isDeprecated: boolean;
}

/** The answer of a batch: what it listed, and what went wrong in lines before. */
export interface LinkListing {
  readonly links: readonly Link[];
  /** The messages of `ip` about lines that failed; the others were done. */
  readonly errors: string;
}

/**
 * Runs lines of `ip -batch`, each for itself, and lists all links afterwards.
 *
 * @throws {Error} where the list does not come.
 * @throws {ProgramMissingError} without `ip`.
 */
export async function changeLinks(host: Host, lines: readonly string[]): Promise<LinkListing> {
  const { stdout, stderr } = await host.exec('ip', ['-json', '-force', '-batch', '-'], {
    input: [...lines, 'address show', ''].join('\n'),
  });
  if (!stdout.startsWith('[')) throw new Error(`ip address show: ${stderr.trim()}`);
  const links: unknown = JSON.parse(stdout);
  return { links: linksOf(links), errors: stderr.trim() };
}

/** The list of `ip -json address show`. */
function linksOf(listed: unknown): readonly Link[] {
  return Array.isArray(listed) ? listed.flatMap(linkOf) : [];
}

/** The names of interfaces that are made for announced addresses: the index of the interface below follows. */
export const ownLinkName = /^servicenet\d+$/;

/**
 * Takes away the interfaces that were made for announced addresses, and the addresses, on whatever interface they are.
 *
 * @throws {Error} as {@link changeLinks}.
 */
export async function removeAnnounced(host: Host): Promise<void> {
  const { links } = await changeLinks(host, []);
  const lines = links.flatMap(({ name, addresses }) => {
    if (ownLinkName.test(name)) return [`link del ${name}`];
    const placed = addresses.filter(isPlaced);
    return placed.map(({ address }) => `address del ${hostPrefix(address.canonical)} dev ${name}`);
  });
  if (lines.length > 0) await changeLinks(host, lines);
}

/** The addresses of default routers. @throws {Error} where they are not listed. */
export async function defaultGateways(host: Host): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const family of ['-4', '-6']) {
    const { exitCode, stdout, stderr } = await host.exec('ip', ['-json', family, 'route', 'show', 'default']);
    if (exitCode !== 0) throw new Error(`ip route show: ${stderr.trim()}`);
    const routes: unknown = stdout.trim() === '' ? [] : JSON.parse(stdout);
    for (const route of Array.isArray(routes) ? routes : []) {
      const gateway = parseAddress(textAt(route, 'gateway'));
      if (gateway !== undefined) found.add(gateway.canonical);
    }
  }
  return found;
}

/** MAC addresses of neighbours that answer, by canonical address; those that are still asked are not in it. */
export async function neighbours(host: Host): Promise<ReadonlyMap<string, string>> {
  const { exitCode, stdout, stderr } = await host.exec('ip', ['-json', 'neighbour', 'show']);
  if (exitCode !== 0) throw new Error(`ip neighbour show: ${stderr.trim()}`);
  return neighboursIn(stdout);
}

/** The same of what `ip -json neighbour show` has printed. */
export function neighboursIn(printed: string): ReadonlyMap<string, string> {
  const entries: unknown = printed.trim() === '' ? [] : JSON.parse(printed);
  const found = new Map<string, string>();
  for (const entry of Array.isArray(entries) ? entries : []) {
    const address = parseAddress(textAt(entry, 'dst'));
    const mac = textAt(entry, 'lladdr').toLowerCase();
    if (address !== undefined && mac !== '') found.set(address.canonical, mac);
  }
  return found;
}

/** The subnets of a link: what is reached there without a router. */
export function subnetsOf({ addresses }: Link): readonly ParsedCidr[] {
  return addresses.flatMap((one) => {
    if (!one.isGlobal || isHostPrefix(one)) return [];
    return parseCidr(`${one.address.canonical}/${one.prefixLength}`) ?? [];
  });
}

/** An address as `ip` takes it, without a subnet. */
export function hostPrefix(address: string): string {
  return `${address}/${address.includes(':') ? 128 : 32}`;
}

/** Whether an address has no subnet. */
export function isHostPrefix({ address, prefixLength }: LinkAddress): boolean {
  return prefixLength === (address.family === 'IPv4' ? 32 : 128);
}

/** Whether an address on an interface was placed there to be announced. */
export function isPlaced(one: LinkAddress): boolean {
  return one.isGlobal && one.isDeprecated && isHostPrefix(one);
}

function linkOf(entry: unknown): readonly Link[] {
  const name = textAt(entry, 'ifname');
  if (name === '') return [];
  return [
    {
      name,
      index: numberAt(entry, 'ifindex'),
      mac: textAt(entry, 'address').toLowerCase(),
      hasCarrier: listAt(entry, 'flags').includes('LOWER_UP') && listAt(entry, 'flags').includes('UP'),
      isEthernet: textAt(entry, 'link_type') === 'ether',
      addresses: listAt(entry, 'addr_info').flatMap((info) => {
        const address = parseAddress(textAt(info, 'local'));
        if (address === undefined) return [];
        const isGlobal = textAt(info, 'scope') === 'global';
        const isDeprecated = at(info, 'dynamic') === true && at(info, 'preferred_life_time') === 0;
        return [{ address, prefixLength: numberAt(info, 'prefixlen'), isGlobal, isDeprecated }];
      }),
    },
  ];
}

/** A kernel parameter of an interface, below `net/FAMILY/conf/NAME`. */
export type LinkSysctl = readonly [family: 'ipv4' | 'ipv6', name: string, value: string];

/** Settings of an interface that has other addresses too: setting its MAC address announces all addresses. */
export const sharedSysctls: readonly LinkSysctl[] = [
  ['ipv4', 'arp_notify', '1'],
  ['ipv6', 'ndisc_notify', '1'],
];

/** The kernel announces a new IPv6 address at once; whether it is free was asked before. */
const announcedAtOnce: LinkSysctl = ['ipv6', 'accept_dad', '0'];

/** The same where nothing else announces IPv6 addresses. */
export const arpingSysctls: readonly LinkSysctl[] = [...sharedSysctls, announcedAtOnce];

/** Settings of an interface of our own. */
export const ownSysctls: readonly LinkSysctl[] = [
  ...sharedSysctls,
  announcedAtOnce,
  ['ipv6', 'accept_ra', '0'],
  // Answers go out of the interface below.
  ['ipv4', 'rp_filter', '2'],
];

/** Sets kernel parameters of interfaces, and remembers what they were. */
export class LinkSysctls {
  readonly #host: Host;
  readonly #refused: (path: string, error: unknown) => void;
  /** By their path, the index of the interface that they were set on, and the values before. */
  readonly #before = new Map<string, { readonly index: number; readonly value: string }>();

  /** @param refused is called for each that could not be set. */
  constructor(host: Host, refused: (path: string, error: unknown) => void) {
    this.#host = host;
    this.#refused = refused;
  }

  /**
   * Sets what is there and was not set before: a kernel without IPv6 has half of them, and an interface that was made again
   * by the same name has none.
   */
  async set({ name, index }: Pick<Link, 'name' | 'index'>, sysctls: readonly LinkSysctl[]): Promise<void> {
    for (const [family, parameter, value] of sysctls) {
      const path = `net/${family}/conf/${name}/${parameter}`;
      if (this.#before.get(path)?.index === index) continue;
      try {
        const before = await this.#host.sysctl.get(path);
        if (before === undefined) continue;
        await this.#host.sysctl.set(path, value);
        this.#before.set(path, { index, value: before });
      } catch (error) {
        this.#refused(path, error);
      }
    }
  }

  /** Sets all back. */
  async restore(): Promise<void> {
    for (const [path, { value }] of this.#before) {
      try {
        await this.#host.sysctl.set(path, value);
      } catch (error) {
        this.#refused(path, error);
      }
    }
    this.#before.clear();
  }
}

/**
 * A program `ip -batch` that stays: lines take effect as they are written, not as soon as a busy machine starts a program,
 * so that lifetimes end when they are to.
 */
export class IpBatch {
  readonly #program: ResidentProgram;

  constructor(host: Host) {
    this.#program = new ResidentProgram({
      ...{ host, program: 'ip', args: ['-json', '-force', '-batch', '-'] },
      // Each list is one line.
      answerEnd: '\n',
      // It keeps the messages about failed lines until its end.
      questionsEach: 1000,
    });
  }

  /**
   * Runs lines, each for itself, and lists all links afterwards. Lines that fail are left out.
   *
   * @throws {Error} where the program has ended before the list came; the next call starts another one.
   * @throws {ProgramMissingError} without `ip`.
   */
  async change(lines: readonly string[]): Promise<readonly Link[]> {
    const links: unknown = JSON.parse(await this.#program.ask([...lines, 'address show', ''].join('\n')));
    return linksOf(links);
  }

  /** Ends the program. */
  async close(): Promise<void> {
    await this.#program.close();
  }
}
