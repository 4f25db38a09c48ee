import type { Logger } from 'pino';
import type { Clock } from '../../../client/clock.ts';
import { type Host, ProgramMissingError } from '../../../host/host.ts';
import type {
  AnnouncerInterface,
  AnnouncementRefusal,
  AnnouncementRefusalReason,
} from '../../../network/announcing/announcement-plan.ts';
import { addressBits, parseAddress, type ParsedAddress, type ParsedCidr } from '../../../objects/address.ts';
import type { AddressAnnouncer, AddressToAnnounce } from '../address-announcer.ts';
import { whoHas } from './conflict-probe.ts';
import {
  changeLinks,
  defaultGateways,
  type Link,
  type LinkAddress,
  ownLinkName,
  subnetsOf,
} from './links.ts';

export interface Layer2Options {
  readonly host: Host;
  readonly clock: Clock;
  readonly log: Logger;
  /** Seconds that addresses may live in the kernel from now on; 0: they are not to be refreshed, and none is added. */
  readonly lifetime: () => number;
  /**
   * Whose MAC address it is that answers for an address: an agent's that announces it, a node's own, or neither
   * (undefined).
   */
  readonly ownerOfMac: (mac: string, address: string) => 'agent' | 'node' | undefined;
  /** Whether an address is a node's own, as its Node object says. */
  readonly isNodeAddress: (address: string) => boolean;
  /**
   * `macvlan`: an interface of our own, with a MAC address of its own, on each interface. `interface`: the interface
   * itself, where nothing on the way takes a second MAC address (Wi-Fi, many switches of virtual machines).
   */
  readonly on: 'macvlan' | 'interface';
  /** Announce anew by the program arping, which needs the right NET_RAW, instead of by setting the MAC address. */
  readonly arping: boolean;
}

/** See {@link ownLinkName}. */
const ownPrefix = 'servicenet';

/** Where kube-proxy in mode ipvs keeps the addresses of all Services: it answers no ARP and no NDP. */
const ipvsInterface = 'kube-ipvs0';

/** Milliseconds after a new address at which all are announced again: neighbours may have missed it. */
const announceAgainAfter = [300, 1000] as const;
/** The same without a change. */
const announceAgainEvery = 30_000;
/** Milliseconds between two questions for an address that another machine has. */
const askAgainEvery = 30_000;

/** What the kernel needs for an interface of ours, by the folder of /proc/sys/net. */
const ownSysctls: readonly (readonly [family: 'ipv4' | 'ipv6', name: string, value: string])[] = [
  // Setting the MAC address announces all addresses.
  ['ipv4', 'arp_notify', '1'],
  ['ipv6', 'ndisc_notify', '1'],
  // Announces an address at once; whether it is free was asked before.
  ['ipv6', 'accept_dad', '0'],
  ['ipv6', 'accept_ra', '0'],
  // Answers go out of the interface below.
  ['ipv4', 'rp_filter', '2'],
];

/**
 * Announces by ARP and NDP, with NET_ADMIN alone: addresses are put on an interface, the kernel answers for them, and
 * drops them when their lifetime is not refreshed. The caller calls {@link announce} at short intervals.
 */
export class Layer2Announcer implements AddressAnnouncer {
  readonly #options: Layer2Options;
  #links: readonly Link[] = [];
  #gateways: ReadonlySet<string> = new Set();
  #refusals = new Map<string, AnnouncementRefusal & { askedAt: number }>();
  /** Addresses that a stranger answered for when they were last asked for: a second time decides. */
  #suspects = new Map<string, string>();
  /** New ones that neighbours were not told of yet. */
  #untold = new Set<string>();
  /** When the interfaces announce again, monotonic. */
  readonly #due = new Map<string, number[]>();
  /** Words that were logged, each once until it is over. */
  readonly #said = new Set<string>();

  constructor(options: Layer2Options) {
    this.#options = options;
  }

  /** Reads what there is: addresses of a former process are announced still. Comes before all other calls. */
  async open(): Promise<void> {
    await this.#change([]);
    this.#gateways = await defaultGateways(this.#options.host);
  }

  /** Reads what the kernel has: it forgets addresses by itself. */
  async look(): Promise<void> {
    await this.#change([]);
  }

  get announced(): ReadonlySet<string> {
    return new Set(this.#placed().keys());
  }

  /** Those of which neighbours were told: who had them before may let them go. */
  get told(): readonly string[] {
    return [...this.#placed().keys()].filter((address) => !this.#untold.has(address));
  }

  /** The interfaces on which an address is announced now. */
  interfacesOf(address: string): readonly string[] {
    const names = this.#placed().get(address) ?? [];
    return this.#links.flatMap((link) => {
      const carrier = this.#carrier(link);
      return carrier !== undefined && names.includes(carrier.name) ? [link.name] : [];
    });
  }

