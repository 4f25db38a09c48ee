import { AddressRange, parseAddressRange } from '../../allocation/address-range.ts';
import { formatAddress, parseCidr, parseStrictAddress } from '../../objects/address.ts';
import { joinKey, type ObjectKey } from '../../objects/key.ts';
import { compileLabelSelector, matchesLabels, type ParsedLabelSelector } from '../../objects/labels.ts';
import { pushAll } from '../../objects/lists.ts';
import type { Condition, KubeObject, LabelSelector } from '../../objects/meta.ts';
import type { IPFamily } from '../../objects/address.ts';
import { parseTime } from '../../objects/time.ts';
import { parseDuration } from './duration.ts';

/** `servicenet.dev/v1alpha1` AddressPool, cluster-scoped (deploy/crds). */
export interface AddressPool extends KubeObject {
  spec: AddressPoolSpec;
  status?: AddressPoolStatus;
}

export interface AddressPoolSpec {
  /** CIDRs, ranges `a-b` and single addresses, both families. */
  addresses?: string[];
  /** CIDRs, ranges and single addresses that are never given. */
  exclude?: string[];
  /** Never give the network and broadcast address of `subnet`, or of each CIDR where there is no subnet. */
  avoidFirstLast?: boolean;
  subnet?: string;
  /** Serve Services that do not name this pool; default true. */
  autoAssign?: boolean;
  /** Higher is tried first; default 0. */
  priority?: number;
  namespaceSelector?: LabelSelector;
  serviceSelector?: LabelSelector;
  /** Default `by-key`. */
  sharing?: string;
  /** Default `Retain`. */
  shrinkPolicy?: string;
  /** How long an address rests before another Service gets it: `90s`, `1h30m`; default none. */
  reuseDelay?: string;
  reservations?: AddressReservation[];
}

/** An address that is kept for one Service, whether that exists or not. */
export interface AddressReservation {
  address: string;
  namespace: string;
  name: string;
}

export interface AddressPoolStatus {
  ipv4?: FamilyUsage;
  ipv6?: FamilyUsage;
  /** The only record of them, so that they go on resting when another process leads. */
  resting?: RestingAddress[];
  conditions?: Condition[];
}

/** An address that rests before another Service gets it. */
export interface RestingAddress {
  address: string;
  /** `namespace/name` of the Service that had it, and may have it back. */
  service: string;
  /** RFC 3339. */
  until: string;
}

/** Addresses by what they are; `free` can be handed out now. 2^53 - 1 stands for all numbers above. */
export interface FamilyUsage {
  total: number;
  used: number;
  free: number;
  quarantined: number;
}

export type SharingPolicy = 'never' | 'by-key' | 'by-ports';
export type ShrinkPolicy = 'Retain' | 'Reassign';

/** An AddressPool as the allocator works with it: parsed, defaulted, without what cannot be understood. */
export interface Pool {
  readonly name: string;
  /** Milliseconds since 1970; the older of two pools keeps an overlap. */
  readonly createdAt: number;
  readonly ranges: readonly AddressRange[];
  /** What `exclude` and `avoidFirstLast` take out of the ranges. */
  readonly excluded: readonly AddressRange[];
  readonly autoAssign: boolean;
  readonly priority: number;
  /** Absent where the pool does not select by namespace or Service. */
  readonly namespaceSelector: ParsedLabelSelector | undefined;
  readonly serviceSelector: ParsedLabelSelector | undefined;
  readonly sharing: SharingPolicy;
  readonly shrinkPolicy: ShrinkPolicy;
  /** Milliseconds. */
  readonly reuseDelay: number;
  /** Canonical address -> the Service it is kept for. */
  readonly reservations: ReadonlyMap<string, ObjectKey>;
}

/**
 * Addresses in the largest range of a pool, per family: a /8 and a /64. What is larger is a mistake, and would be all
 * addresses of the world.
 */
