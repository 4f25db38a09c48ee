import type { AnnouncementRefusalReason } from '../../../objects/reasons.ts';
import type { Logger } from 'pino';
import type { Clock } from '../../../client/clock.ts';
import type { Host } from '../../../host/host.ts';
import type { AnnouncementRefusal } from '../../../network/announcing/announcement-plan.ts';
import { addressBits, parseAddress, type ParsedAddress, type ParsedCidr } from '../../../objects/address.ts';
import { arpProbe, type AddressOnLink, probeOthers } from './arp.ts';
import { defaultGateways, isHostPrefix, isPlaced, type Link, ownLinkName, subnetsOf } from './links.ts';
import { keepsForMs, lookAgainMs } from '../../../network/announcing/address-conflict.ts';

export interface AddressConflictsOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly log: Logger;
  /** The place of addresses: see `Layer2Options`. */
  readonly on: 'macvlan' | 'interface';
  /**
   * Whose MAC address it is that answers for an address: an agent's that announces it, a node's own, or neither
   * (undefined).
   */
  readonly ownerOfMac: (mac: string, address: string) => 'agent' | 'node' | undefined;
  /** Whether an address is in a Node's status. */
  readonly isNodeAddress: (address: string) => boolean;
  /** Whether a pool has an address that it may give to a Service. */
  readonly isPooled: (address: string) => boolean;
  /** Whether another agent of the cluster announces an address, or did until a moment ago, and none knows of a conflict. */
  readonly isAgents: (address: string) => boolean;
}

/** Milliseconds between two questions for an address that another machine has. */
const probeAgainMs = 30_000;

/**
 * The interface on which kube-proxy in mode ipvs keeps the addresses of all Services, so that all nodes may answer
 * ARP.
 */
const ipvsInterface = 'kube-ipvs0';