  get refused(): readonly AnnouncementRefusal[] {
    return [...this.#refusals.values()].map(({ address, reason, holder }) => ({ address, reason, holder }));
  }

  /** Interfaces with a link on which addresses can be announced: those with a subnet, and others by their name. */
  interfaces(named: ReadonlySet<string>): readonly AnnouncerInterface[] {
    return this.#links
      .filter(({ name, hasCarrier, isEthernet }) => hasCarrier && isEthernet && !ownLinkName.test(name))
      .map((link) => ({
        name: link.name,
        subnets: subnetsOf(link),
        mac: this.#carrier(link)?.mac ?? link.mac,
        ownMac: link.mac,
      }))
      .filter(({ name, subnets }) => subnets.length > 0 || named.has(name));
  }

  /** Forgets refusals of addresses that no Service has any more, and those that an agent turned out to have. */
  retain(isAssigned: (address: string) => boolean): void {
    for (const { address, holder } of this.#refusals.values()) {
      const isAgents = this.#options.ownerOfMac(holder, address) === 'agent';
      if (isAgents || !isAssigned(address)) this.#refusals.delete(address);
    }
    for (const address of this.#suspects.keys()) if (!isAssigned(address)) this.#suspects.delete(address);
  }

  async announce(addresses: readonly AddressToAnnounce[]): Promise<void> {
    const { lifetime } = this.#options;
    const wanted = new Map(addresses.map((address) => [address.address, address]));
    const placed = this.#placed();
    const seconds = lifetime();
    const lines: string[] = [];
    for (const [address, names] of placed) {
      for (const name of names) {
        const isWanted = wanted.get(address)?.interfaces.some((on) => this.#nameOn(on) === name) === true;
        if (!isWanted) lines.push(`address del ${hostPrefix(address)} dev ${name}`);
        else if (seconds > 0) lines.push(placeLine(address, name, seconds));
      }
    }
    await this.#change(lines);
    const fresh = addresses.filter(({ address, interfaces }) => {
      const names = placed.get(address) ?? [];
      return interfaces.some((on) => !names.includes(this.#nameOn(on) ?? ''));
    });
    if (fresh.length > 0 && seconds > 0) await this.#add(fresh);
    await this.#askForRefused();
    await this.#announceAgain();
  }

  /** Lets addresses live on for some seconds without this process; others end now. */
  async leave(addresses: ReadonlySet<string>, seconds: number): Promise<void> {
    const lines: string[] = [];
    for (const [address, names] of this.#placed()) {
      for (const name of names) {
        const stays = addresses.has(address) && seconds > 0;
        lines.push(
          stays ? placeLine(address, name, seconds) : `address del ${hostPrefix(address)} dev ${name}`,
        );
      }
    }
    await this.#change(lines);
    const empty = this.#links.filter(
      ({ name, addresses: left }) => ownLinkName.test(name) && left.length === 0,
    );
    await this.#change(empty.map(({ name }) => `link del ${name}`));
  }

  async close(): Promise<void> {
    await this.leave(new Set(), 0);
  }

  async #add(addresses: readonly AddressToAnnounce[]): Promise<void> {
    const { clock, lifetime } = this.#options;
    await this.#makeInterfaces(addresses);
    const free = await this.#free(addresses);
    const lines: string[] = [];
    const touched = new Set<string>();
    const seconds = lifetime();
    for (const { address, interfaces } of seconds > 0 ? free : []) {
      for (const name of interfaces.flatMap((on) => this.#nameOn(on) ?? [])) {
        lines.push(placeLine(address, name, seconds));
        touched.add(name);
      }
    }
    for (const { address } of free) this.#untold.add(address);
    await this.#change(lines);
    const now = clock.monotonic();
    for (const name of touched) {
      this.#due.set(name, [now, ...announceAgainAfter.map((after) => now + after)]);
    }
  }

  /** Those that nothing else has; the others are refused. */
  async #free(addresses: readonly AddressToAnnounce[]): Promise<readonly AddressToAnnounce[]> {
    const known = addresses.flatMap(({ address }) => this.#knownHolder(address) ?? []);
    for (const { address, reason, holder } of known) this.#refuse(address, reason, holder);
    const asked = addresses.filter(({ address }) => !known.some((one) => one.address === address));
    const onLink = asked.filter(({ address }) => this.#isOnLink(address)).map(({ address }) => address);
    const holders =
      onLink.length === 0 ? new Map<string, string>() : await whoHas(this.#options.host, onLink);
    return asked.filter(({ address }) => {
      const mac = holders.get(address);
      const owner = mac === undefined ? 'agent' : this.#options.ownerOfMac(mac, address);
      if (mac === undefined || owner === 'agent') {
        this.#suspects.delete(address);
        this.#refusals.delete(address);
        return true;
      }
      // An agent that has just begun may not have said yet that the MAC address is its own.
      if (this.#suspects.get(address) === mac) {
        this.#refuse(address, owner === 'node' ? 'OtherAnnouncer' : 'AddressConflict', mac);
      } else this.#suspects.set(address, mac);
      return false;
    });
  }

  /** Who has an address, as far as this machine knows without asking. */
  #knownHolder(address: string): AnnouncementRefusal | undefined {
    if (this.#gateways.has(address)) return { address, reason: 'GatewayAddress', holder: '' };
    if (this.#options.isNodeAddress(address)) return { address, reason: 'NodeAddress', holder: '' };
    for (const { name, addresses } of this.#links) {
      if (ownLinkName.test(name) || name === ipvsInterface) continue;
      const found = addresses.find((one) => one.address.canonical === address);
      if (found === undefined) continue;
      if (this.#options.on === 'interface' && isPlaced(found)) continue;
      return { address, reason: isHostPrefix(found) ? 'OtherAnnouncer' : 'NodeAddress', holder: name };
    }
    return undefined;
  }

  #refuse(address: string, reason: AnnouncementRefusalReason, holder: string): void {
    this.#suspects.delete(address);
    const known = this.#refusals.get(address);
    if (known?.reason !== reason || known.holder !== holder) {
      this.#options.log.warn({ address, reason, holder }, refusalTexts[reason]);
    }
    this.#refusals.set(address, { address, reason, holder, askedAt: this.#options.clock.monotonic() });
  }

  /** An address that has become free is taken from the list: whose it is then is planned anew. */
  async #askForRefused(): Promise<void> {
    const now = this.#options.clock.monotonic();
    const due = [...this.#refusals.values()].filter(({ askedAt }) => now - askedAt >= askAgainEvery);
    if (due.length === 0) return;
    this.#gateways = await defaultGateways(this.#options.host);
    const asked = due.map(({ address }) => address).filter((address) => this.#isOnLink(address));
    const holders = await whoHas(this.#options.host, asked);
    for (const refusal of due) {
      const isHeld = holders.has(refusal.address) || this.#knownHolder(refusal.address) !== undefined;
      if (isHeld) refusal.askedAt = now;
      else {
        this.#refusals.delete(refusal.address);
        this.#options.log.info(
          { address: refusal.address },
          'an address that another machine had is free again',
        );
      }
    }
  }

  async #makeInterfaces(addresses: readonly AddressToAnnounce[]): Promise<void> {
    if (this.#options.on === 'interface') return;
    const uplinks = new Set(addresses.flatMap(({ interfaces }) => interfaces));
    for (const link of this.#links) {
      if (!uplinks.has(link.name) || this.#carrier(link) !== undefined) continue;
      const name = `${ownPrefix}${link.index}`;
      const { errors } = await this.#change([
        `link add link ${link.name} name ${name} type macvlan mode bridge`,
        `link set ${name} addrgenmode none`,
      ]);
      if (!this.#links.some((made) => made.name === name)) {
        this.#once(
          'NoMacvlan',
          { interface: link.name, error: errors },
          'cannot make an interface for addresses, and announces nothing there: try --announce-on=interface',
        );
        continue;
      }
      await this.#setSysctls(name);
      await this.#change([`link set ${name} up`]);
    }
  }

  async #setSysctls(name: string): Promise<void> {
    const { sysctl } = this.#options.host;
    for (const [family, parameter, value] of ownSysctls) {
      const path = `net/${family}/conf/${name}/${parameter}`;
      try {
        if ((await sysctl.get(path)) !== undefined) await sysctl.set(path, value);
      } catch (error) {
        this.#once(
          'SysctlRefused',
          { sysctl: path, value, err: error },
          'cannot set a kernel parameter of the interface for addresses: neighbours may learn late of a move',
        );
      }
    }
  }

  /** Sends what tells neighbours the MAC address of every address, where it is due. */
  async #announceAgain(): Promise<void> {
    const now = this.#options.clock.monotonic();
    const carriers = this.#links.filter((link) => this.#placedOn(link).length > 0);
    for (const link of carriers) {
      const times = this.#due.get(link.name) ?? [now];
      if (!times.some((time) => time <= now)) continue;
      const later = times.filter((time) => time > now);
      this.#due.set(link.name, later.length > 0 ? later : [now + announceAgainEvery]);
      await (this.#options.arping ? this.#arping(link) : this.#setMac(link));
    }
    this.#untold.clear();
  }

  async #setMac({ name, mac }: Link): Promise<void> {
    const { errors } = await this.#change([`link set dev ${name} address ${mac}`]);
    if (errors === '') return;
    this.#once(
      'ReannounceRefused',
      { interface: name, error: errors },
      'the interface does not take its MAC address again, by which addresses are announced: try --arping',
    );
  }

  async #arping(link: Link): Promise<void> {
    for (const address of this.#placedOn(link).filter((one) => !one.includes(':'))) {
      try {
        const args = ['-U', '-c', '1', '-I', link.name, address];
        const { exitCode, stderr } = await this.#options.host.exec('arping', args);
        if (exitCode !== 0 && stderr !== '') throw new Error(stderr.trim());
      } catch (error) {
        const isMissing = error instanceof ProgramMissingError;
        this.#once(
          isMissing ? 'NoArping' : 'ReannounceRefused',
          { interface: link.name, err: error },
          isMissing
            ? 'there is no program arping: install the package iputils-arping, or do without --arping'
            : 'arping fails: it needs the right NET_RAW',
        );
        return;
      }
    }
  }

