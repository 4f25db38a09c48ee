import { formatAddress, parseAddress, parseCidr, type IPFamily } from '../objects/address.ts';
import { AddressRange, rangeOfCidr, AllocationError } from './address-range.ts';

/** A range of whereabouts' configuration, as it is written (`pkg/types`: RangeConfiguration). */
export interface WrittenRange {
  /** A CIDR, or `A-B/len`. */
  readonly range: string;
  readonly rangeStart?: string;
  readonly rangeEnd?: string;
  /** CIDRs and single addresses. */
  readonly exclude?: readonly string[];
}

/** A range that cannot be read. The message is whereabouts' own, as Pods' Events show it. */
class RangeConfigError extends AllocationError {}

/** No address of a range is free (`allocate.AssignmentError`). */
class AssignmentError extends AllocationError {
  constructor(range: WhereaboutsRange) {
    const text = (value: bigint): string => formatAddress(range.network.family, value);
    super(
      `Could not allocate IP in range: ip: ${text(range.usable.first)} / - ${text(range.usable.last)} / range: ${range.network.text} / excludeRanges: [${range.excludeTexts.join(' ')}]`,
    );
  }
}

/**
 * One range of whereabouts.
 *
 *     base  base+1    start          exclude           end    last-1  last
 *      |      |         |---- walk --->|####|---- walk -->|       |      |
 *    network  first                   jumps to             last usable  broadcast
 *    offset 0 usable                  its last address
 *
 * Neither the network's address nor the last one is given, in both families. A start or an end outside of the usable
 * addresses counts as absent. Offsets are counted from the base, and may need 128 bits.
 * (`pkg/iphelpers`, `pkg/allocate`.)
 */
export interface WhereaboutsRange {
  /** All addresses; `text` is the CIDR. */
  readonly network: AddressRange;
  /** 0 to 32, or 0 to 128. */
  readonly prefixLength: number;
  /** From which on, and up to which, addresses are given. */
  readonly usable: AddressRange;
  /** Rising, with a gap between any two. */
  readonly excludes: readonly AddressRange[];
  /** As they are written. */
  readonly excludeTexts: readonly string[];
}

/**
 * Reads a range.
 *
 * @throws {RangeConfigError} for what is no range, has no usable address, or whose excludes cannot be read.
 */
export function readWhereaboutsRange(written: WrittenRange): WhereaboutsRange {
  const { network, prefixLength, start, end } = boundsOf(written);
  const { exclude = [] } = written;
  const excludes = exclude.map((text) => excludeOf(text)).filter(({ family }) => family === network.family);
  return {
    ...{ network, prefixLength },
    usable: usableOf(network, start, end),
    excludes: merged(excludes),
    excludeTexts: exclude,
  };
}

interface Bounds {
  readonly network: AddressRange;
  readonly prefixLength: number;
  readonly start: bigint | undefined;
  readonly end: bigint | undefined;
}

/** `pkg/config` LoadIPAMConfig: leading zeros are read as decimal numbers. */
function boundsOf({ range, rangeStart, rangeEnd }: WrittenRange): Bounds {
  const dash = range.indexOf('-');
  if (dash < 0) {
    const { network, prefixLength } = networkOf(range, `invalid CIDR ${range}`);
    const valueOf = (text: string | undefined): bigint | undefined => addressIn(network, text);
    return { network, prefixLength, start: valueOf(rangeStart), end: valueOf(rangeEnd) };
  }
  const first = parseAddress(range.slice(0, dash));
  if (first === undefined) throw new RangeConfigError(`invalid range start IP: ${range.slice(0, dash)}`);
  const rest = range.slice(dash + 1);
  const failure = `invalid CIDR (do you have the 'range' parameter set for Whereabouts?) '${rest}'`;
  const { network, prefixLength } = networkOf(rest, failure);
  if (!network.contains(first.family, first.value)) {
    throw new RangeConfigError(`invalid range start for CIDR ${network.text}: ${first.canonical}`);
  }
  const end = addressIn(network, rest.slice(0, rest.indexOf('/')));
  return { network, prefixLength, start: first.value, end };
}

function networkOf(text: string, failure: string): { network: AddressRange; prefixLength: number } {
  const cidr = parseCidr(text);
  if (cidr === undefined) throw new RangeConfigError(`${failure}: invalid CIDR address: ${text}`);
  return { network: rangeOfCidr(cidr), prefixLength: cidr.prefixLength };
}

/** Of another family: as if it were absent, which an address outside of the range is, too. */
function addressIn(network: AddressRange, text: string | undefined): bigint | undefined {
  if (text === undefined || text === '') return undefined;
  const address = parseAddress(text);
  if (address === undefined) throw new RangeConfigError(`invalid IP address: ${text}`);
  return address.family === network.family ? address.value : undefined;
}

