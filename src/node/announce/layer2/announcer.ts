import type { Logger } from 'pino';
import type { Clock } from '../../../client/clock.ts';
import type { Host } from '../../../host/host.ts';
import { announcerMac } from '../../../network/announcing/address-conflict.ts';
import type {
  AnnouncementRefusal,
  AnnouncerInterface,
} from '../../../network/announcing/announcement-plan.ts';
import type { AddressAnnouncer, AddressToAnnounce } from '../view.ts';
import { AddressDefence } from './defence.ts';
import { AddressRefusals, type AddressRefusalsOptions } from './refusals.ts';
import { Arping } from './arping.ts';
import { AnnouncementTimes } from './defence.ts';
import { IpBatch } from './links.ts';
import { arpingSysctls, LinkSysctls, ownSysctls, sharedSysctls } from './links.ts';
import { Carriers, ownNameFor } from './conflict-probe.ts';
import { changeLinks, hostPrefix, type Link, ownLinkName, subnetsOf } from './links.ts';

export interface Layer2Options extends AddressRefusalsOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Seconds that so many addresses may live in the kernel from now on; 0: they are not to be refreshed, and none is added.
   */
  readonly lifetime: (addresses: number) => number;
  /**
   * `macvlan`: an interface of our own, with a MAC address of its own, on each interface. `interface`: the interface
   * itself, where nothing on the way takes a second MAC address (Wi-Fi, many switches of virtual machines).
   */
  readonly on: 'macvlan' | 'interface';
  /** Announce anew by the program arping, which needs the right NET_RAW, instead of by setting the MAC address. */
  readonly arping: boolean;
}

/** An address on an interface. */
interface Place {
  readonly address: string;
  readonly name: string;
}

/** The inputs of {@link Layer2Announcer.announce} besides its addresses. */
export interface AnnounceOptions {
  /** Names of interfaces on which this node may have to take over: ours on them are made before. */
  readonly standby: ReadonlySet<string>;
  /** Those of the addresses that another node is to have, once it announces them. */
  readonly leaving: ReadonlySet<string>;
}

/** Milliseconds until an interface of ours that could not be made is tried again. */
const makeAgainMs = 30_000;

/**
 * Announces by ARP and NDP, with NET_ADMIN alone: addresses are put on an interface, the kernel answers for them, and
 * drops them when their lifetime is not refreshed. The caller calls {@link announce} at short intervals.
 */
export class Layer2Announcer implements AddressAnnouncer {
  readonly #options: Layer2Options;
  #carriers: Carriers;
  readonly #refusals: AddressRefusals;
  readonly #defence: AddressDefence;
  readonly #sysctls: LinkSysctls;
  readonly #batch: IpBatch;
  /** New ones that are not announced to neighbours yet. */
  #unconfirmed = new Set<string>();
  readonly #times = new AnnouncementTimes();
  /** When interfaces of ours that could not be made are tried again, by the one below, monotonic. */
  readonly #makeAgainAt = new Map<string, number>();
  readonly #arping: Arping;
  /** Words that were logged, each once until it is over. */
  readonly #logged = new Set<string>();