/** The addresses that a node does not announce by layer 2 although it could, since something else has them. */
export class AddressConflicts {
  readonly #options: AddressConflictsOptions;
  readonly #refusals = new Map<string, AnnouncementRefusal & { askedAtMs: number }>();
  /** Addresses that another machine answered for when they were last asked for: a second time decides. */
  readonly #suspects = new Map<string, string>();
  #gateways: ReadonlySet<string> = new Set();
  /** When the default routers were read, monotonic. */
  #openedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: AddressConflictsOptions) {
    this.#options = options;
  }

  /** Reads the default routers. Comes before all other calls. @throws {Error} where they are not listed. */
  async open(): Promise<void> {
    this.#openedAtMs = this.#options.clock.monotonic();
    this.#gateways = await defaultGateways(this.#options.host);
  }

  /** All refusals, and what pools contain that no Service can use: the machine's own addresses, and its routers'. */
  list(links: readonly Link[]): readonly AnnouncementRefusal[] {
    const refused = new Map<string, AnnouncementRefusal>();
    for (const address of this.#gateways)
      refused.set(address, { address, reason: 'GatewayAddress', holder: '' });
    for (const { name, addresses } of links) {
      if (ownLinkName.test(name)) continue;
      for (const one of addresses) {
        const address = one.address.canonical;
        if (!one.isGlobal || isHostPrefix(one)) continue;
        refused.set(address, { address, reason: 'NodeAddress', holder: name });
      }
    }
    for (const address of [...refused.keys()]) if (!this.#options.isPooled(address)) refused.delete(address);
    for (const { address, reason, holder } of this.#refusals.values()) {
      refused.set(address, { address, reason, holder });
    }
    return [...refused.values()];
  }

  /** Forgets refusals of addresses that no Service has, and of those that an agent has. */
  retain(isAssigned: (address: string) => boolean): void {
    for (const { address, holder } of this.#refusals.values()) {
      const isAgents = this.#options.ownerOfMac(holder, address) === 'agent';
      if (isAgents || !isAssigned(address)) this.#refusals.delete(address);
    }
    for (const address of this.#suspects.keys()) if (!isAssigned(address)) this.#suspects.delete(address);
  }

  /**
   * Asks the network, but not for what another agent has, or has just left: that one has asked, and a successor that asked
   * again would be late.
   *
   * @returns those that nothing else has; the others are refused.
   */
  async free(addresses: readonly string[], links: readonly Link[]): Promise<ReadonlySet<string>> {
    const known = addresses.flatMap((address) => this.#knownHolder(address, links) ?? []);
    for (const { address, reason, holder } of known) this.refuse(address, reason, holder);
    const others = addresses.filter((address) => !known.some((one) => one.address === address));
    const agents = others.filter(this.#options.isAgents);
    const asked = others.filter((address) => !agents.includes(address));
    const holders = await this.#holders(asked, links);
    const free = [...agents, ...asked.filter((address) => this.#isFree(address, holders.get(address)))];
    for (const address of free) this.#refusals.delete(address);
    return new Set(free);
  }

  /** Probes refused addresses again: the owner of an address that has become free is planned anew. */
  async askAgain(links: readonly Link[]): Promise<void> {
    const nowMs = this.#options.clock.monotonic();
    if (nowMs - this.#openedAtMs >= probeAgainMs) await this.open();
    const due = [...this.#refusals.values()].filter(({ askedAtMs }) => nowMs - askedAtMs >= probeAgainMs);
    if (due.length > 0) await this.#askForRefused(due, links);
  }

  /** Refuses an address, which something else has. */
  refuse(address: string, reason: AnnouncementRefusalReason, holder: string): void {
    this.#suspects.delete(address);
    const known = this.#refusals.get(address);
    if (known?.reason !== reason || known.holder !== holder) {
      this.#options.log.warn({ address, reason, holder }, refusalTexts[reason]);
    }
    this.#refusals.set(address, { address, reason, holder, askedAtMs: this.#options.clock.monotonic() });
  }

  /**
   * Who it is that answers for an address which this node announces: a node of this cluster that does not announce it,
   * another machine, or nothing that matters (undefined).
   */
  conflictingHost(address: string, mac: string, links: readonly Link[]): 'node' | 'machine' | undefined {
    if (links.some((link) => link.mac === mac)) return undefined;
    const owner = this.#options.ownerOfMac(mac, address);
    if (owner === undefined) return 'machine';
    const ofIPVS = links.find(({ name }) => name === ipvsInterface)?.addresses ?? [];
    const isWithAll = ofIPVS.some((one) => one.address.canonical === address);
    return owner === 'node' && !isWithAll ? 'node' : undefined;
  }

  async #askForRefused(
    due: readonly (AnnouncementRefusal & { askedAtMs: number })[],
    links: readonly Link[],
  ): Promise<void> {
    const { clock, log, ownerOfMac } = this.#options;
    const holders = await this.#holders(
      due.map(({ address }) => address),
      links,
    );
    for (const refusal of due) {
      const { address } = refusal;
      const mac = holders.get(address);
      const isAnswered = mac !== undefined && ownerOfMac(mac, address) !== 'agent';
      const isHeld = isAnswered || this.#knownHolder(address, links) !== undefined;
      if (isHeld) refusal.askedAtMs = clock.monotonic();
      else {
        this.#refusals.delete(address);
        log.info({ address }, 'an address that another machine had is free again');
      }
    }
  }

  /** Whether an answer leaves an address to this cluster; where the same machine of no agent answers twice, it is refused. */
  #isFree(address: string, mac: string | undefined): boolean {
    const owner = mac === undefined ? 'agent' : this.#options.ownerOfMac(mac, address);
    if (mac === undefined || owner === 'agent') {
      this.#suspects.delete(address);
      return true;
    }
    // A new agent may not have reported its MAC address yet.
    if (this.#suspects.get(address) === mac) {
      this.refuse(address, owner === 'node' ? 'OtherAnnouncer' : 'AddressConflict', mac);
    } else this.#suspects.set(address, mac);
    return false;
  }

  /** Who answers for addresses on links of this node. */
  async #holders(addresses: readonly string[], links: readonly Link[]): Promise<ReadonlyMap<string, string>> {
    const subnets = links.flatMap(subnetsOf);
    const asked = addresses.filter((address) => {
      const parsed = parseAddress(address);
      return parsed !== undefined && subnets.some((subnet) => contains(subnet, parsed));
    });
    return asked.length === 0 ? new Map() : arpProbe(this.#options.host, asked);
  }

  /** Who has an address, by the objects that this machine has, without a probe. */
  #knownHolder(address: string, links: readonly Link[]): AnnouncementRefusal | undefined {
    if (this.#gateways.has(address)) return { address, reason: 'GatewayAddress', holder: '' };
    if (this.#options.isNodeAddress(address)) return { address, reason: 'NodeAddress', holder: '' };
    for (const { name, addresses } of links) {
      if (ownLinkName.test(name) || name === ipvsInterface) continue;
      const found = addresses.find((one) => one.address.canonical === address);
      if (found === undefined) continue;
      if (this.#options.on === 'interface' && isPlaced(found)) continue;
      return { address, reason: isHostPrefix(found) ? 'OtherAnnouncer' : 'NodeAddress', holder: name };
    }
    return undefined;
  }
}

const refusalTexts: Readonly<Record<AnnouncementRefusalReason, string>> = {
  AddressConflict:
    'another machine answers for an address: is it in the range of a DHCP server, or of another cluster?',
  OtherAnnouncer:
    'another announcer on a node of this cluster has an address, which is not announced: MetalLB, kube-vip, Cilium?',
  NodeAddress: 'an address is that of a node, and not announced: take it out of the pool',
  GatewayAddress: "an address is that of the node's router, and not announced: take it out of the pool",
};

function contains(subnet: ParsedCidr, { family, value }: ParsedAddress): boolean {
  const hostBits = BigInt(addressBits(subnet.family) - subnet.prefixLength);
  return subnet.family === family && value >> hostBits === subnet.network >> hostBits;
}

interface AddressDefenceOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Who it is that answers for an address: a node of this cluster that does not announce it, another machine, or nothing
   * that matters (undefined).
   */
  readonly conflictingHost: (address: string, mac: string) => 'node' | 'machine' | undefined;
  /** Neighbours are to hear again of the addresses on an interface. */
  readonly announceAgain: (link: Link) => void;
  /** An address is to be announced no more. */
  readonly withdraw: (address: string, rival: 'node' | 'machine', mac: string) => void;
}

/** Milliseconds between two looks at all addresses. */
const probeEveryMs = 30_000;

/** Addresses that are asked for at once: see `probeOthers`. */
const atOnce = 250;

/** A machine that answers for an address of this node. */
interface Conflict {
  readonly mac: string;
  /** When it was first seen, monotonic. */
  readonly sinceMs: number;
}

/**
 * Finds out whether another machine answers for an address that this node announces: soon after the beginning, since two
 * may begin at the same moment, and every 30 seconds. `network/announcing/address-conflict.ts` says who keeps it.
 */
export class AddressDefence {
  readonly #options: AddressDefenceOptions;
  /** By address: when it is asked for, monotonic. */
  readonly #probeAtMs = new Map<string, number>();
  readonly #conflicts = new Map<string, Conflict>();
  #asking: Promise<void> | undefined;

  constructor(options: AddressDefenceOptions) {
    this.#options = options;
  }

  /** Begins to ask for what is due, and does not wait. @param announced all that this node announces. */
  look(announced: readonly AddressOnLink[]): void {
    const nowMs = this.#options.clock.monotonic();
    const known = new Set(announced.map(({ address }) => address));
    for (const address of this.#probeAtMs.keys()) {
      if (known.has(address)) continue;
      this.#probeAtMs.delete(address);
      this.#conflicts.delete(address);
    }
    for (const address of known) {
      if (!this.#probeAtMs.has(address)) this.#probeAtMs.set(address, nowMs + lookAgainMs);
    }
    if (this.#asking !== undefined) return;
    const due = announced
      .filter(({ address }) => (this.#probeAtMs.get(address) ?? nowMs) <= nowMs)
      .slice(0, atOnce);
    if (due.length === 0) return;
    this.#asking = this.#ask(due, nowMs)
      .catch((error: unknown) => {
        this.#options.log.warn(
          { err: error, reason: 'AnnounceFailed' },
          'cannot ask who else has addresses, will retry',
        );
      })
      .finally(() => {
        this.#asking = undefined;
      });
  }

  /** Resolves when nothing is asked for any more. */
  async close(): Promise<void> {
    await this.#asking;
  }

  async #ask(asked: readonly AddressOnLink[], nowMs: number): Promise<void> {
    // All at the same times: one question for many costs as much as for one.
    const next = (Math.floor(nowMs / probeEveryMs) + 1) * probeEveryMs;
    for (const { address } of asked) this.#probeAtMs.set(address, next);
    const macs = await probeOthers(this.#options.host, asked);
    for (const { address, link } of asked) {
      const mac = macs.get(address);
      const rival = mac === undefined ? undefined : this.#options.conflictingHost(address, mac);
      if (mac === undefined || rival === undefined) this.#conflicts.delete(address);
      else if (this.#probeAtMs.has(address)) this.#answer(address, link, rival, mac);
    }
  }

  #answer(address: string, link: Link, rival: 'node' | 'machine', mac: string): void {
    const { announceAgain, clock, log, withdraw } = this.#options;
    const nowMs = clock.monotonic();
    const known = this.#conflicts.get(address);
    const sinceMs = known?.mac === mac ? known.sinceMs : nowMs;
    const keepsMs = keepsForMs(link.mac, mac, rival === 'node');
    this.#probeAtMs.set(address, nowMs + lookAgainMs);
    this.#conflicts.set(address, { mac, sinceMs });
    if (nowMs - sinceMs >= keepsMs) withdraw(address, rival, mac);
    else if (sinceMs === nowMs && keepsMs > lookAgainMs) {
      log.warn(
        { address, holder: mac, reason: 'AddressConflict' },
        'another machine answers for an address that this node announces, and ought to withdraw it',
      );
      announceAgain(link);
    }
  }
}

/** Milliseconds after a new address at which all are announced again: neighbours may have missed it. */
const afterNewMs = [300, 1000] as const;
/** The same without a change. */
const repeatMs = 30_000;

/** When the addresses of interfaces are announced to neighbours; milliseconds of a monotonic clock. */
export class GratuitousArpSchedule {
  readonly #due = new Map<string, readonly number[]>();

  /** An interface has a new address: now, and twice soon after. */
  added(name: string, nowMs: number): void {
    this.#due.set(name, [nowMs, ...afterNewMs.map((after) => nowMs + after)]);
  }

  /** An interface whose addresses a former process placed is due at once. */
  isDue(name: string, nowMs: number): boolean {
    return this.#times(name, nowMs).some((time) => time <= nowMs);
  }

  /** Its addresses are announced. */
  announced(name: string, nowMs: number): void {
    const later = this.#times(name, nowMs).filter((time) => time > nowMs);
    this.#due.set(name, later.length > 0 ? later : [nowMs + repeatMs]);
  }

  /** Not now, but soon. */
  postpone(name: string, nowMs: number): void {
    const soon = nowMs + afterNewMs[0];
    this.#due.set(
      name,
      this.#times(name, nowMs).map((time) => Math.max(time, soon)),
    );
  }

  /** The next time of some interfaces; infinite: none has one. */
  next(names: Iterable<string>): number {
    let next = Number.POSITIVE_INFINITY;
    for (const name of names) for (const time of this.#due.get(name) ?? []) next = Math.min(next, time);
    return next;
  }

  #times(name: string, nowMs: number): readonly number[] {
    return this.#due.get(name) ?? [nowMs];
  }
}
