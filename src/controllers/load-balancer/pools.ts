import { AddressRange, parseAddressRange } from '../../allocation/address-range.ts';
import {
  formatAddress,
  parseCidr,
  parseStrictAddress,
  type IPFamily,
  ipFamilies,
} from '../../objects/address.ts';
import { joinKey, type ObjectKey } from '../../objects/meta.ts';
import {
  readLabelSelector,
  matchesLabels,
  type ParsedLabelSelector,
} from '../../objects/selectors/labels.ts';
import { pushAll } from '../../objects/lists.ts';
import type { AddressPool, AddressPoolSpec, AddressReservation } from '../../objects/types/servicenet.ts';
import { parseDuration, parseTime } from '../../objects/formats/time.ts';
import type { Node } from '../../objects/types/core.generated.ts';
import type { ServiceCIDR } from '../../objects/types/networking.generated.ts';
import { type Bitmap, createBitmap } from '../../allocation/bitmap.ts';
import { indexOfSpan, intersectSpans, mergeSpans, type Span, subtractSpans } from '../../objects/address.ts';
import type { HostAddress } from '../announcement-status/plan.ts';

export type SharingPolicy = 'never' | 'by-key' | 'by-ports';
export type ShrinkPolicy = 'Retain' | 'Reassign';

/** The pool that assigned an address, and its shrinkPolicy. */
export interface Origin {
  readonly pool: string;
  readonly shrinkPolicy: ShrinkPolicy;
}

/** An AddressPool, parsed and defaulted, without its invalid parts. */
export interface Pool {
  readonly name: string;
  /** Milliseconds since 1970; of two overlapping pools the older one keeps the overlap. */
  readonly createdAtMs: number;
  readonly ranges: readonly AddressRange[];
  /** From `exclude` and `avoidFirstLast`. */
  readonly excluded: readonly AddressRange[];
  readonly autoAssign: boolean;
  readonly priority: number;
  /** Undefined for all namespaces; the same holds for Services below. */
  readonly namespaceSelector: ParsedLabelSelector | undefined;
  readonly serviceSelector: ParsedLabelSelector | undefined;
  readonly sharing: SharingPolicy;
  readonly shrinkPolicy: ShrinkPolicy;
  /** Milliseconds. */
  readonly reuseDelayMs: number;
  /** Canonical address -> the Service it is reserved for. */
  readonly reservations: ReadonlyMap<string, ObjectKey>;
}

/** Most addresses of one range of a pool: a /8 and a /64. A larger range counts as a mistake. */
export const maxRangeSize: Record<IPFamily, bigint> = { IPv4: 1n << 24n, IPv6: 1n << 64n };

/**
 * Reads an AddressPool. Invalid parts are named in `problems` and left out; the rest is used. An invalid selector
 * selects nothing, because an address for the wrong Service is worse than none.
 */
export function readPool(object: AddressPool): { pool: Pool; problems: string[] } {
  const { metadata } = object;
  const spec = specOf(object);
  const problems: string[] = [];
  const consequence = 'the pool serves no Services';
  const ranges = readRanges(spec.addresses, 'spec.addresses', problems);
  if (ranges.length === 0) problems.push('spec.addresses: has no usable range');
  const excluded = readRanges(spec.exclude, 'spec.exclude', problems, false);
  if (spec.avoidFirstLast === true) pushAll(excluded, avoidedAddresses(spec, problems));
  const pool: Pool = {
    name: metadata.name ?? '',
    createdAtMs: parseTime(metadata.creationTimestamp ?? '') ?? 0,
    ranges,
    excluded,
    autoAssign: spec.autoAssign ?? true,
    priority: Number.isInteger(spec.priority) ? (spec.priority ?? 0) : 0,
    namespaceSelector: readLabelSelector(
      spec.namespaceSelector,
      { path: 'spec.namespaceSelector', consequence },
      problems,
    ),
    serviceSelector: readLabelSelector(
      spec.serviceSelector,
      { path: 'spec.serviceSelector', consequence },
      problems,
    ),
    sharing: oneOf(spec.sharing, ['by-key', 'never', 'by-ports'], 'spec.sharing', problems),
    shrinkPolicy: oneOf(spec.shrinkPolicy, ['Retain', 'Reassign'], 'spec.shrinkPolicy', problems),
    reuseDelayMs: readDelay(spec.reuseDelay, problems),
    reservations: readReservations(spec.reservations, problems),
  };
  return { pool, problems };
}

/** True for a pool with a selector. Such pools are tried before those that serve all Services. */
export function isSelective(pool: Pool): boolean {
  return pool.namespaceSelector !== undefined || pool.serviceSelector !== undefined;
}

/** True when the pool's selectors match the labels of a Service. */
export function poolSelects(
  pool: Pool,
  service: { labels: Readonly<Record<string, string>>; namespaceLabels: Readonly<Record<string, string>> },
): boolean {
  if (
    pool.namespaceSelector !== undefined &&
    !matchesLabels(pool.namespaceSelector, service.namespaceLabels)
  ) {
    return false;
  }
  return pool.serviceSelector === undefined || matchesLabels(pool.serviceSelector, service.labels);
}