  constructor(options: Layer2Options) {
    this.#options = options;
    this.#carriers = new Carriers([], options.on);
    this.#refusals = new AddressRefusals(options);
    this.#defence = new AddressDefence({
      ...options,
      rivalOf: (address, mac) => this.#refusals.rivalOf(address, mac, this.#carriers.links),
      announceAgain: (link) => {
        const carrier = this.#carriers.of(link);
        if (carrier !== undefined) this.#times.added(carrier.name, options.clock.monotonic());
      },
      withdraw: (address, rival, mac) =>
        this.#refusals.refuse(address, rival === 'node' ? 'OtherAnnouncer' : 'AddressConflict', mac),
    });
    this.#batch = new IpBatch(options.host);
    this.#arping = new Arping(options.host, (name, { reason, message, error }) =>
      this.#once(reason, { interface: name, err: error }, message),
    );
    this.#sysctls = new LinkSysctls(options.host, (sysctl, error) =>
      this.#once(
        'SysctlRefused',
        { sysctl, err: error },
        'cannot set a kernel parameter of the interface for addresses: neighbours may learn late of a move',
      ),
    );
  }

  /** Reads what there is: addresses of a former process are announced still. Comes before all other calls. */
  async open(): Promise<void> {
    await this.#change([]);
    await this.#refusals.open();
  }

  /** Reads what the kernel has: it forgets addresses by itself. */
  async look(): Promise<void> {
    this.#setLinks(await this.#batch.change([]));
    await this.#refusals.open();
  }

  get announced(): ReadonlySet<string> {
    return new Set(this.#carriers.placed().keys());
  }

  /** Those that were announced to neighbours: the node that had them before may release them. */
  get confirmed(): readonly string[] {
    return [...this.#carriers.placed().keys()].filter((address) => !this.#unconfirmed.has(address));
  }

  /** The interfaces on which an address is announced now. */
  interfacesOf(address: string): readonly string[] {
    const names = this.#carriers.placed().get(address) ?? [];
    return this.#carriers.links.flatMap((link) => {
      const carrier = this.#carriers.of(link);
      return carrier !== undefined && names.includes(carrier.name) ? [link.name] : [];
    });
  }

  get refused(): readonly AnnouncementRefusal[] {
    return this.#refusals.list(this.#carriers.links);
  }

  /** Interfaces with a link on which addresses can be announced: those with a subnet, and others by their name. */
  interfaces(named: ReadonlySet<string>): readonly AnnouncerInterface[] {
    return this.#carriers.links
      .filter(({ name, hasCarrier, isEthernet }) => hasCarrier && isEthernet && !ownLinkName.test(name))
      .map((link) => ({
        name: link.name,
        subnets: subnetsOf(link),
        mac: this.#carriers.of(link)?.mac ?? link.mac,
        ownMac: link.mac,
      }))
      .filter(({ name, subnets }) => subnets.length > 0 || named.has(name));
  }

  /** Forgets refusals of addresses that no Service has, and of those that an agent has. */
  retain(isAssigned: (address: string) => boolean): void {
    this.#refusals.retain(isAssigned);
  }

  /** When all addresses of an interface are to be announced again, monotonic; infinite: there are none. */
  get nextDue(): number {
    const carrying = this.#carriers.links.filter((link) => this.#carriers.placedOn(link).length > 0);
    return this.#times.next(carrying.map(({ name }) => name));
  }

  async announce(
    addresses: readonly AddressToAnnounce[],
    { standby, leaving }: Partial<AnnounceOptions> = {},
  ): Promise<void> {
    const wanted = new Map(addresses.map((address) => [address.address, address]));
    const placed = this.#carriers.placed();
    const kept: Place[] = [];
    const lines: string[] = [];
    for (const [address, names] of placed) {
      for (const name of names) {
        const isWanted =
          wanted.get(address)?.interfaces.some((on) => this.#carriers.nameOn(on) === name) === true;
        if (isWanted) kept.push({ address, name });
        else lines.push(removeLine({ address, name }));
      }
    }
    await this.#place(kept, lines);
    const fresh = addresses.filter(({ address, interfaces }) => {
      const names = placed.get(address) ?? [];
      return interfaces.some((on) => !names.includes(this.#carriers.nameOn(on) ?? ''));
    });
    await this.#makeInterfaces(
      new Set([...fresh.flatMap(({ interfaces }) => interfaces), ...(standby ?? [])]),
    );
    if (fresh.length > 0 && this.#options.lifetime(kept.length + fresh.length) > 0)
      await this.#add(fresh, kept);
    await this.#announceAgain(leaving ?? new Set());
    this.#defence.look(this.#carriers.announced());
    await this.#refusals.askAgain(this.#carriers.links);
  }

  /** Lets addresses live on for some seconds without this process; others end now. */
  async leave(addresses: ReadonlySet<string>, seconds: number): Promise<void> {
    this.#arping.end();
    await this.#defence.close();
    const lines: string[] = [];
    for (const [address, names] of this.#carriers.placed()) {
      for (const name of names) {
        const stays = addresses.has(address) && seconds > 0;
        const place = { address, name };
        lines.push(stays ? this.#placeLine(place, seconds) : removeLine(place));
      }
    }
    await this.#change(lines);
    const empty = this.#carriers.links.filter(
      ({ name, addresses: left }) => ownLinkName.test(name) && left.length === 0,
    );
    await this.#change(empty.map(({ name }) => `link del ${name}`));
    if (this.#options.on === 'interface') await this.#sysctls.restore();
    await this.#batch.close();
  }

  async close(): Promise<void> {
    await this.leave(new Set(), 0);
  }

  /** @param kept what is there: all that is refreshed together ends together. */
  async #add(addresses: readonly AddressToAnnounce[], kept: readonly Place[]): Promise<void> {
    const asked = addresses.map(({ address }) => address);
    const isFree = await this.#refusals.free(asked, this.#carriers.links);
    const free = addresses.filter(({ address }) => isFree.has(address));
    const places = free.flatMap(({ address, interfaces }) =>
      interfaces.flatMap((on) => this.#carriers.nameOn(on) ?? []).map((name) => ({ address, name })),
    );
    for (const { address } of free) this.#unconfirmed.add(address);
    if (places.length > 0) await this.#place([...kept, ...places]);
    const touched = new Set(places.map(({ name }) => name));
    const now = this.#options.clock.monotonic();
    for (const name of touched) this.#times.added(name, now);
  }

  /** Gives addresses their lifetime, and a shorter one at once where that has taken too long. */
  async #place(places: readonly Place[], lines: readonly string[] = []): Promise<void> {
    const { lifetime } = this.#options;
    const seconds = lifetime(places.length);
    const given = seconds > 0 ? places.map((place) => this.#placeLine(place, seconds)) : [];
    this.#setLinks(await this.#batch.change([...lines, ...given]));
    const left = lifetime(places.length);
    if (left >= seconds) return;
    this.#setLinks(
      await this.#batch.change(
        places.map((place) => (left > 0 ? this.#placeLine(place, left) : removeLine(place))),
      ),
    );
  }

  async #makeInterfaces(uplinks: ReadonlySet<string>): Promise<void> {
    if (this.#options.on === 'interface') {
      const sysctls = this.#options.arping ? arpingSysctls : sharedSysctls;
      for (const name of uplinks) await this.#sysctls.set(name, sysctls);
      return;
    }
    const now = this.#options.clock.monotonic();
    for (const link of this.#carriers.links) {
      if (!uplinks.has(link.name) || this.#carriers.of(link) !== undefined) continue;
      if (now < (this.#makeAgainAt.get(link.name) ?? now)) continue;
      const name = ownNameFor(link);
      const { errors } = await this.#change([
        `link add link ${link.name} name ${name} address ${announcerMac(link.mac)} type macvlan mode bridge`,
        `link set ${name} addrgenmode none`,
      ]);
      if (!this.#carriers.links.some((made) => made.name === name)) {
        this.#makeAgainAt.set(link.name, now + makeAgainMs);
        this.#once(
          'NoMacvlan',
          { interface: link.name, error: errors },
          'cannot make an interface for addresses, and announces nothing there: try --announce-on=interface',
        );
        continue;
      }
      await this.#sysctls.set(name, ownSysctls);
      await this.#change([`link set ${name} up`]);
    }
  }

  /**
   * Announces the MAC address of every address to neighbours, when it is due. If another node is to take one over
   * it waits, unless there are new addresses: neighbours that know the other node already would switch back.
   */
  async #announceAgain(leaving: ReadonlySet<string>): Promise<void> {
    const now = this.#options.clock.monotonic();
    for (const link of this.#carriers.links) {
      const addresses = this.#carriers.placedOn(link);
      if (addresses.length === 0) continue;
      if (!this.#times.isDue(link.name, now)) continue;
      const isNews = addresses.some((address) => this.#unconfirmed.has(address));
      if (!isNews && addresses.some((address) => leaving.has(address))) {
        this.#times.postpone(link.name, now);
        continue;
      }
      this.#times.announced(link.name, now);
      await this.#announceOn(link, addresses);
    }
    this.#unconfirmed.clear();
  }

  async #announceOn({ name, mac }: Link, addresses: readonly string[]): Promise<void> {
    if (this.#options.arping) {
      this.#arping.announce(name, addresses);
      return;
    }
    const { errors } = await this.#change([`link set dev ${name} address ${mac}`]);
    if (errors === '') return;
    this.#once(
      'ReannounceRefused',
      { interface: name, error: errors },
      'the interface does not take its MAC address again, by which addresses are announced: try --arping',
    );
  }

  #once(reason: string, of: object, message: string): void {
    const id = `${reason} ${JSON.stringify(of)}`;
    if (this.#logged.has(id)) return;
    this.#logged.add(id);
    this.#options.log.warn({ reason, ...of }, message);
  }

  /**
   * Deprecated, so that the machine uses it for nothing of its own. On the interface itself, the kernel would ask for a
   * second whether an IPv6 address is free, which was done before (`nodad`); an own one, and one beside arping, does not
   * (`accept_dad`), and announces the address.
   */
  #placeLine({ address, name }: Place, seconds: number): string {
    const { on, arping } = this.#options;
    const nodad = on === 'interface' && !arping && address.includes(':') ? ' nodad' : '';
    return `address replace ${hostPrefix(address)} dev ${name} valid_lft ${seconds} preferred_lft 0${nodad}`;
  }

  async #change(lines: readonly string[]): Promise<{ readonly errors: string }> {
    const { links, errors } = await changeLinks(this.#options.host, lines);
    this.#setLinks(links);
    return { errors };
  }

  #setLinks(links: readonly Link[]): void {
    this.#carriers = new Carriers(links, this.#options.on);
  }
}

function removeLine({ address, name }: Place): string {
  return `address del ${hostPrefix(address)} dev ${name}`;
}
