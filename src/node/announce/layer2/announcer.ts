import type { Logger } from 'pino';
import type { Clock } from '../../../client/clock.ts';
import type { Host } from '../../../host/host.ts';
import { announcerMac } from '../../../network/announcing/address-conflict.ts';
import type {
  AnnouncementRefusal,
  AnnouncerInterface,
} from '../../../network/announcing/announcement-plan.ts';
import type { AddressToAnnounce, Layer2Plan } from '../../../network/announcing/agent-io.ts';
import {
  AddressDefence,
  AddressConflicts,
  type AddressConflictsOptions,
  GratuitousArpSchedule,
} from './conflicts.ts';
import { Arping, MacvlanLinks, ownNameFor } from './arp.ts';
import {
  IpBatch,
  arpingSysctls,
  LinkSysctls,
  ownSysctls,
  sharedSysctls,
  changeLinks,
  hostPrefix,
  type Link,
  ownLinkName,
  subnetsOf,
} from './links.ts';

export interface Layer2Options extends AddressConflictsOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Seconds that an address, one of so many, may live in the kernel from now on; 0: it is not to be refreshed, nor added. Without
   * an address: any.
   */
  readonly lifetime: (addresses: number, address?: string) => number;
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

/** The kernel lets addresses end so much early. */
const expirySlackSeconds = 2;

/** Milliseconds until an interface of ours that could not be made is tried again. */
const makeAgainMs = 30_000;

/**
 * Announces by ARP and NDP, with NET_ADMIN alone: addresses are put on an interface, the kernel answers for them, and
 * drops them when their lifetime is not refreshed. The caller calls {@link announce} at short intervals.
 */
export class Layer2Announcer {
  readonly #options: Layer2Options;
  #macvlans: MacvlanLinks;
  readonly #conflicts: AddressConflicts;
  readonly #defence: AddressDefence;
  readonly #sysctls: LinkSysctls;
  readonly #batch: IpBatch;
  /** New ones that are not announced to neighbours yet. */
  #unconfirmed = new Set<string>();
  readonly #schedule = new GratuitousArpSchedule();
  /** When interfaces of ours that could not be made are tried again, by the one below, monotonic. */
  readonly #makeAgainAtMs = new Map<string, number>();
  readonly #arping: Arping;
  /** The indices of interfaces of ours that have their kernel parameters and are up. */
  readonly #prepared = new Set<number>();
  /** Until when the kernel keeps each address that was put on an interface, monotonic. */
  #keptUntilMs = new Map<Place, number>();
  /** Those that were gone before, and are not back. */
  #taken: readonly Place[] = [];
  /** Problems that were logged. Each is logged once in the life of the process. */
  readonly #logged = new Set<string>();

  constructor(options: Layer2Options) {
    this.#options = options;
    this.#macvlans = new MacvlanLinks([], options.on);
    this.#conflicts = new AddressConflicts(options);
    this.#defence = new AddressDefence({
      ...options,
      conflictingHost: (address, mac) => this.#conflicts.conflictingHost(address, mac, this.#macvlans.links),
      announceAgain: (link) => {
        const own = this.#macvlans.of(link);
        if (own !== undefined) this.#schedule.added(own.name, options.clock.monotonic());
      },
      withdraw: (address, rival, mac) =>
        this.#conflicts.refuse(address, rival === 'node' ? 'OtherAnnouncer' : 'AddressConflict', mac),
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
    await this.#conflicts.open();
  }