  #once(reason: string, of: object, message: string): void {
    const id = `${reason} ${JSON.stringify(of)}`;
    if (this.#said.has(id)) return;
    this.#said.add(id);
    this.#options.log.warn({ reason, ...of }, message);
  }

  /** The interface that carries addresses for a link. */
  #carrier(link: Link): Link | undefined {
    if (this.#options.on === 'interface') return link;
    return this.#links.find(({ name }) => name === `${ownPrefix}${link.index}`);
  }

  #nameOn(uplink: string): string | undefined {
    const link = this.#links.find(({ name }) => name === uplink);
    return link === undefined ? undefined : this.#carrier(link)?.name;
  }

  /** Our addresses, and the interfaces that have them. */
  #placed(): Map<string, readonly string[]> {
    const found = new Map<string, readonly string[]>();
    for (const link of this.#links) {
      for (const address of this.#placedOn(link)) {
        found.set(address, [...(found.get(address) ?? []), link.name]);
      }
    }
    return found;
  }

  #placedOn({ name, addresses }: Link): readonly string[] {
    if (this.#options.on === 'macvlan' && !ownLinkName.test(name)) return [];
    return addresses.filter(isPlaced).map(({ address }) => address.canonical);
  }

  #isOnLink(address: string): boolean {
    const parsed = parseAddress(address);
    if (parsed === undefined) return false;
    return this.#links.some((link) => subnetsOf(link).some((subnet) => contains(subnet, parsed)));
  }

  async #change(lines: readonly string[]): Promise<{ readonly errors: string }> {
    const { links, errors } = await changeLinks(this.#options.host, lines);
    this.#links = links;
    return { errors };
  }
}