export const LARGEST: Record<IPFamily, bigint> = { IPv4: 1n << 24n, IPv6: 1n << 64n };

/**
 * Reads an AddressPool. Whatever of it is broken is named in `problems` and left out; the rest works. A broken
 * selector selects nothing, because serving too few is better than serving the wrong ones.
 */
export function readPool(object: AddressPool): { pool: Pool; problems: string[] } {
  const { metadata } = object;
  const spec = specOf(object);
  const problems: string[] = [];
  const ranges = readRanges(spec.addresses, 'spec.addresses', problems);
  if (ranges.length === 0) problems.push('spec.addresses: has no usable range');
  const excluded = readRanges(spec.exclude, 'spec.exclude', problems, false);
  if (spec.avoidFirstLast === true) pushAll(excluded, avoidedAddresses(spec, problems));
  const pool: Pool = {
    name: metadata.name ?? '',
    createdAt: parseTime(metadata.creationTimestamp ?? '') ?? 0,
    ranges,
    excluded,
    autoAssign: spec.autoAssign ?? true,
    priority: Number.isInteger(spec.priority) ? (spec.priority ?? 0) : 0,
    namespaceSelector: readSelector(spec.namespaceSelector, 'spec.namespaceSelector', problems),
    serviceSelector: readSelector(spec.serviceSelector, 'spec.serviceSelector', problems),
    sharing: oneOf(spec.sharing, ['by-key', 'never', 'by-ports'], 'spec.sharing', problems),
    shrinkPolicy: oneOf(spec.shrinkPolicy, ['Retain', 'Reassign'], 'spec.shrinkPolicy', problems),
    reuseDelay: readDelay(spec.reuseDelay, problems),
    reservations: readReservations(spec.reservations, problems),
  };
  return { pool, problems };
}

/** True when the pool chooses its Services: it is then tried before those that serve everybody. */
export function isSelective(pool: Pool): boolean {
  return pool.namespaceSelector !== undefined || pool.serviceSelector !== undefined;
}

/** True when the pool's selectors let it serve a Service with these labels. */
export function admits(
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

/** A pool made before its CRD had a schema may have no spec at all. */
function specOf(object: Partial<Pick<AddressPool, 'spec'>>): AddressPoolSpec {
  return object.spec ?? {};
}

function readRanges(
  texts: readonly string[] | undefined,
  path: string,
  problems: string[],
  bounded = true,
): AddressRange[] {
  const ranges: AddressRange[] = [];
  for (const [index, text] of (texts ?? []).entries()) {
    const range = parseAddressRange(asRange(text));
    if (range === undefined) problems.push(`${path}[${index}]: ${quoted(text)} ${whyNoRange(text)}`);
    else if (bounded && range.size > LARGEST[range.family]) {
      const largest = range.family === 'IPv4' ? '/8' : '/64';
      problems.push(
        `${path}[${index}]: ${range.text} is too large: a pool's ${range.family} range is at most a ${largest}`,
      );
    } else ranges.push(range);
  }
  return ranges;
}

/** What is wrong with a text that is no range. */
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

/** A single address stands for itself. */
function asRange(text: string): string {
  return text.includes('/') || text.includes('-') ? text : `${text}-${text}`;
}

function readSelector(
  selector: LabelSelector | undefined,
  path: string,
  problems: string[],
): ParsedLabelSelector | undefined {
  if (selector === undefined) return undefined;
  try {
    return compileLabelSelector(selector);
  } catch (error) {
    problems.push(
      `${path}: ${error instanceof Error ? error.message : String(error)}; the pool serves no Services`,
    );
    return 'nothing';
  }
}

/** The first of `words` is the default. */
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
 * The addresses that `avoidFirstLast` takes out: network and broadcast of the subnet that the pool is in, or of each
 * CIDR where the pool names no subnet (a CIDR of fewer than four addresses is taken to be a part of a subnet). IPv6
 * has no broadcast; its first address is the subnet-router anycast address.
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
