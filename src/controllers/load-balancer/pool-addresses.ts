/** Which addresses a pool has, and which of them are free. */
import type { Node } from '../../objects/types/core.generated.ts';
import type { ServiceCIDR } from '../../objects/types/networking.generated.ts';
import { AddressRange, parseAddressRange } from '../../allocation/address-range.ts';
import { type Bitmap } from '../../allocation/bitmap.ts';
import { createBitmap } from '../../allocation/create-bitmap.ts';
import { formatAddress, parseStrictAddress, type IPFamily, ipFamilies } from '../../objects/address.ts';
import { indexOfSpan, intersectSpans, mergeSpans, type Span, subtractSpans } from '../../objects/spans.ts';
import type { HostAddress } from '../announcement-status/plan.ts';
import type { Pool } from './pool.ts';

/** Addresses that the cluster uses itself, so that no pool may assign them. */
export interface ForbiddenRange {
  readonly range: AddressRange;
  /** `node a`, `the Pods of node a`, `ServiceCIDR kubernetes`. */
  readonly owner: string;
}

/** The addresses that a pool may assign. */
export interface PoolLayout {
  /** Ascending and disjoint. */
  readonly spans: Readonly<Record<IPFamily, readonly Span[]>>;
  /** One sentence for each overlap that was taken out. */
  readonly conflicts: readonly string[];
}

/** Why an address of a pool is not free. */
export type AddressState = 'used' | 'quarantined' | 'reserved';

/** The addresses of nodes, their pod CIDRs and the ServiceCIDRs, and the addresses that only agents of nodes know. */
export function forbiddenRanges(
  nodes: Iterable<Node>,
  cidrs: Iterable<ServiceCIDR>,
  hosts: readonly HostAddress[] = [],
): ForbiddenRange[] {
  const forbidden: ForbiddenRange[] = [];
  const add = (range: AddressRange | undefined, owner: string): void => {
    if (range !== undefined) forbidden.push({ range, owner });
  };
  for (const { metadata, spec } of cidrs) {
    for (const cidr of spec.cidrs ?? []) add(parseAddressRange(cidr), `ServiceCIDR ${metadata.name ?? ''}`);
  }
  for (const { metadata, spec, status } of nodes) {
    const owner = `node ${metadata.name ?? ''}`;
    for (const cidr of spec.podCIDRs ?? []) add(parseAddressRange(cidr), `the Pods of ${owner}`);
    for (const { address } of status.addresses ?? []) add(singleAddress(address), owner);
  }
  for (const { address, owner } of hosts) add(singleAddress(address), owner);
  return forbidden;
}

/** Undefined for host names. */
function singleAddress(text: string): AddressRange | undefined {
  const parsed = parseStrictAddress(text);
  if (parsed === undefined) return undefined;
  return new AddressRange(parsed.family, parsed.value, parsed.value, parsed.canonical);
}

/**
 * The layout of each pool: its ranges without its excluded ranges, forbidden ranges and the addresses of older pools.
 * Only the overlapping part is taken from the younger pool; the older pool keeps it.
 */
export function layOut(
  pools: readonly Pool[],
  forbidden: readonly ForbiddenRange[],
): Map<string, PoolLayout> {
  const layouts = new Map<string, PoolLayout>();
  const older: { name: string; spans: PoolLayout['spans'] }[] = [];
  for (const pool of [...pools].sort(byAge)) {
    const conflicts: string[] = [];
    const spans: Record<IPFamily, readonly Span[]> = { IPv4: [], IPv6: [] };
    for (const family of ipFamilies) {
      spans[family] = subtractSpans(spansOf(pool.ranges, family), spansOf(pool.excluded, family));
      const takeOut = (others: readonly Span[], owner: string): void => {
        const overlap = intersectSpans(spans[family], others);
        if (overlap.length === 0) return;
        conflicts.push(`${formatSpans(family, overlap)} belongs to ${owner}`);
        spans[family] = subtractSpans(spans[family], overlap);
      };
      for (const { range, owner } of forbidden) if (range.family === family) takeOut([range], owner);
      for (const { name, spans: taken } of older) takeOut(taken[family], `the older pool ${name}`);
    }
    older.push({ name: pool.name, spans });
    layouts.set(pool.name, { spans, conflicts });
  }
  return layouts;
}

function byAge(a: Pool, b: Pool): number {
  return a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1);
}

function spansOf(ranges: readonly AddressRange[], family: IPFamily): Span[] {
  return mergeSpans(ranges.filter((range) => range.family === family));
}

function formatSpans(family: IPFamily, spans: readonly Span[]): string {
  const [span] = spans;
  if (span === undefined) return '';
  const first = formatAddress(family, span.first);
  const text = span.first === span.last ? first : `${first}-${formatAddress(family, span.last)}`;
  return spans.length === 1 ? text : `${text} and ${spans.length - 1} more`;
}

/**
 * The addresses of one family of one pool. Its spans lie one after the other in a bitmap, in which an address that is
 * used, quarantined or reserved has its bit set:
 *
 *     spans     192.0.2.10-19     192.0.2.100-199
 *     offsets   0 ………………… 9       10 ……………………… 109
 *
 * Offsets from 2^52 on (the end of an IPv6 /64) have no bit: {@link lowestFree} never returns them, but a Service may
 * request them.
 */
export class PoolAddresses {
  /** Number of addresses. */
  readonly size: bigint;
  readonly #spans: readonly Span[];
  /** Offset of each span's first address. */
  readonly #offsets: readonly bigint[];
  readonly #taken: Bitmap;
  readonly #counts: Record<AddressState, number> = { used: 0, quarantined: 0, reserved: 0 };

  constructor(spans: readonly Span[]) {
    this.#spans = spans;
    const offsets: bigint[] = [];
    let size = 0n;
    for (const { first, last } of spans) {
      offsets.push(size);
      size += last - first + 1n;
    }
    this.#offsets = offsets;
    this.size = size;
    this.#taken = createBitmap(Number(size < maxBits ? size : maxBits));
  }

  has(value: bigint): boolean {
    return indexOfSpan(this.#spans, value) >= 0;
  }

  count(state: AddressState): number {
    return this.#counts[state];
  }

  /** Number of free addresses; rounded above 2^53. */
  get free(): number {
    const { used, quarantined, reserved } = this.#counts;
    return Number(this.size - BigInt(used + quarantined + reserved));
  }

  lowestFree(): bigint | undefined {
    const offset = this.#taken.nextFree(0);
    return offset < 0 ? undefined : this.#addressAt(BigInt(offset));
  }

  /** Records that an address changed its state; undefined is free. */
  change(value: bigint, from: AddressState | undefined, to: AddressState | undefined): void {
    if (from !== undefined) this.#counts[from]--;
    if (to !== undefined) this.#counts[to]++;
    const index = indexOfSpan(this.#spans, value);
    const offset = Number((this.#offsets[index] ?? 0n) + value - (this.#spans[index]?.first ?? 0n));
    if (offset >= this.#taken.size) return;
    if (to === undefined) this.#taken.clear(offset);
    else this.#taken.set(offset);
  }

  #addressAt(offset: bigint): bigint | undefined {
    let low = 0;
    let high = this.#offsets.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#offsets[middle] ?? 0n) <= offset) low = middle;
      else high = middle - 1;
    }
    const span = this.#spans[low];
    return span === undefined ? undefined : span.first + offset - (this.#offsets[low] ?? 0n);
  }
}

const maxBits = 2n ** 52n;
