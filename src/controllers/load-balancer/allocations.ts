import { parseStrictAddress, type IPFamily, ipFamilies } from '../../objects/address.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import { parseTime } from '../../objects/formats/time.ts';
import { Heap } from '../../runtime/heap.ts';
import type { AddressPool, FamilyUsage } from '../../objects/types/servicenet.ts';
import { type Pool, type Origin, PoolAddresses, type AddressState, type PoolLayout } from './pools.ts';
import { indexOfSpan, type Span } from '../../objects/address.ts';
import type { AddressRequest } from './request.ts';

/** A released address that only its last Service may get before `until`: the `reuseDelay` of its pool. */
export interface QuarantinedAddress {
  readonly address: string;
  /** Milliseconds since 1970. */
  readonly untilMs: number;
  /** The Service that released it, which may get it back at once. */
  readonly service: ObjectKey;
}

/** The addresses in quarantine, and when each leaves it. */
class Quarantine {
  readonly #byAddress = new Map<string, QuarantinedAddress>();
  /** Earliest end on top. Entries that #byAddress no longer has are dropped when they reach the top. */
  readonly #byEnd = new Heap<QuarantinedAddress>((a, b) => a.untilMs < b.untilMs);

  get(address: string): QuarantinedAddress | undefined {
    return this.#byAddress.get(address);
  }

  values(): Iterable<QuarantinedAddress> {
    return this.#byAddress.values();
  }

  add(entry: QuarantinedAddress): void {
    this.#byAddress.set(entry.address, entry);
    this.#byEnd.push(entry);
  }

  delete(address: string): void {
    this.#byAddress.delete(address);
  }

  /** When the next address leaves, in milliseconds since 1970; undefined when there is none. */
  get nextEnd(): number | undefined {
    return this.#first()?.untilMs;
  }

  /** Removes and returns the addresses whose quarantine has ended. */
  takeEnded(now: number): string[] {
    const ended: string[] = [];
    for (let first = this.#first(); first !== undefined && first.untilMs <= now; first = this.#first()) {
      this.#byEnd.pop();
      this.#byAddress.delete(first.address);
      ended.push(first.address);
    }
    return ended;
  }

  #first(): QuarantinedAddress | undefined {
    for (let top = this.#byEnd.peek(); top !== undefined; top = this.#byEnd.peek()) {
      if (this.#byAddress.get(top.address) === top) return top;
      this.#byEnd.pop();
    }
    return undefined;
  }
}

/**
 * The quarantined addresses in a pool's status, which outlives the process. Entries that have ended or cannot be parsed
 * are left out.
 *
 * @param now milliseconds since 1970.
 */
export function readQuarantined({ status }: AddressPool, now: number): QuarantinedAddress[] {
  return (status?.resting ?? []).flatMap(({ address, service, until }): QuarantinedAddress[] => {
    const parsed = parseStrictAddress(address);
    const time = parseTime(until);
    return parsed === undefined || time === undefined || time <= now
      ? []
      : [{ address: parsed.canonical, service, untilMs: time }];
  });
}

/** An address in use, by one Service or by several that share it. */
export interface Allocation {
  readonly address: string;
  readonly family: IPFamily;
  readonly value: bigint;
  /** The last pool that contained the address. */
  origin: Origin | undefined;
  /** The Services that have the address, each with the request it was assigned for. */
  readonly services: Map<ObjectKey, AddressRequest>;
  /** `TCP/80` -> the Service that serves the port on this address. */
  readonly ports: Map<string, ObjectKey>;
}

/** A pool with its addresses. */
export interface AllocatingPool {
  readonly pool: Pool;
  readonly addresses: Readonly<Record<IPFamily, PoolAddresses>>;
}

interface PoolSpan extends Span {
  readonly owner: AllocatingPool;
}

/**
 * Which Service has which address, and which addresses are quarantined or reserved. It makes no choices. Every change
 * of an address's state is passed to the {@link PoolAddresses} that contain it.
 */
export class Allocations {
  #pools = new Map<string, AllocatingPool>();
  /** Of all pools, ascending; layouts do not overlap. */
  #spans: Record<IPFamily, PoolSpan[]> = { IPv4: [], IPv6: [] };
  readonly #byAddress = new Map<string, Allocation>();
  readonly #byService = new Map<ObjectKey, Map<IPFamily, string>>();
  /** Service -> addresses that were unassigned and not released yet. */
  readonly #unreleased = new Map<ObjectKey, Set<string>>();
  readonly #quarantine = new Quarantine();
  #reservations = new Map<string, ObjectKey>(); // address -> Service
  #reservedFor = new Map<ObjectKey, string[]>(); // Service -> addresses
  /** The states in {@link PoolAddresses}. */
  readonly #states = new Map<string, AddressState>();