const refusalTexts: Readonly<Record<AnnouncementRefusalReason, string>> = {
  AddressConflict:
    'another machine answers for an address, which is not announced: is it in the range of a DHCP server, or of another cluster?',
  OtherAnnouncer:
    'another announcer on a node of this cluster has an address, which is not announced: MetalLB, kube-vip, Cilium?',
  NodeAddress: 'an address is that of a node, and not announced: take it out of the pool',
  GatewayAddress: "an address is that of the node's router, and not announced: take it out of the pool",
};

/** Deprecated, so that the machine uses it for nothing of its own. */
function placeLine(address: string, name: string, seconds: number): string {
  return `address replace ${hostPrefix(address)} dev ${name} valid_lft ${seconds} preferred_lft 0`;
}

function hostPrefix(address: string): string {
  return `${address}/${address.includes(':') ? 128 : 32}`;
}

function isHostPrefix({ address, prefixLength }: LinkAddress): boolean {
  return prefixLength === (address.family === 'IPv4' ? 32 : 128);
}

/** Whether an address on an interface was placed there by {@link placeLine}. */
function isPlaced(one: LinkAddress): boolean {
  return one.isGlobal && one.isDeprecated && isHostPrefix(one);
}

function contains(subnet: ParsedCidr, { family, value }: ParsedAddress): boolean {
  const hostBits = BigInt(addressBits(subnet.family) - subnet.prefixLength);
  return subnet.family === family && value >> hostBits === subnet.network >> hostBits;
}
