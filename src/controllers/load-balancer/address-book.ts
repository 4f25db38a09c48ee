import { parseStrictAddress } from '../../objects/address.ts';
import type { ObjectKey } from '../../objects/key.ts';
import type { IPFamily } from '../../objects/address.ts';
import { Heap } from '../../runtime/heap.ts';
import type { Origin } from './assigned-text.ts';
import type { Holding } from './holding.ts';
import type { FamilyUsage, Pool } from './pool.ts';
import type { PoolLayout } from './pool-layout.ts';
import { PoolSpace, type AddressState } from './pool-space.ts';
import type { AddressRequest } from './request.ts';
import { indexOfSpan, type Span } from './spans.ts';

/** A pool with its addresses. */
export interface StockedPool {
  readonly pool: Pool;
  readonly spaces: Readonly<Record<IPFamily, PoolSpace>>;
}

/** A run of addresses with the pool that gives them. */
interface OwnedSpan extends Span {
  readonly stocked: StockedPool;
}

/** An address that rests before another Service gets it. */
export interface Quarantine {
  readonly address: string;
  /** Milliseconds since 1970. */
  readonly until: number;
  /** Who had it last may have it back at once. */
  readonly service: ObjectKey;
}

/**
 * Who holds which address, which addresses rest and which are reserved: the facts, without any choice. Each pool's
 * space learns of every change, so that its free addresses are always what these books say.
 */
export class AddressBook {
  #pools = new Map<string, StockedPool>();
  #spans: Record<IPFamily, OwnedSpan[]> = { IPv4: [], IPv6: [] }; // of all pools, rising: no two have one address
  readonly #holdings = new Map<string, Holding>(); // address -> who holds it
  readonly #byService = new Map<ObjectKey, Map<IPFamily, string>>(); // Service -> its addresses
  readonly #quarantines = new Map<string, Quarantine>(); // address -> its rest
  readonly #rests = new Heap<Quarantine>((a, b) => a.until < b.until);
  #reservations = new Map<string, ObjectKey>(); // address -> the Service it is kept for
  #reservedFor = new Map<ObjectKey, string[]>(); // the inverse
  readonly #states = new Map<string, AddressState>(); // address -> state as its space knows it

  get pools(): ReadonlyMap<string, StockedPool> {
    return this.#pools;
  }

  holding(address: string): Holding | undefined {
    return this.#holdings.get(address);
  }

  holdings(): Iterable<Holding> {
    return this.#holdings.values();
  }

  /** The addresses of a Service by family. */
  addressesOf(service: ObjectKey): ReadonlyMap<IPFamily, string> {
    return this.#byService.get(service) ?? NONE;
  }

  /** Whom an address is reserved for. */
  reservation(address: string): ObjectKey | undefined {
    return this.#reservations.get(address);
  }

  /** The addresses that are reserved for a Service. */
  reservedFor(service: ObjectKey): readonly string[] {
    return this.#reservedFor.get(service) ?? [];
  }

  quarantine(address: string): Quarantine | undefined {
    return this.#quarantines.get(address);
  }

  /** When the next rest ends, in milliseconds since 1970. */
  get nextRest(): number | undefined {
    this.#dropStaleRests();
    return this.#rests.peek()?.until;
  }

  /** The pool that contains an address now. */
  poolOf(family: IPFamily, value: bigint): StockedPool | undefined {
    const spans = this.#spans[family];
    return spans[indexOfSpan(spans, value)]?.stocked;
  }

  /**
   * The pool that answers for an address: that which contains it. Of an address that none contains any more, the one
   * that gave it decides as it is now, and of a pool that is gone, its last word counts.
   */
  originOf(family: IPFamily, value: bigint, last: Origin | undefined): Origin | undefined {
    const stocked = this.poolOf(family, value) ?? this.#pools.get(last?.pool ?? '');
    return stocked === undefined
      ? last
      : { pool: stocked.pool.name, shrinkPolicy: stocked.pool.shrinkPolicy };
  }