  /** Reads what the kernel has: it forgets addresses by itself. */
  async look(): Promise<void> {
    this.#setLinks(await this.#batch.change([]));
    const now = this.#options.clock.monotonic();
    for (const [place, untilMs] of this.#keptUntilMs) {
      if (this.#isThere(place)) continue;
      this.#keptUntilMs.delete(place);
      if (now < untilMs) this.#taken = [...this.#taken, place];
    }
    await this.#conflicts.open();
  }

  /** Canonical: the addresses that are announced now. */
  get announced(): ReadonlySet<string> {
    return new Set(this.#macvlans.placed.keys());
  }

  /** Those that were announced to neighbours: the node that had them before may release them. */
  get confirmed(): readonly string[] {
    return [...this.#macvlans.placed.keys()].filter((address) => !this.#unconfirmed.has(address));
  }

  /** The addresses of {@link announced}, with the interfaces on which they are. */
  get placement(): ReadonlyMap<string, readonly string[]> {
    return this.#macvlans.uplinks;
  }

  get refused(): readonly AnnouncementRefusal[] {
    return this.#conflicts.list(this.#macvlans.links);
  }

  /** Interfaces with a link on which addresses can be announced: those with a subnet, and others by their name. */
  interfaces(named: ReadonlySet<string>): readonly AnnouncerInterface[] {
    return this.#macvlans.links
      .filter(({ name, hasCarrier, isEthernet }) => hasCarrier && isEthernet && !ownLinkName.test(name))
      .map((link) => ({
        name: link.name,
        subnets: subnetsOf(link),
        mac: this.#macvlans.of(link)?.mac ?? link.mac,
        ownMac: link.mac,
      }))
      .filter(({ name, subnets }) => subnets.length > 0 || named.has(name));
  }

  /** Forgets refusals of addresses that no Service has, and of those that an agent has. */
  retain(isAssigned: (address: string) => boolean): void {
    this.#conflicts.retain(isAssigned);
  }

  /** When all addresses of an interface are to be announced again, monotonic; infinite: there are none. */
  get nextDueMs(): number {
    const carrying = this.#macvlans.links.filter((link) => this.#macvlans.placedOn(link).length > 0);
    return this.#schedule.next(carrying.map(({ name }) => name));
  }

  /**
   * Announces these addresses from now on, and no others. One call at a time; with the same addresses it sends nothing. What
   * cannot be announced is logged by its reason and tried again, here or with the next call.
   *
   * @throws {Error} where no address could be announced: the caller calls again.
   */
  async announce(
    addresses: readonly AddressToAnnounce[],
    { standbyInterfaces, leaving }: Partial<Omit<Layer2Plan, 'addresses'>> = {},
  ): Promise<void> {
    const wanted = new Map(addresses.map((address) => [address.address, address]));
    const placed = this.#macvlans.placed;
    const kept: Place[] = [];
    const lines: string[] = [];
    for (const [address, names] of placed) {
      for (const name of names) {
        const isWanted =
          wanted.get(address)?.interfaces.some((on) => this.#macvlans.nameOn(on) === name) === true;
        if (isWanted) kept.push({ address, name });
        else lines.push(removeLine({ address, name }));
      }
    }
    await this.#place(kept, lines);
    const fresh = addresses.filter(({ address, interfaces }) => {
      const names = placed.get(address) ?? [];
      return interfaces.some((on) => !names.includes(this.#macvlans.nameOn(on) ?? ''));
    });
    await this.#makeInterfaces(
      new Set([...fresh.flatMap(({ interfaces }) => interfaces), ...(standbyInterfaces ?? [])]),
    );
    if (fresh.length > 0 && this.#options.lifetime(kept.length + fresh.length) > 0)
      await this.#add(fresh, kept);
    this.#tellRestored((address) => wanted.has(address));
    await this.#announceAgain(leaving ?? new Set());
    this.#defence.look(this.#macvlans.announced());
    await this.#conflicts.askAgain(this.#macvlans.links);
  }

  /** Lets addresses live on for some seconds without this process; others end now. */
  async leave(addresses: ReadonlySet<string>, seconds: number): Promise<void> {
    this.#arping.end();
    await this.#defence.close();
    const lines: string[] = [];
    for (const [address, names] of this.#macvlans.placed) {
      for (const name of names) {
        const stays = addresses.has(address) && seconds > 0;
        const place = { address, name };
        lines.push(stays ? this.#placeLine(place, seconds) : removeLine(place));
      }
    }
    await this.#change(lines);
    const empty = this.#macvlans.links.filter(
      ({ name, addresses: left }) => ownLinkName.test(name) && left.length === 0,
    );
    await this.#change(empty.map(({ name }) => `link del ${name}`));
    if (this.#options.on === 'interface') await this.#sysctls.restore();
    await this.#batch.close();
  }

  /** Withdraws all addresses. */
  async close(): Promise<void> {
    await this.leave(new Set(), 0);
  }

  /** @param kept what is there: all that is refreshed together ends together. */
  async #add(addresses: readonly AddressToAnnounce[], kept: readonly Place[]): Promise<void> {
    const asked = addresses.map(({ address }) => address);
    const isFree = await this.#conflicts.free(asked, this.#macvlans.links);
    const free = addresses.filter(({ address }) => isFree.has(address));
    const places = free.flatMap(({ address, interfaces }) =>
      interfaces.flatMap((on) => this.#macvlans.nameOn(on) ?? []).map((name) => ({ address, name })),
    );
    for (const { address } of free) this.#unconfirmed.add(address);
    if (places.length > 0) await this.#place([...kept, ...places]);
    const touched = new Set(places.map(({ name }) => name));
    const now = this.#options.clock.monotonic();
    for (const name of touched) this.#schedule.added(name, now);
  }

  /** Gives addresses their lifetime, and a shorter one at once where that has taken too long. */
  async #place(places: readonly Place[], lines: readonly string[] = []): Promise<void> {
    const begunMs = this.#options.clock.monotonic();
    const secondsOf = ({ address }: Place): number => this.#options.lifetime(places.length, address);
    const given = places.map((place) => ({ place, seconds: secondsOf(place) }));
    const put = given.filter(({ seconds }) => seconds > 0);
    const putLines = put.map(({ place, seconds }) => this.#placeLine(place, seconds));
    this.#setLinks(await this.#batch.change([...lines, ...putLines]));
    const late = put.flatMap(({ place, seconds }) => {
      const left = secondsOf(place);
      if (left >= seconds) return [];
      return [left > 0 ? this.#placeLine(place, left) : removeLine(place)];
    });
    if (late.length > 0) this.#setLinks(await this.#batch.change(late));
    const untilMs = ({ place, seconds }: (typeof put)[number]): number =>
      begunMs + (Math.min(seconds, secondsOf(place)) - expirySlackSeconds) * 1000;
    const there = put.filter(({ place }) => this.#isThere(place));
    this.#keptUntilMs = new Map(there.map((one) => [one.place, untilMs(one)]));
  }

  #isThere({ address, name }: Place): boolean {
    return this.#macvlans.placed.get(address)?.includes(name) === true;
  }

  /** Of addresses that another program has removed, and that are wanted still. */
  #tellRestored(isWanted: (address: string) => boolean): void {
    const back = this.#taken.filter((place) => this.#isThere(place));
    const addresses = [...new Set(back.map(({ address }) => address))];
    this.#taken = this.#taken.filter((place) => !back.includes(place) && isWanted(place.address));
    if (addresses.length === 0) return;
    this.#options.log.warn(
      { reason: 'AddressRemoved', addresses },
      'another program has removed addresses from their interface, or the interface: put them back',
    );
  }

  async #makeInterfaces(uplinks: ReadonlySet<string>): Promise<void> {
    if (this.#options.on === 'interface') {
      const sysctls = this.#options.arping ? arpingSysctls : sharedSysctls;
      for (const link of this.#macvlans.links)
        if (uplinks.has(link.name)) await this.#sysctls.set(link, sysctls);
      return;
    }
    const now = this.#options.clock.monotonic();
    for (const link of this.#macvlans.links) {
      const own = this.#macvlans.of(link);
      if (!uplinks.has(link.name) || (own !== undefined && this.#prepared.has(own.index))) continue;
      const made = own ?? (await this.#makeMacvlan(link, now));
      if (made === undefined) continue;
      // Also one that a killed process has left half made.
      await this.#sysctls.set(made, ownSysctls);
      await this.#change([`link set ${made.name} up`]);
      this.#prepared.add(made.index);
    }
  }

  /** Undefined: there is none now. */
  async #makeMacvlan(link: Link, nowMs: number): Promise<Link | undefined> {
    if (nowMs < (this.#makeAgainAtMs.get(link.name) ?? nowMs)) return undefined;
    const name = ownNameFor(link);
    const { errors } = await this.#change([
      `link add link ${link.name} name ${name} address ${announcerMac(link.mac)} type macvlan mode bridge`,
      `link set ${name} addrgenmode none`,
    ]);
    const made = this.#macvlans.links.find((each) => each.name === name);
    if (made !== undefined) return made;
    this.#makeAgainAtMs.set(link.name, nowMs + makeAgainMs);
    this.#once(
      'NoMacvlan',
      { interface: link.name, error: errors },
      'cannot make an interface for addresses, and announces nothing there: try --announce-on=interface',
    );
    return undefined;
  }

  /**
   * Announces the MAC address of every address to neighbours, when it is due. If another node is to take one over
   * it waits, unless there are new addresses: neighbours that know the other node already would switch back.
   */
  async #announceAgain(leaving: ReadonlySet<string>): Promise<void> {
    const now = this.#options.clock.monotonic();
    for (const link of this.#macvlans.links) {
      const addresses = this.#macvlans.placedOn(link);
      if (addresses.length === 0) continue;
      if (!this.#schedule.isDue(link.name, now)) continue;
      const isNews = addresses.some((address) => this.#unconfirmed.has(address));
      if (!isNews && addresses.some((address) => leaving.has(address))) {
        this.#schedule.postpone(link.name, now);
        continue;
      }
      this.#schedule.announced(link.name, now);
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
    this.#macvlans = new MacvlanLinks(links, this.#options.on);
  }
}

function removeLine({ address, name }: Place): string {
  return `address del ${hostPrefix(address)} dev ${name}`;
}