/** A pool that was created before its CRD had a schema may have no spec. */
function specOf(object: Partial<Pick<AddressPool, 'spec'>>): AddressPoolSpec {
  return object.spec ?? {};
}

function readRanges(
  texts: readonly string[] | undefined,
  path: string,
  problems: string[],
  hasMaxSize = true,
): AddressRange[] {
  const ranges: AddressRange[] = [];
  for (const [index, text] of (texts ?? []).entries()) {
    const range = parseAddressRange(asRange(text));
    if (range === undefined) problems.push(`${path}[${index}]: ${quoted(text)} ${whyNoRange(text)}`);
    else if (hasMaxSize && range.size > maxRangeSize[range.family]) {
      const max = range.family === 'IPv4' ? '/8' : '/64';
      problems.push(
        `${path}[${index}]: ${range.text} is too large: a pool's ${range.family} range is at most a ${max}`,
      );
    } else ranges.push(range);
  }
  return ranges;
}

/** Why a text is not a range. */
function whyNoRange(text: string): string {
  const [first = '', last, ...rest] = text.split('-').map((part) => part.trim());
  const [from, to] = [first, last ?? ''].map((part) => parseStrictAddress(part));
  if (from !== undefined && to !== undefined && rest.length === 0) {
    return from.family === to.family ? 'ends before it begins' : 'begins and ends in different families';
  }
  const cidr = parseCidr(text);
  return cidr?.hostBitsSet === true
    ? `does not begin with the first address of its CIDR, ${cidr.canonical}`
    : 'is neither an address, a CIDR nor a range "first-last"';
}

/** A single address as a range; other texts as they are. */
function asRange(text: string): string {
  return text.includes('/') || text.includes('-') ? text : `${text}-${text}`;
}

/** One of `words`; the first is the default. */
function oneOf<Word extends string>(
  value: string | undefined,
  words: readonly [Word, ...Word[]],
  path: string,
  problems: string[],
): Word {
  if (value === undefined) return words[0];
  const known = words.find((word) => word === value);
  if (known === undefined)
    problems.push(`${path}: ${quoted(value)} is not one of ${words.join(', ')}; ${words[0]} is used`);
  return known ?? words[0];
}

function readDelay(text: string | undefined, problems: string[]): number {
  if (text === undefined) return 0;
  const delay = parseDuration(text);
  if (delay === undefined)
    problems.push(`spec.reuseDelay: ${quoted(text)} is not a duration such as 90s or 1h30m`);
  return delay ?? 0;
}

function readReservations(
  list: readonly AddressReservation[] | undefined,
  problems: string[],
): Map<string, ObjectKey> {
  const reservations = new Map<string, ObjectKey>();
  for (const [index, { address, namespace, name }] of (list ?? []).entries()) {
    const parsed = parseStrictAddress(address);
    if (parsed === undefined)
      problems.push(`spec.reservations[${index}].address: ${quoted(address)} is not an address`);
    else if (reservations.has(parsed.canonical)) {
      problems.push(
        `spec.reservations[${index}].address: ${parsed.canonical} is reserved twice; the first reservation is used`,
      );
    } else reservations.set(parsed.canonical, joinKey(namespace, name));
  }
  return reservations;
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

/**
 * The addresses that `avoidFirstLast` excludes: network and broadcast address of the pool's subnet, or of each CIDR if
 * the pool has no subnet (a CIDR of fewer than four addresses is taken for a part of a subnet). IPv6 has no broadcast
 * address; its first address is the subnet-router anycast address (RFC 4291, 2.6.1).
 */
function avoidedAddresses(
  spec: Pick<AddressPoolSpec, 'addresses' | 'subnet'>,
  problems: string[],
): AddressRange[] {
  if (spec.subnet !== undefined) {
    const subnet = spec.subnet.includes('/') ? parseAddressRange(spec.subnet) : undefined;
    if (subnet === undefined) {
      problems.push(
        `spec.subnet: ${JSON.stringify(spec.subnet.slice(0, 80))} is not a CIDR; first and last are not avoided`,
      );
      return [];
    }
    return firstAndLast(subnet);
  }
  return (spec.addresses ?? []).flatMap((text) => {
    const range = text.includes('/') ? parseAddressRange(text) : undefined;
    return range === undefined || range.size < 4n ? [] : firstAndLast(range);
  });
}

function firstAndLast({ family, first, last }: AddressRange): AddressRange[] {
  const single = (value: bigint): AddressRange => {
    const text = formatAddress(family, value);
    return new AddressRange(family, value, value, `${text}-${text}`);
  };
  return family === 'IPv4' ? [single(first), single(last)] : [single(first)];
}

/** Which addresses a pool has, and which of them are free. */

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
  return a.createdAtMs - b.createdAtMs || (a.name < b.name ? -1 : 1);
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
