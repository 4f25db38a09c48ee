import type { AddressRange } from '../../allocation/address-range.ts';
import { formatAddress, parseStrictAddress } from '../../objects/address.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { AddressBook, StockedPool } from './address-book.ts';
import type { Origin } from './assigned-text.ts';
import { firstFew } from './first-few.ts';
import { sharingRefusal } from './holding.ts';
import { admits, isSelective } from './pool.ts';
import type { Reason } from './reasons.ts';
import type { AddressRequest } from './request.ts';
import type { SharedAddresses } from './shared-addresses.ts';

/** What one family of a request gets, or why it gets nothing and in which lines it may wait for it. */
export type Choice = Granted | Refused;

export interface Granted {
  readonly family: IPFamily;
  readonly address: string;
  /** The pool that gave it by the Service's status, for an address that the Service has. */
  readonly origin?: Origin | undefined;
}

export interface Refused {
  readonly family: IPFamily;
  readonly reason: Exclude<Reason, 'Assigned'>;
  readonly message: string;
  readonly lines: readonly string[];
}

/** The names of the lines in which Services wait. Whoever waits is also tried when pools change. */
export const Line = {
  pool: (pool: string, family: IPFamily): string => `pool:${pool}/${family}`,
  address: (address: string): string => `address:${address}`,
  key: (sharingKey: string): string => `key:${sharingKey}`,
  namespace: (pool: string, namespace: string): string => `namespace:${pool}/${namespace}`,
} as const;

/** An address that a Service has. */
export interface Had {
  readonly address: string;
  /** The pool that gave it by the Service's status, for an address that nobody holds in the books yet. */
  readonly origin: Origin | undefined;
}

/** What a choice looks at. */
export interface Stock {
  readonly book: AddressBook;
  readonly shared: SharedAddresses;
}

/**
 * Chooses an address of one family, in this order: what the Service has, if it may keep it; what it asks for; what is
 * reserved for it; a pool that it names; pools that select it, by priority; every other pool that assigns by itself.
 *
 * @param had what the Service has of that family.
 */
export function choose(
  stock: Stock,
  request: AddressRequest,
  family: IPFamily,
  had: Had | undefined,
): Choice {
  const wanted = request.addresses.get(family);
  if (had !== undefined && (wanted === undefined || wanted === had.address) && mayKeep(stock, request, had)) {
    return { family, ...had };
  }
  if (wanted !== undefined) return chooseAddress(stock, request, family, wanted);
  // Who shares by a key stays, though a port of its is taken there: an own address would not be the shared one.
  if (had !== undefined && request.sharingKey !== '' && mayKeepPortless(stock, request, had)) {
    return chooseAddress(stock, request, family, had.address);
  }
  for (const reserved of stock.book.reservedFor(request.service)) {
    if (parseStrictAddress(reserved)?.family !== family) continue;
    const choice = chooseAddress(stock, request, family, reserved);
    if ('address' in choice) return choice;
  }
  return chooseFromPools(stock, request, family);
}

/**
 * True when a Service may go on with an address that it has: nobody else holds it in a way that excludes the Service,
 * and its pool, if it has one, still admits it or retains what it gave.
 */
export function mayKeep(stock: Stock, request: AddressRequest, { address, origin }: Had): boolean {
  const { book } = stock;
  const parsed = parseStrictAddress(address);
  if (parsed?.canonical !== address || !mayShow(stock, request, address)) return false;
  const holding = book.holding(address);
  const stocked = book.poolOf(parsed.family, parsed.value);
  if (stocked === undefined) {
    return book.originOf(parsed.family, parsed.value, holding?.origin ?? origin)?.shrinkPolicy !== 'Reassign';
  }
  if (request.pools.length > 0 && !request.pools.includes(stocked.pool.name)) return false;
  return admits(stocked.pool, request) || stocked.pool.shrinkPolicy === 'Retain';
}

/**
 * True when nobody else has an address that a Service shows in its status, but for those that it may share it with.
 * Whatever the pool's sharing is now, it does not part those that share already; the other rules always hold.
 */
export function mayShow({ book }: Stock, request: AddressRequest, address: string): boolean {
  const holding = book.holding(address);
  const rest = book.quarantine(address);
  if (rest !== undefined && rest.service !== request.service) return false;
  return holding === undefined || sharingRefusal(holding, request, 'by-ports') === undefined;
}

/** True for a Service that holds an address which it may keep but for some of its ports: others serve those there. */
export function mayKeepPortless(stock: Stock, request: AddressRequest, had: Had): boolean {
  if (stock.book.holding(had.address)?.claims.has(request.service) !== true) return false;
  return mayKeep(stock, { ...request, ports: [] }, had);
}

