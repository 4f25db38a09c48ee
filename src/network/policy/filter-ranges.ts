/** Ranges of addresses and ports as sets that do not overlap: the kernel takes no others. */
import { addressBits, formatAddress, type ParsedCidr } from '../../objects/address.ts';
import type { Protocol } from '../forwarding/forwarding-plan.ts';
import type { Span } from '../../objects/spans.ts';

/** A CIDR without others, as `<first>-<last>` in order. */
export function addressRanges(cidr: ParsedCidr, except: readonly ParsedCidr[]): readonly string[] {
  let left: readonly Span[] = [rangeOf(cidr)];
  for (const each of except) {
    if (each.family === cidr.family) left = left.flatMap((range) => without(range, rangeOf(each)));
  }
  return left.map(
    ({ first, last }) => `${formatAddress(cidr.family, first)}-${formatAddress(cidr.family, last)}`,
  );
}

function rangeOf({ family, network, prefixLength }: ParsedCidr): Span {
  const size = 1n << BigInt(addressBits(family) - prefixLength);
  return { first: network, last: network + size - 1n };
}

function without(range: Span, gap: Span): readonly Span[] {
  if (gap.last < range.first || range.last < gap.first) return [range];
  const before = { first: range.first, last: gap.first - 1n };
  const after = { first: gap.last + 1n, last: range.last };
  return [before, after].filter(({ first, last }) => first <= last);
}

/** Ports of a protocol, 0 to 65535. */
export interface PortSpan {
  readonly protocol: Protocol;
  readonly first: number;
  readonly last: number;
}

/** Ranges of ports as `tcp <first>-<last>`; what overlaps or touches is one. */
export function portRanges(ranges: readonly PortSpan[]): readonly string[] {
  const merged: PortSpan[] = [];
  const ordered = ranges.toSorted((a, b) => compare(a.protocol, b.protocol) || a.first - b.first);
  for (const range of ordered) {
    const before = merged.at(-1);
    if (before?.protocol === range.protocol && range.first <= before.last + 1) {
      merged[merged.length - 1] = { ...before, last: Math.max(before.last, range.last) };
    } else {
      merged.push(range);
    }
  }
  return merged.map(({ protocol, first, last }) => `${protocol.toLowerCase()} ${first}-${last}`);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