  /** Replaces all pools. Whoever holds an address keeps it, in a pool or not. */
  setPools(pools: readonly Pool[], layouts: ReadonlyMap<string, PoolLayout>): void {
    this.#pools = new Map();
    this.#spans = { IPv4: [], IPv6: [] };
    this.#reservations = new Map();
    this.#reservedFor = new Map();
    const ordered = [...pools].sort((a, b) => b.priority - a.priority || (a.name < b.name ? -1 : 1));
    for (const pool of ordered) {
      const spans = layouts.get(pool.name)?.spans;
      if (spans === undefined) continue;
      const spaces = { IPv4: new PoolSpace(spans.IPv4), IPv6: new PoolSpace(spans.IPv6) };
      const stocked = { pool, spaces };
      this.#pools.set(pool.name, stocked);
      for (const family of ['IPv4', 'IPv6'] as const) {
        for (const span of spans[family]) this.#spans[family].push({ ...span, stocked });
      }
      for (const [address, service] of pool.reservations) this.#reserve(address, service, spaces);
    }
    for (const owned of Object.values(this.#spans)) owned.sort((a, b) => (a.first < b.first ? -1 : 1));
    const known = new Set([...this.#states.keys(), ...this.#reservations.keys()]);
    this.#states.clear();
    for (const address of known) this.#refresh(address);
    for (const holding of this.#holdings.values()) {
      holding.origin = this.originOf(holding.family, holding.value, holding.origin);
    }
  }

  /**
   * AllocationState an address for a Service, alone or beside those that hold it. The caller has checked that it may.
   *
   * @param last the pool that gave the address by the Service's status.
   * @returns sharers that got a port which this Service gave up.
   */
  claim(address: string, request: AddressRequest, last?: Origin): ObjectKey[] {
    const parsed = parseStrictAddress(address);
    if (parsed === undefined) return [];
    let holding = this.#holdings.get(address);
    if (holding === undefined) {
      holding = {
        address,
        family: parsed.family,
        value: parsed.value,
        origin: this.originOf(parsed.family, parsed.value, last),
        claims: new Map(),
        ports: new Map(),
      };
      this.#holdings.set(address, holding);
    }
    const before = holding.claims.get(request.service);
    for (const port of before?.ports ?? []) {
      if (holding.ports.get(port) === request.service) holding.ports.delete(port);
    }
    for (const port of request.ports) if (!holding.ports.has(port)) holding.ports.set(port, request.service);
    holding.claims.set(request.service, request);
    let own = this.#byService.get(request.service);
    if (own === undefined) {
      own = new Map<IPFamily, string>();
      this.#byService.set(request.service, own);
    }
    own.set(parsed.family, address);
    this.#quarantines.delete(address);
    this.#refresh(address);
    return handOverPorts(holding);
  }

  /**
   * Ends a Service's claim. The address rests when nobody else holds it and its pool says so.
   *
   * @returns sharers that got a port which this Service held.
   */
  release(address: string, service: ObjectKey, now: number): ObjectKey[] {
    const holding = this.#holdings.get(address);
    if (holding?.claims.delete(service) !== true) return [];
    for (const [port, holder] of holding.ports) if (holder === service) holding.ports.delete(port);
    const own = this.#byService.get(service);
    if (own?.get(holding.family) === address) own.delete(holding.family);
    if (own?.size === 0) this.#byService.delete(service);
    if (holding.claims.size > 0) return handOverPorts(holding);
    this.#holdings.delete(address);
    const delay = this.poolOf(holding.family, holding.value)?.pool.reuseDelay ?? 0;
    if (delay > 0) this.rest({ address, until: now + delay, service });
    else this.#refresh(address);
    return [];
  }

  /** A Service has no right to an address any more, but keeps others from it until {@link release}. */
  leave(address: string, service: ObjectKey): void {
    const own = this.#byService.get(service);
    for (const [family, present] of own ?? []) if (present === address) own?.delete(family);
    if (own?.size === 0) this.#byService.delete(service);
  }

  /** Lets an address rest, unless somebody holds it. */
  rest(rest: Quarantine): void {
    if (this.#holdings.has(rest.address)) return;
    this.#quarantines.set(rest.address, rest);
    this.#rests.push(rest);
    this.#refresh(rest.address);
  }

  /** What rests in a pool, the longest first. */
  restingIn(stocked: StockedPool): Quarantine[] {
    const inside = [...this.#quarantines.values()].filter(({ address }) => {
      const parsed = parseStrictAddress(address);
      return parsed !== undefined && this.poolOf(parsed.family, parsed.value) === stocked;
    });
    return inside.sort((a, b) => b.until - a.until || (a.address < b.address ? -1 : 1));
  }

  /** Ends the rests that are over and names their addresses. */
  endRests(now: number): string[] {
    const ended: string[] = [];
    for (;;) {
      this.#dropStaleRests();
      const rest = this.#rests.peek();
      if (rest === undefined || rest.until > now) return ended;
      this.#rests.pop();
      this.#quarantines.delete(rest.address);
      this.#refresh(rest.address);
      ended.push(rest.address);
    }
  }

  /** The numbers of a pool's status. */
  usage(stocked: StockedPool, family: IPFamily): FamilyUsage {
    const space = stocked.spaces[family];
    return {
      total: countable(Number(space.size)),
      used: space.count('used'),
      free: countable(space.free),
      quarantined: space.count('quarantined'),
    };
  }

  #reserve(address: string, service: ObjectKey, spaces: StockedPool['spaces']): void {
    const parsed = parseStrictAddress(address);
    if (parsed === undefined || !spaces[parsed.family].has(parsed.value)) return;
    this.#reservations.set(address, service);
    const list = this.#reservedFor.get(service);
    if (list === undefined) this.#reservedFor.set(service, [address]);
    else list.push(address);
  }

  #dropStaleRests(): void {
    for (let top = this.#rests.peek(); top !== undefined; top = this.#rests.peek()) {
      if (this.#quarantines.get(top.address) === top) return;
      this.#rests.pop();
    }
  }

  /** Tells an address's space what it is now. */
  #refresh(address: string): void {
    const parsed = parseStrictAddress(address);
    if (parsed === undefined) return;
    const before = this.#states.get(address);
    const after = this.#stateOf(address);
    const space = this.poolOf(parsed.family, parsed.value)?.spaces[parsed.family];
    if (after === undefined) this.#states.delete(address);
    else this.#states.set(address, after);
    if (before !== after) space?.change(parsed.value, before, after);
  }

  #stateOf(address: string): AddressState | undefined {
    if (this.#holdings.has(address)) return 'used';
    if (this.#quarantines.has(address)) return 'quarantined';
    return this.#reservations.has(address) ? 'reserved' : undefined;
  }
}

/** Gives ports that nobody serves any more to the sharer that wants them and came first; names who got some. */
function handOverPorts(holding: Holding): ObjectKey[] {
  const gained: ObjectKey[] = [];
  for (const { service, ports } of [...holding.claims.values()].sort((a, b) => a.createdAt - b.createdAt)) {
    const free = ports.filter((port) => !holding.ports.has(port));
    for (const port of free) holding.ports.set(port, service);
    if (free.length > 0) gained.push(service);
  }
  return gained;
}

/** API servers take no integer for a number that a double does not hold exactly. */
function countable(count: number): number {
  return Math.min(count, Number.MAX_SAFE_INTEGER);
}

const NONE: ReadonlyMap<IPFamily, string> = new Map();