  /** By name, highest priority first. */
  get pools(): ReadonlyMap<string, AllocatingPool> {
    return this.#pools;
  }

  get(address: string): Allocation | undefined {
    return this.#byAddress.get(address);
  }

  values(): Iterable<Allocation> {
    return this.#byAddress.values();
  }

  /** The addresses assigned to a Service, by family. */
  addressesOf(service: ObjectKey): ReadonlyMap<IPFamily, string> {
    return this.#byService.get(service) ?? noAddresses;
  }

  /** The addresses that were unassigned from a Service, and that its status may still show. */
  unreleased(service: ObjectKey): ReadonlySet<string> {
    return this.#unreleased.get(service) ?? emptySet;
  }

  /** The Service that an address is reserved for. */
  reservation(address: string): ObjectKey | undefined {
    return this.#reservations.get(address);
  }

  reservedFor(service: ObjectKey): readonly string[] {
    return this.#reservedFor.get(service) ?? [];
  }

  quarantined(address: string): QuarantinedAddress | undefined {
    return this.#quarantine.get(address);
  }

  /** When the next quarantine ends, in milliseconds since 1970. */
  get nextQuarantineEnd(): number | undefined {
    return this.#quarantine.nextEnd;
  }

  /** The quarantined addresses of a pool, latest end first. */
  quarantinedIn(owner: AllocatingPool): QuarantinedAddress[] {
    const inside = [...this.#quarantine.values()].filter(({ address }) => {
      const parsed = parseStrictAddress(address);
      return parsed !== undefined && this.poolOf(parsed.family, parsed.value) === owner;
    });
    return inside.sort((a, b) => b.untilMs - a.untilMs || (a.address < b.address ? -1 : 1));
  }

  /** The pool that contains an address now. */
  poolOf(family: IPFamily, value: bigint): AllocatingPool | undefined {
    const spans = this.#spans[family];
    return spans[indexOfSpan(spans, value)]?.owner;
  }

  /**
   * The pool that decides about an address: the one that contains it; else the one that assigned it, as it is now; else
   * `last`, that pool as it was.
   */
  originOf(family: IPFamily, value: bigint, last: Origin | undefined): Origin | undefined {
    const owner = this.poolOf(family, value) ?? this.#pools.get(last?.pool ?? '');
    return owner === undefined ? last : { pool: owner.pool.name, shrinkPolicy: owner.pool.shrinkPolicy };
  }

  /** Replaces all pools. Services keep their addresses, also those that are in no pool. */
  setPools(pools: readonly Pool[], layouts: ReadonlyMap<string, PoolLayout>): void {
    this.#pools = new Map();
    this.#spans = { IPv4: [], IPv6: [] };
    this.#reservations = new Map();
    this.#reservedFor = new Map();
    const ordered = [...pools].sort((a, b) => b.priority - a.priority || (a.name < b.name ? -1 : 1));
    for (const pool of ordered) {
      const spans = layouts.get(pool.name)?.spans;
      if (spans === undefined) continue;
      const addresses = { IPv4: new PoolAddresses(spans.IPv4), IPv6: new PoolAddresses(spans.IPv6) };
      const owner = { pool, addresses };
      this.#pools.set(pool.name, owner);
      for (const family of ipFamilies) {
        for (const span of spans[family]) this.#spans[family].push({ ...span, owner });
      }
      for (const [address, service] of pool.reservations) this.#reserve(address, service, addresses);
    }
    for (const spans of Object.values(this.#spans)) spans.sort((a, b) => (a.first < b.first ? -1 : 1));
    const known = new Set([...this.#states.keys(), ...this.#reservations.keys()]);
    this.#states.clear();
    for (const address of known) this.#updateState(address);
    for (const allocation of this.#byAddress.values()) {
      allocation.origin = this.originOf(allocation.family, allocation.value, allocation.origin);
    }
  }

  /**
   * Assigns an address to a Service, beside the Services that have it already. The caller has checked that this is
   * allowed.
   *
   * @param last the pool that assigned the address according to the Service's status.
   * @returns other Services that got a port which this one no longer has.
   */
  assign(address: string, request: AddressRequest, last?: Origin): ObjectKey[] {
    const parsed = parseStrictAddress(address);
    if (parsed === undefined) return [];
    const { service } = request;
    this.#forgetUnreleased(address, service);
    let allocation = this.#byAddress.get(address);
    if (allocation === undefined) {
      allocation = {
        address,
        family: parsed.family,
        value: parsed.value,
        origin: this.originOf(parsed.family, parsed.value, last),
        services: new Map(),
        ports: new Map(),
      };
      this.#byAddress.set(address, allocation);
    }
    for (const port of allocation.services.get(service)?.ports ?? []) {
      if (allocation.ports.get(port) === service) allocation.ports.delete(port);
    }
    for (const port of request.ports) if (!allocation.ports.has(port)) allocation.ports.set(port, service);
    allocation.services.set(service, request);
    let own = this.#byService.get(service);
    if (own === undefined) {
      own = new Map<IPFamily, string>();
      this.#byService.set(service, own);
    }
    own.set(parsed.family, address);
    this.#quarantine.delete(address);
    this.#updateState(address);
    return assignFreePorts(allocation);
  }

  /** Unassigns an address from a Service. It stays in use until {@link release}, because a status may still show it. */
  unassign(address: string, service: ObjectKey): void {
    const own = this.#byService.get(service);
    for (const [family, assigned] of own ?? []) if (assigned === address) own?.delete(family);
    if (own?.size === 0) this.#byService.delete(service);
    const unreleased = this.#unreleased.get(service);
    if (unreleased === undefined) this.#unreleased.set(service, new Set([address]));
    else unreleased.add(address);
  }

  /**
   * Releases an unassigned address. When no other Service has it, it is free, or quarantined if its pool has a
   * reuseDelay.
   *
   * @returns other Services that got a port which this one served.
   */
  release(address: string, service: ObjectKey, now: number): ObjectKey[] {
    this.#forgetUnreleased(address, service);
    const allocation = this.#byAddress.get(address);
    if (allocation?.services.delete(service) !== true) return [];
    for (const [port, server] of allocation.ports) if (server === service) allocation.ports.delete(port);
    if (allocation.services.size > 0) return assignFreePorts(allocation);
    this.#byAddress.delete(address);
    const delay = this.poolOf(allocation.family, allocation.value)?.pool.reuseDelayMs ?? 0;
    if (delay > 0) this.quarantine({ address, untilMs: now + delay, service });
    else this.#updateState(address);
    return [];
  }

  /** Quarantines an address, unless it is in use. */
  quarantine(entry: QuarantinedAddress): void {
    if (this.#byAddress.has(entry.address)) return;
    this.#quarantine.add(entry);
    this.#updateState(entry.address);
  }

  /** Ends the quarantines that are over, and returns their addresses. */
  endQuarantines(now: number): string[] {
    const ended = this.#quarantine.takeEnded(now);
    for (const address of ended) this.#updateState(address);
    return ended;
  }

  /** The numbers of a pool's status. */
  usage({ addresses }: AllocatingPool, family: IPFamily): FamilyUsage {
    const own = addresses[family];
    return {
      total: safeInteger(Number(own.size)),
      used: own.count('used'),
      free: safeInteger(own.free),
      quarantined: own.count('quarantined'),
    };
  }

  #reserve(address: string, service: ObjectKey, addresses: AllocatingPool['addresses']): void {
    const parsed = parseStrictAddress(address);
    if (parsed === undefined || !addresses[parsed.family].has(parsed.value)) return;
    this.#reservations.set(address, service);
    const list = this.#reservedFor.get(service);
    if (list === undefined) this.#reservedFor.set(service, [address]);
    else list.push(address);
  }

  #forgetUnreleased(address: string, service: ObjectKey): void {
    const unreleased = this.#unreleased.get(service);
    unreleased?.delete(address);
    if (unreleased?.size === 0) this.#unreleased.delete(service);
  }

  #updateState(address: string): void {
    const parsed = parseStrictAddress(address);
    if (parsed === undefined) return;
    const before = this.#states.get(address);
    const after = this.#stateOf(address);
    const addresses = this.poolOf(parsed.family, parsed.value)?.addresses[parsed.family];
    if (after === undefined) this.#states.delete(address);
    else this.#states.set(address, after);
    if (before !== after) addresses?.change(parsed.value, before, after);
  }

  #stateOf(address: string): AddressState | undefined {
    if (this.#byAddress.has(address)) return 'used';
    if (this.#quarantine.get(address) !== undefined) return 'quarantined';
    return this.#reservations.has(address) ? 'reserved' : undefined;
  }
}

/** Assigns free ports of an address to the oldest Service that wants them; returns the Services that got some. */
function assignFreePorts({ services, ports }: Allocation): ObjectKey[] {
  const gained: ObjectKey[] = [];
  for (const request of [...services.values()].sort((a, b) => a.createdAtMs - b.createdAtMs)) {
    const free = request.ports.filter((port) => !ports.has(port));
    for (const port of free) ports.set(port, request.service);
    if (free.length > 0) gained.push(request.service);
  }
  return gained;
}

/** API servers reject integers that a float64 does not hold exactly. */
function safeInteger(count: number): number {
  return Math.min(count, Number.MAX_SAFE_INTEGER);
}

const noAddresses: ReadonlyMap<IPFamily, string> = new Map();
const emptySet: ReadonlySet<string> = new Set();
