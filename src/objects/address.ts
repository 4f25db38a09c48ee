import { isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';

/** `spec.ipFamilies[]` of a Service, and what each address belongs to. */
export type IPFamily = 'IPv4' | 'IPv6';

export const ipFamilies: readonly IPFamily[] = ['IPv4', 'IPv6'];

/**
 * An IP address as Kubernetes reads it. Its validation (`apimachinery/pkg/util/validation/ip.go`) parses leniently
 * first (Go 1.16's `net.ParseIP`: leading zeros are decimal) and then names what a strict parser would refuse; the
 * flags are those findings. For strict addresses use {@link parseStrictAddress}.
 */
export interface ParsedAddress {
  /** IPv4 for IPv4-mapped IPv6 addresses too, as Go's `net.IP.To4` has it. */
  readonly family: IPFamily;
  /** 32 or 128 bits, unsigned. */
  readonly value: bigint;
  /** As Go's `net.IP.String` prints it: dotted decimal, or RFC 5952. */
  readonly canonical: string;
  /** "must not have leading 0s": an IPv4 field with one, or an IPv6 group of more than four digits. */
  readonly leadingZeros: boolean;
  /** "must not be an IPv4-mapped IPv6 address". */
  readonly ipv4Mapped: boolean;
}

/** A CIDR as Kubernetes reads it: the same two passes as {@link ParsedAddress}. */
export interface ParsedCidr {
  readonly family: IPFamily;
  /** The network's address: the bits beyond the prefix are cleared. */
  readonly network: bigint;
  /** 0 to 32 or 0 to 128. */
  readonly prefixLength: number;
  /** Network and prefix as Go's `net.IPNet.String` prints them. */
  readonly canonical: string;
  /** "must not have leading 0s in IP or prefix length". */
  readonly leadingZeros: boolean;
  /** "must not have an IPv4-mapped IPv6 address". */
  readonly ipv4Mapped: boolean;
  /** "must not have bits set beyond the prefix length". */
  readonly hostBitsSet: boolean;
}

/** Bits in an address of the family. */
export function addressBits(family: IPFamily): 32 | 128 {
  return family === 'IPv4' ? 32 : 128;
}

/** Longest text that can be an address; more leading zeros than this allows are refused. */
const maxText = 256;

/** Reads an address leniently, as the first pass of Kubernetes' validation does. No zones, no CIDRs, no short forms. */
export function parseAddress(text: string): ParsedAddress | undefined {
  if (text.length > maxText) return undefined;
  if (!text.includes(':')) return parseV4(text); // as fast as remembering it
  const known = recent.get(text);
  if (known !== undefined) return known;
  const parsed = parseV6(text);
  if (parsed === undefined) return undefined;
  if (recent.size === maxRecent) recent.clear();
  recent.set(text, parsed);
  return parsed;
}

/** Validating one request parses its few addresses about ten times: remembering the last results saves 50 µs. */
const recent = new Map<string, ParsedAddress>();
const maxRecent = 256;

/** Reads an address that any strict parser accepts: no leading zeros, no IPv4-mapped forms. */
export function parseStrictAddress(text: string): ParsedAddress | undefined {
  const parsed = parseAddress(text);
  return parsed === undefined || parsed.leadingZeros || parsed.ipv4Mapped ? undefined : parsed;
}

/** Reads a CIDR leniently, as the first pass of Kubernetes' validation does. */
export function parseCidr(text: string): ParsedCidr | undefined {
  const slash = text.indexOf('/');
  if (slash < 0) return undefined;
  const address = parseAddress(text.slice(0, slash));
  const digits = text.slice(slash + 1);
  if (address === undefined || !/^\d{1,40}$/.test(digits)) return undefined;
  const asWritten = Number(digits);
  if (asWritten > (text.includes(':') ? 128 : 32)) return undefined;

  // A mapped address with a prefix that covers the ::ffff:0:0/96 part is an IPv4 network, else an IPv6 one.
  const mappedWide = address.ipv4Mapped && asWritten < 96;
  const family = mappedWide ? 'IPv6' : address.family;
  const value = mappedWide ? mappedPrefix | address.value : address.value;
  const prefixLength = address.ipv4Mapped && !mappedWide ? asWritten - 96 : asWritten;
  const hostBits = BigInt(addressBits(family) - prefixLength);
  const network = (value >> hostBits) << hostBits;
  return {
    family,
    network,
    prefixLength,
    canonical: `${formatAddress(family, network)}/${prefixLength}`,
    leadingZeros: address.leadingZeros || (digits.length > 1 && digits.startsWith('0')),
    ipv4Mapped: address.ipv4Mapped,
    hostBitsSet: network !== value,
  };
}

/**
 * The canonical text of an address: dotted decimal, or RFC 5952 as Go's `netip.Addr.String` prints it (lower case,
 * the first longest run of two or more zero groups shortened, IPv4-mapped addresses dotted).
 *
 * @param value 0 to 2^32-1 or 2^128-1.
 */
export function formatAddress(family: IPFamily, value: bigint): string {
  return family === 'IPv4' ? formatV4(Number(value)) : formatV6(value);
}

/** Dotted decimal of an unsigned 32-bit number. */
export function formatV4(value: number): string {
  return `${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`;
}

const mappedPrefix = 0xffff_0000_0000n;

function formatV6(value: bigint): string {
  const word = (shift: bigint): number => Number(BigInt.asUintN(32, value >> shift));
  return formatV6Words(word(96n), word(64n), word(32n), word(0n));
}

/** {@link formatAddress} of an IPv6 address given as its four unsigned 32-bit words, most significant first. */
export function formatV6Words(a: number, b: number, c: number, d: number): string {
  if (a === 0 && b === 0 && c === 0xffff) return `::ffff:${formatV4(d)}`;
  const groups = [a >>> 16, a & 0xffff, b >>> 16, b & 0xffff, c >>> 16, c & 0xffff, d >>> 16, d & 0xffff];
  let zerosStart = 8;
  let zeros = 1;
  let run = 0;
  for (let i = 0; i < 8; i++) {
    run = groups[i] === 0 ? run + 1 : 0;
    if (run > zeros) {
      zeros = run;
      zerosStart = i - run + 1;
    }
  }
  let text = '';
  for (let i = 0; i < 8; i++) {
    if (i === zerosStart) {
      text += '::';
      i += zeros - 1;
    } else {
      if (i > 0 && i !== zerosStart + zeros) text += ':';
      text += (groups[i] ?? 0).toString(16);
    }
  }
  return text;
}

/**
 * ipaddr.js would read `010.0.0.1` as octal and `1.2.3` as a short form: only four decimal fields are passed to it. Read
 * character by character, because a forwarding plan reads 100,000 of them.
 */
function parseV4(text: string): ParsedAddress | undefined {
  let value = 0;
  let fields = 0;
  let field = -1; // -1 before its first digit
  let leadingZeros = false;
  for (let i = 0; i <= text.length; i++) {
    const digit = i === text.length ? dotValue : text.charCodeAt(i) - zeroCode;
    if (digit >= 0 && digit <= 9) {
      if (field === 0) leadingZeros = true;
      field = field < 0 ? digit : field * 10 + digit;
      if (field > 255) return undefined;
    } else if (digit === dotValue && field >= 0) {
      value = value * 256 + field;
      fields++;
      field = -1;
    } else {
      return undefined;
    }
  }
  if (fields !== 4) return undefined;
  return {
    family: 'IPv4',
    value: BigInt(value),
    canonical: leadingZeros ? formatV4(value) : text,
    leadingZeros,
    ipv4Mapped: false,
  };
}

const zeroCode = 48;
/** Where the code of '.' is, counted from '0'. */
const dotValue = 46 - zeroCode;

/**
 * Leading zeros are removed first (Go's two parsers differ in nothing else), then the text must satisfy Node's parser,
 * and ipaddr.js gives its bytes.
 */
function parseV6(text: string): ParsedAddress | undefined {
  if (!/^[0-9a-fA-F:.]+$/.test(text)) return undefined;
  let leadingZeros = false;
  let plain = text.replace(/(?<![0-9a-fA-F.])0+(?=[0-9a-fA-F]{4}(?![0-9a-fA-F.]))/g, () => {
    leadingZeros = true;
    return '';
  });
  const dotted = plain.includes('.') ? plain.lastIndexOf(':') + 1 : -1;
  if (dotted > 0) {
    const tail = parseV4(plain.slice(dotted));
    if (tail === undefined) return undefined;
    if (tail.leadingZeros) leadingZeros = true;
    plain = plain.slice(0, dotted) + tail.canonical;
  }
  if (!isIPv6(plain)) return undefined;
  const words = ipaddr.IPv6.parse(plain).parts;
  let value = 0n;
  for (let i = 0; i < 8; i += 2)
    value = (value << 32n) | BigInt((words[i] ?? 0) * 65536 + (words[i + 1] ?? 0));
  const ipv4Mapped = value >> 32n === 0xffffn;
  const family = ipv4Mapped ? 'IPv4' : 'IPv6';
  if (ipv4Mapped) value &= 0xffff_ffffn;
  return { family, value, canonical: formatAddress(family, value), leadingZeros, ipv4Mapped };
}

/** `192.0.2.1:80`, `[2001:db8::1]:80`, `name:80` (Go's `net.JoinHostPort`). */
export function joinHostPort(host: string, port: number | string): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Consecutive addresses of one family, both ends included. */
export interface Span {
  readonly first: bigint;
  readonly last: bigint;
}

/** The same addresses in ascending, disjoint spans, as few as possible. */
export function mergeSpans(spans: readonly Span[]): Span[] {
  const result: { first: bigint; last: bigint }[] = [];
  for (const { first, last } of [...spans].sort(byFirst)) {
    const previous = result.at(-1);
    if (previous !== undefined && first <= previous.last + 1n) {
      if (last > previous.last) previous.last = last;
    } else result.push({ first, last });
  }
  return result;
}

function byFirst(a: Span, b: Span): number {
  return a.first < b.first ? -1 : a.first > b.first ? 1 : 0;
}

/** The addresses of `spans` that are not in `holes`. Both are ascending and disjoint, see {@link mergeSpans}. */
export function subtractSpans(spans: readonly Span[], holes: readonly Span[]): Span[] {
  const result: Span[] = [];
  let hole = 0;
  for (const span of spans) {
    let { first } = span;
    while (hole < holes.length && (holes[hole]?.last ?? 0n) < first) hole++;
    for (let i = hole; i < holes.length; i++) {
      const next = holes[i];
      if (next === undefined || next.first > span.last) break;
      if (next.first > first) result.push({ first, last: next.first - 1n });
      first = next.last + 1n;
      if (first > span.last) break;
    }
    if (first <= span.last) result.push({ first, last: span.last });
  }
  return result;
}

/** The addresses that both have. Both are ascending and disjoint. */
export function intersectSpans(a: readonly Span[], b: readonly Span[]): Span[] {
  return subtractSpans(a, subtractSpans(a, b));
}

/** Index of the span that contains a value, or -1. Binary search. */
export function indexOfSpan(spans: readonly Span[], value: bigint): number {
  let low = 0;
  let high = spans.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const span = spans[middle];
    if (span === undefined) return -1;
    if (value < span.first) high = middle - 1;
    else if (value > span.last) low = middle + 1;
    else return middle;
  }
  return -1;
}
