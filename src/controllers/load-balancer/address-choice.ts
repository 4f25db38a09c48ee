/** Which address a Service gets. Pure: nothing is assigned here. */
import type { LoadBalancerReason } from '../../objects/reasons.ts';
import type { AddressRange } from '../../allocation/address-range.ts';
import { formatAddress, parseStrictAddress, type IPFamily } from '../../objects/address.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import type { AllocatingPool, Allocations } from './allocations.ts';
import { isSelective, poolSelects, type Origin } from './pools.ts';
import type { AddressRequest } from './request.ts';
import { sharingRefusal, type SharedAddressIndex } from './sharing.ts';
import type { StatusAddress } from './status.ts';
import { waitKeys } from './waiting-services.ts';
import { firstFew } from '../../objects/lists.ts';

/** The result for one family of a request. */
export type Choice = GrantedAddress | RefusedAddress;

export interface GrantedAddress {
  readonly family: IPFamily;
  readonly address: string;
  /** For an address from the Service's status: the pool that assigned it. */
  readonly origin?: Origin | undefined;
}

export interface RefusedAddress {
  readonly family: IPFamily;
  readonly reason: Exclude<LoadBalancerReason, 'Assigned'>;
  readonly message: string;
  /** The wait keys of the Service. */
  readonly waitKeys: readonly string[];
}

/** An address that a Service has. */
export interface CurrentAddress {
  readonly address: string;
  /** The pool that assigned it; by the Service's status if the allocations do not have it yet. */
  readonly origin: Origin | undefined;
}

export interface Inventory {
  readonly allocations: Allocations;
  readonly shared: SharedAddressIndex;
}

/**
 * Chooses an address of one family: the current one, if the Service may keep it; else the requested one; else one that is
 * reserved for it; else one of the requested pools; else one of the pools that select it, by priority; else one of the
 * other pools with autoAssign, by priority.
 */
export function chooseAddress(
  inventory: Inventory,
  request: AddressRequest,
  family: IPFamily,
  current: CurrentAddress | undefined,
): Choice {
  const { allocations } = inventory;
  const requested = request.addresses.get(family);
  if (
    current !== undefined &&
    (requested === undefined || requested === current.address) &&
    mayKeep(inventory, request, current)
  ) {
    return { family, ...current };
  }
  if (requested !== undefined) return chooseRequested(allocations, request, family, requested);
  // With a sharing key the address is kept although one of the ports is in use there: a new one would not be shared.
  if (
    current !== undefined &&
    request.sharingKey !== '' &&
    mayKeepWithoutPorts(inventory, request, current)
  ) {
    return chooseRequested(allocations, request, family, current.address);
  }
  for (const reserved of allocations.reservedFor(request.service)) {
    if (parseStrictAddress(reserved)?.family !== family) continue;
    const choice = chooseRequested(allocations, request, family, reserved);
    if ('address' in choice) return choice;
  }
  return chooseFromPools(inventory, request, family);
}

/**
 * Whether a Service may keep an address: the Services that have it would share it, and its pool selects the Service or
 * retains what it assigned.
 */
export function mayKeep(
  { allocations }: Pick<Inventory, 'allocations'>,
  request: AddressRequest,
  { address, origin }: CurrentAddress,
): boolean {
  const parsed = parseStrictAddress(address);
  if (parsed?.canonical !== address || !isAddressAvailable(allocations, request, address)) return false;
  const { family, value } = parsed;
  const owner = allocations.poolOf(family, value);
  if (owner === undefined) {
    const last = allocations.get(address)?.origin ?? origin;
    return allocations.originOf(family, value, last)?.shrinkPolicy !== 'Reassign';
  }
  if (request.pools.length > 0 && !request.pools.includes(owner.pool.name)) return false;
  return poolSelects(owner.pool, request) || owner.pool.shrinkPolicy === 'Retain';
}

/**
 * True when an address in a Service's status is neither another Service's, unless they may share it, nor quarantined. The
 * pool's `sharing` does not separate Services that share already; the other rules do.
 */
export function isAddressAvailable(
  allocations: Allocations,
  request: AddressRequest,
  address: string,
): boolean {
  const allocation = allocations.get(address);
  const quarantined = allocations.quarantined(address);
  if (quarantined !== undefined && quarantined.service !== request.service) return false;
  return allocation === undefined || sharingRefusal(allocation, request, 'by-ports') === undefined;
}