function chooseAddress({ book }: Stock, request: AddressRequest, family: IPFamily, address: string): Choice {
  const refuse = (reason: Refused['reason'], message: string, line?: string): Refused => ({
    family,
    reason,
    message,
    lines: line === undefined ? [] : [line],
  });
  const value = parseStrictAddress(address)?.value ?? -1n;
  const stocked = book.poolOf(family, value);
  const holding = book.holding(address);
  if (stocked === undefined) return refuse('AddressNotInPool', whyInNoPool(book, family, value));
  const { pool } = stocked;
  if (!admits(pool, request)) {
    return refuse(
      'AddressNotInPool',
      `pool ${pool.name} contains ${address}, but does not select this Service`,
    );
  }
  if (request.pools.length > 0 && !request.pools.includes(pool.name)) {
    const named = firstFew(request.pools);
    return refuse('AddressNotInPool', `${address} is in pool ${pool.name}, not in ${named}`);
  }
  const line = Line.address(address);
  const reserved = book.reservation(address);
  if (
    reserved !== undefined &&
    reserved !== request.service &&
    holding?.claims.has(request.service) !== true
  ) {
    return refuse('ReservedForOther', `${address} is reserved for ${reserved}`, line);
  }
  const rest = book.quarantine(address);
  if (rest !== undefined && rest.service !== request.service) {
    return refuse(
      'Quarantined',
      `${address} was released by ${rest.service} and is not reused until the reuseDelay of its pool is over`,
      line,
    );
  }
  const refusal = holding === undefined ? undefined : sharingRefusal(holding, request, pool.sharing);
  return refusal === undefined ? { family, address } : refuse(refusal.reason, refusal.message, line);
}

/** A pool may have an address in its ranges and yet not give it. */
function whyInNoPool(book: AddressBook, family: IPFamily, value: bigint): string {
  const address = formatAddress(family, value);
  const within = (ranges: readonly AddressRange[]): boolean =>
    ranges.some((range) => range.contains(family, value));
  const pools = [...book.pools.values()].map(({ pool }) => pool).filter(({ ranges }) => within(ranges));
  const [pool] = pools;
  if (pool === undefined) return `no pool contains ${address}`;
  return within(pool.excluded)
    ? `pool ${pool.name} excludes ${address}`
    : `${address} of pool ${pool.name} belongs to something else: see the condition Conflict of the pool`;
}

function chooseFromPools(stock: Stock, request: AddressRequest, family: IPFamily): Choice {
  const candidates = candidatePools(stock.book, request);
  if (candidates.length === 0) {
    return {
      family,
      reason: 'NoMatchingPool',
      message: noPoolMessage(stock.book, request),
      lines: [],
    };
  }
  const fitting = candidates.filter(({ spaces }) => spaces[family].size > 0n);
  if (fitting.length === 0) {
    const names = firstFew(candidates.map(({ pool }) => pool.name));
    return {
      family,
      reason: 'FamilyUnavailable',
      message: `${names}: no ${family} addresses`,
      lines: [],
    };
  }
  const shared = chooseShared(stock, request, family, fitting);
  if (shared !== undefined) return { family, address: shared };
  for (const { spaces } of fitting) {
    const value = spaces[family].lowestFree();
    if (value !== undefined) return { family, address: formatAddress(family, value) };
  }
  return { family, ...exhausted(request, family, fitting) };
}

/** An address of the pools that the Service may join: one with its key, or in `by-ports` pools one of its namespace. */
function chooseShared(
  { book, shared }: Stock,
  request: AddressRequest,
  family: IPFamily,
  pools: readonly StockedPool[],
): string | undefined {
  if (request.ports.length === 0) return undefined;
  for (const stocked of pools) {
    const { pool } = stocked;
    if (pool.sharing === 'never' || (pool.sharing === 'by-key' && request.sharingKey === '')) continue;
    for (const address of shared.candidates(pool.name, family, request)) {
      const holding = book.holding(address);
      if (holding === undefined || !stocked.spaces[family].has(holding.value)) continue;
      if (sharingRefusal(holding, request, pool.sharing) === undefined) return address;
    }
  }
  return undefined;
}

/** The pools that may serve a request, best first. */
function candidatePools(book: AddressBook, request: AddressRequest): StockedPool[] {
  if (request.pools.length > 0) {
    return request.pools.flatMap((name) => {
      const stocked = book.pools.get(name);
      return stocked !== undefined && admits(stocked.pool, request) ? [stocked] : [];
    });
  }
  // The book's pools come by priority.
  const open = [...book.pools.values()].filter(({ pool }) => pool.autoAssign && admits(pool, request));
  return [...open.filter(({ pool }) => isSelective(pool)), ...open.filter(({ pool }) => !isSelective(pool))];
}

function noPoolMessage(book: AddressBook, request: AddressRequest): string {
  if (request.pools.length === 0)
    return 'no pool selects this Service, and none with autoAssign serves all Services';
  const known = request.pools.filter((name) => book.pools.has(name));
  const named = firstFew(request.pools);
  return known.length === 0 ? `there is no pool ${named}` : `pool ${named} does not select this Service`;
}

function exhausted(
  request: AddressRequest,
  family: IPFamily,
  pools: readonly StockedPool[],
): Pick<Refused, 'reason' | 'message' | 'lines'> {
  const parts = pools.map(({ pool, spaces }) => {
    const space = spaces[family];
    return `${pool.name} (${space.size} ${space.size === 1n ? 'address' : 'addresses'})`;
  });
  const lines: string[] = [];
  for (const { pool } of pools) {
    lines.push(Line.pool(pool.name, family));
    if (pool.sharing === 'by-ports') lines.push(Line.namespace(pool.name, request.namespace));
  }
  if (request.sharingKey !== '') lines.push(Line.key(request.sharingKey));
  return { reason: 'PoolExhausted', message: `no free ${family} address in ${firstFew(parts)}`, lines };
}
