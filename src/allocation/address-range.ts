import {
  addressBits,
  formatAddress,
  type IPFamily,
  parseCidr,
  type ParsedCidr,
  parseStrictAddress,
} from '../objects/address.ts';

/**
 * Consecutive addresses of one family. Immutable.
 */
export class AddressRange {
  readonly family: IPFamily;
  readonly first: bigint;
  readonly last: bigint;
  /** As it was written, canonical: `10.96.0.0/16`, `192.0.2.10-192.0.2.20`. */
  readonly text: string;

  /** @param first not above `last`. */
  constructor(family: IPFamily, first: bigint, last: bigint, text: string) {
    this.family = family;
    this.first = first;
    this.last = last;
    this.text = text;
  }

  /** Number of addresses. */
  get size(): bigint {
    return this.last - this.first + 1n;
  }

  contains(family: IPFamily, value: bigint): boolean {
    return family === this.family && value >= this.first && value <= this.last;
  }

  /** The fewest CIDRs that have these addresses and no others, in order. */
  cidrs(): readonly string[] {
    const bits = addressBits(this.family);
    const found: string[] = [];
    for (let first = this.first; first <= this.last;) {
      let hostBits = 0;
      const isBlock = (size: bigint): boolean => first % size === 0n && first + size - 1n <= this.last;
      while (hostBits < bits && isBlock(2n << BigInt(hostBits))) hostBits++;
      found.push(`${formatAddress(this.family, first)}/${bits - hostBits}`);
      first += 1n << BigInt(hostBits);
    }
    return found;
  }

  overlaps(other: AddressRange): boolean {
    return this.family === other.family && this.first <= other.last && other.first <= this.last;
  }
}

/** A range from `a/n` or `a-b` (spaces around `-` allowed), strictly read; undefined for anything else, `b < a` too. */
export function parseAddressRange(text: string): AddressRange | undefined {
  const dash = text.indexOf('-');
  if (dash < 0) return cidrRange(text);
  const first = parseStrictAddress(text.slice(0, dash).trim());
  const last = parseStrictAddress(text.slice(dash + 1).trim());
  if (first === undefined || last === undefined) return undefined;
  if (first.family !== last.family || last.value < first.value) return undefined;
  return new AddressRange(first.family, first.value, last.value, `${first.canonical}-${last.canonical}`);
}

function cidrRange(text: string): AddressRange | undefined {
  const cidr = parseCidr(text);
  if (cidr === undefined || cidr.leadingZeros || cidr.ipv4Mapped || cidr.hostBitsSet) return undefined;
  return rangeOfCidr(cidr);
}

/** All addresses of a CIDR. */
export function rangeOfCidr({ family, network, prefixLength, canonical }: ParsedCidr): AddressRange {
  const size = 1n << BigInt(addressBits(family) - prefixLength);
  return new AddressRange(family, network, network + size - 1n, canonical);
}

/** A Service CIDR: its usable addresses, and the first of them that are kept for explicit requests. */
export interface ServiceCidr {
  /** All addresses; `text` is the CIDR. */
  readonly range: AddressRange;
  /** Network+1 to broadcast-1 in IPv4, network+1 to the last address in IPv6. */
  readonly usable: AddressRange;
  /** The number of usable addresses, from the first on, in the static band. */
  readonly staticBand: number;
  /** The network's address as text: what a dry run hands out. */
  readonly base: string;
}

/**
 * The usable part and the bands of a Service CIDR (KEP-3070, `ipallocator.calculateRangeOffset`). Undefined for what
 * is not a strictly written CIDR with a usable address.
 */
export function parseServiceCidr(text: string): ServiceCidr | undefined {
  const range = text.includes('/') ? cidrRange(text) : undefined;
  if (range === undefined) return undefined;
  const last = range.family === 'IPv4' ? range.last - 1n : range.last;
  if (last < range.first + 1n) return undefined;
  return {
    range,
    usable: new AddressRange(range.family, range.first + 1n, last, range.text),
    staticBand: bandOffset(Number(range.size), 16, 256),
    base: formatAddress(range.family, range.first),
  };
}

/**
 * `min(max(16, size / divisor), cap)`, 0 for ranges of up to 16: how many of a range are kept for explicit requests
 * (KEP-3070 for addresses, KEP-3668 for ports).
 */
export function bandOffset(size: number, divisor: number, cap: number): number {
  return size <= 16 ? 0 : Math.min(Math.max(16, Math.floor(size / divisor)), cap);
}

/** Base of everything an allocator refuses. Messages are Kubernetes' own, because clients see them. */
export abstract class AllocationError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** Nothing is free: kube-apiserver answers it with 500, not 422 (`ipallocator.ErrFull`). */
export class RangeFullError extends AllocationError {
  constructor() {
    super('range is full');
  }
}

/** It is allocated already (`ipallocator.ErrAllocated`, `portallocator.ErrAllocated`). */
export class AlreadyAllocatedError extends AllocationError {
  readonly wanted: string | number;

  constructor(what: 'IP' | 'port', wanted: string | number) {
    super(`provided ${what} is already allocated`);
    this.wanted = wanted;
  }
}

/** Outside of the range, or an address of it that may not be used (network, broadcast). */
export class NotInRangeError extends AllocationError {
  readonly wanted: string | number;
  /** The range as users write it: `10.96.0.0/16`, `30000-32767`. */
  readonly range: string;

  constructor(what: 'IP' | 'port', wanted: string | number, range: string) {
    super(
      what === 'IP'
        ? `the provided IP (${wanted}) is not in the valid range. The range of valid IPs is ${range}`
        : `provided port is not in the valid range. The range of valid ports is ${range}`,
    );
    this.wanted = wanted;
    this.range = range;
  }
}

/** Not an address, or not written as Kubernetes prints it: allocators do not guess. */
export class NotCanonicalError extends AllocationError {
  readonly wanted: string;

  constructor(wanted: string) {
    super(`not a canonical address: ${JSON.stringify(wanted.slice(0, 64))}`);
    this.wanted = wanted;
  }
}