/** True when a Service may keep an address except for ports that other Services serve there. */
function mayKeepWithoutPorts(
  inventory: Inventory,
  request: AddressRequest,
  current: CurrentAddress,
): boolean {
  if (inventory.allocations.get(current.address)?.services.has(request.service) !== true) return false;
  return mayKeep(inventory, { ...request, ports: [] }, current);
}

/** The addresses of a Service by the allocations, else by its status. */
export function currentAddresses(
  allocations: Allocations,
  service: ObjectKey,
  inStatus: readonly StatusAddress[],
): Map<IPFamily, CurrentAddress> {
  const current = new Map<IPFamily, CurrentAddress>(inStatus.map((one) => [one.family, one]));
  for (const [family, address] of allocations.addressesOf(service)) {
    current.set(family, { address, origin: allocations.get(address)?.origin });
  }
  return current;
}

/**
 * The address that each family is granted: the choice, else the current address. If all families are needed and one
 * would have no address, nothing new is granted.
 */
export function grantedOf(
  inventory: Inventory,
  request: AddressRequest,
  choices: readonly Choice[],
  current: ReadonlyMap<IPFamily, CurrentAddress>,
): GrantedAddress[] {
  const kept = (family: IPFamily): GrantedAddress[] =>
    keepCurrent(inventory, request, family, current.get(family));
  const best = choices.flatMap((choice) => ('address' in choice ? [choice] : kept(choice.family)));
  if (!request.needsAll || best.length === choices.length) return best;
  return choices.flatMap(({ family }) => kept(family));
}

/** The current address, if the Service may keep it. Requested pools and addresses do not count: they were refused. */
export function keepCurrent(
  inventory: Inventory,
  request: AddressRequest,
  family: IPFamily,
  current: CurrentAddress | undefined,
): GrantedAddress[] {
  if (current === undefined) return [];
  const unspecific = { ...request, pools: [], addresses: noAddresses };
  const keeps =
    mayKeep(inventory, unspecific, current) || mayKeepWithoutPorts(inventory, unspecific, current);
  return keeps ? [{ family, ...current }] : [];
}

const noAddresses: ReadonlyMap<IPFamily, string> = new Map();

function chooseRequested(
  allocations: Allocations,
  request: AddressRequest,
  family: IPFamily,
  address: string,
): Choice {
  const refuse = (reason: RefusedAddress['reason'], message: string, ...keys: string[]): RefusedAddress => {
    return { family, reason, message, waitKeys: keys };
  };
  const value = parseStrictAddress(address)?.value ?? -1n;
  const owner = allocations.poolOf(family, value);
  const allocation = allocations.get(address);
  if (owner === undefined) return refuse('AddressNotInPool', noPoolContains(allocations, family, value));
  const { pool } = owner;
  if (!poolSelects(pool, request)) {
    const message = `pool ${pool.name} contains ${address}, but does not select this Service`;
    return refuse('AddressNotInPool', message);
  }
  if (request.pools.length > 0 && !request.pools.includes(pool.name)) {
    const requested = firstFew(request.pools);
    return refuse('AddressNotInPool', `${address} is in pool ${pool.name}, not in ${requested}`);
  }
  const waitKey = waitKeys.address(address);
  const reserved = allocations.reservation(address);
  if (
    reserved !== undefined &&
    reserved !== request.service &&
    allocation?.services.has(request.service) !== true
  ) {
    return refuse('ReservedForOther', `${address} is reserved for ${reserved}`, waitKey);
  }
  const quarantined = allocations.quarantined(address);
  if (quarantined !== undefined && quarantined.service !== request.service) {
    const message = `${address} was released by ${quarantined.service} and is not reused until the reuseDelay of its pool is over`;
    return refuse('Quarantined', message, waitKey);
  }
  const refusal = allocation === undefined ? undefined : sharingRefusal(allocation, request, pool.sharing);
  return refusal === undefined ? { family, address } : refuse(refusal.reason, refusal.message, waitKey);
}