/** `iphelpers.GetIPRange`. */
function usableOf(network: AddressRange, start: bigint | undefined, end: bigint | undefined): AddressRange {
  const { family, text } = network;
  if (network.size <= 2n) {
    throw new RangeConfigError(
      `net mask is too short, subnet ${text} has no usable IP addresses, it is too small`,
    );
  }
  let first = network.first + 1n;
  let last = network.last - 1n;
  const isWithin = (value: bigint | undefined): value is bigint =>
    value !== undefined && value >= first && value <= last;
  if (isWithin(start)) first = start;
  if (isWithin(end)) last = end;
  return new AddressRange(family, first, last, text);
}

/** `allocate.parseExcludedRange`. */
function excludeOf(text: string): AddressRange {
  const cidr = parseCidr(text);
  if (cidr !== undefined && !cidr.leadingZeros) return networkOf(text, '').network;
  const address = parseAddress(text);
  if (address === undefined || address.leadingZeros) {
    throw new RangeConfigError(`could not parse exclude range, err: "invalid CIDR address: ${text}"`);
  }
  return new AddressRange(address.family, address.value, address.value, address.canonical);
}

function merged(ranges: readonly AddressRange[]): readonly AddressRange[] {
  const sorted = [...ranges].sort((a, b) => (a.first < b.first ? -1 : 1));
  const result: AddressRange[] = [];
  for (const range of sorted) {
    const before = result.at(-1);
    if (before === undefined || range.first > before.last + 1n) result.push(range);
    else if (range.last > before.last) {
      result[result.length - 1] = new AddressRange(before.family, before.first, range.last, before.text);
    }
  }
  return result;
}

/** The first address that is neither excluded nor taken; undefined where there is none. Freed low ones come first. */
export function firstFree(range: WhereaboutsRange, isTaken: (value: bigint) => boolean): bigint | undefined {
  const { usable, excludes } = range;
  let next = 0;
  for (let value = usable.first; value <= usable.last; value++) {
    let exclude = excludes[next];
    while (exclude !== undefined && exclude.last < value) exclude = excludes[++next];
    if (exclude !== undefined && exclude.first <= value) value = exclude.last;
    else if (!isTaken(value)) return value;
  }
  return undefined;
}

/** The address at an offset from the base; undefined outside of the range. */
export function addressAt(network: AddressRange, offset: bigint): bigint | undefined {
  const value = network.first + offset;
  return offset >= 0n && value <= network.last ? value : undefined;
}

/** The key of an address in the allocations of a pool: its offset, in decimal. */
export function offsetKey(network: AddressRange, value: bigint): string {
  return String(value - network.first);
}

/** The name of the IPPool of a range (`IPPoolName`). @param networkName "" for a network without a name. */
export function poolName(cidr: string, networkName = ''): string {
  const name = (cidr.endsWith(':') ? `${cidr}0` : cidr).replaceAll(/[:/]/g, '-');
  return networkName === '' ? name : `${networkName}-${name}`;
}

/** The name of the OverlappingRangeIPReservation of an address (`NormalizeIP`). */
export function reservationName(family: IPFamily, value: bigint, networkName: string): string {
  return poolName(formatAddress(family, value), networkName);
}

/** One address that a pool has given. */
export interface PoolEntry {
  readonly value: bigint;
  /** Of the container. */
  readonly id: string;
  /** `namespace/name` of the Pod. */
  readonly podref: string;
  /** "" in entries of old versions. */
  readonly ifname: string;
}

/** The owner of an address. */
export type PoolOwner = Omit<PoolEntry, 'value'>;

/** The choice for an owner. */
export interface PoolChoice {
  readonly value: bigint;
  /** The owner's present address; its container may be another one. */
  readonly present?: PoolEntry;
}

/**
 * The entries of a pool. Keys that are no offsets of the range are left out: they take no address (`toIPReservationList`).
 *
 * @param allocations `spec.allocations` of an IPPool.
 */
export function readEntries(
  network: AddressRange,
  allocations: Readonly<Record<string, { id: string; podref: string; ifname?: string }>>,
): readonly PoolEntry[] {
  return Object.entries(allocations).flatMap(([key, { id, podref, ifname = '' }]) => {
    // 2^128 has 39 digits.
    if (!/^\d{1,39}$/.test(key)) return [];
    const value = addressAt(network, BigInt(key));
    return value === undefined ? [] : [{ value, id, podref, ifname }];
  });
}

/**
 * The address of a range for an owner: what its Pod has for the interface already, else the first that is free
 * (`allocate.IterateForAssignment`, `AssignIP`).
 *
 * @param isElsewhere whether another range has given an address: passed over, even where the entries say that it is the
 *   owner's.
 * @throws {AssignmentError} when nothing is free.
 */
export function chooseWhereaboutsAddress(
  range: WhereaboutsRange,
  entries: readonly PoolEntry[],
  { podref, ifname }: Pick<PoolOwner, 'podref' | 'ifname'>,
  isElsewhere: (value: bigint) => boolean = () => false,
): PoolChoice {
  const present = entries.find(
    (entry) => entry.podref === podref && entry.ifname === ifname && !isElsewhere(entry.value),
  );
  if (present !== undefined) return { value: present.value, present };
  const taken = new Set(entries.map(({ value }) => value));
  const value = firstFree(range, (each) => taken.has(each) || isElsewhere(each));
  if (value === undefined) throw new AssignmentError(range);
  return { value };
}