/** Why no pool's layout contains an address; a pool's ranges may. */
function noPoolContains(allocations: Allocations, family: IPFamily, value: bigint): string {
  const address = formatAddress(family, value);
  const within = (ranges: readonly AddressRange[]): boolean =>
    ranges.some((range) => range.contains(family, value));
  const pools = [...allocations.pools.values()].map(({ pool }) => pool);
  const pool = pools.find(({ ranges }) => within(ranges));
  if (pool === undefined) return `no pool contains ${address}`;
  return within(pool.excluded)
    ? `pool ${pool.name} excludes ${address}`
    : `${address} of pool ${pool.name} belongs to something else: see the condition Conflict of the pool`;
}

function chooseFromPools(inventory: Inventory, request: AddressRequest, family: IPFamily): Choice {
  const refuse = (
    reason: RefusedAddress['reason'],
    message: string,
    keys: readonly string[] = [],
  ): RefusedAddress => {
    return { family, reason, message, waitKeys: keys };
  };
  const candidates = candidatePools(inventory.allocations, request);
  if (candidates.length === 0) return refuse('NoMatchingPool', noPoolMessage(inventory.allocations, request));
  const pools = candidates.filter(({ addresses }) => addresses[family].size > 0n);
  if (pools.length === 0) {
    const names = firstFew(candidates.map(({ pool }) => pool.name));
    return refuse('FamilyUnavailable', `${names}: no ${family} addresses`);
  }
  const shared = chooseShared(inventory, request, family, pools);
  if (shared !== undefined) return { family, address: shared };
  for (const { addresses } of pools) {
    const value = addresses[family].lowestFree();
    if (value !== undefined) return { family, address: formatAddress(family, value) };
  }
  const parts = pools.map(({ pool, addresses }) => {
    const { size } = addresses[family];
    return `${pool.name} (${size} ${size === 1n ? 'address' : 'addresses'})`;
  });
  const message = `no free ${family} address in ${firstFew(parts)}`;
  return refuse('PoolExhausted', message, exhaustedKeys(request, family, pools));
}

/** An address that the Service may join: with its key, or in `by-ports` pools with its namespace. */
function chooseShared(
  { allocations, shared }: Inventory,
  request: AddressRequest,
  family: IPFamily,
  pools: readonly AllocatingPool[],
): string | undefined {
  if (request.ports.length === 0) return undefined;
  for (const { pool, addresses } of pools) {
    if (pool.sharing === 'never' || (pool.sharing === 'by-key' && request.sharingKey === '')) continue;
    for (const address of shared.candidates(pool.name, family, request)) {
      const allocation = allocations.get(address);
      if (allocation === undefined || !addresses[family].has(allocation.value)) continue;
      if (sharingRefusal(allocation, request, pool.sharing) === undefined) return address;
    }
  }
  return undefined;
}

/** The pools that may serve a request, best first. */
function candidatePools(allocations: Allocations, request: AddressRequest): AllocatingPool[] {
  if (request.pools.length > 0) {
    return request.pools.flatMap((name) => {
      const owner = allocations.pools.get(name);
      return owner !== undefined && poolSelects(owner.pool, request) ? [owner] : [];
    });
  }
  const open = [...allocations.pools.values()].filter(
    ({ pool }) => pool.autoAssign && poolSelects(pool, request),
  );
  return [...open.filter(({ pool }) => isSelective(pool)), ...open.filter(({ pool }) => !isSelective(pool))];
}

function noPoolMessage(allocations: Allocations, request: AddressRequest): string {
  if (request.pools.length === 0)
    return 'no pool selects this Service, and none with autoAssign serves all Services';
  const requested = firstFew(request.pools);
  return request.pools.some((name) => allocations.pools.has(name))
    ? `pool ${requested} does not select this Service`
    : `there is no pool ${requested}`;
}

function exhaustedKeys(
  request: AddressRequest,
  family: IPFamily,
  pools: readonly AllocatingPool[],
): string[] {
  const keys: string[] = [];
  for (const { pool } of pools) {
    keys.push(waitKeys.pool(pool.name, family));
    if (pool.sharing === 'by-ports') keys.push(waitKeys.namespace(pool.name, request.namespace));
  }
  if (request.sharingKey !== '') keys.push(waitKeys.sharingKey(request.sharingKey));
  return keys;
}
