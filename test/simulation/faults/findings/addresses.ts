/** Ranges of addresses, as plain arithmetic: nothing of the code under test is used to judge it. */
import { isIPv6 } from 'node:net';

/** Inclusive. */
export interface Span {
  readonly family: 'IPv4' | 'IPv6';
  readonly first: bigint;
  readonly last: bigint;
}

/** Reads `a.b.c.d`, or an IPv6 address with or without `::`. */
function numberOf(address: string): bigint {
  if (!isIPv6(address)) return address.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n);
  const [head = '', tail] = address.split('::');
  const groups = (text: string | undefined): string[] =>
    text === undefined || text === '' ? [] : text.split(':');
  const before = groups(head);
  const after = groups(tail);
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return [...before, ...zeros, ...after].reduce((sum, group) => sum * 65536n + BigInt(`0x${group}`), 0n);
}

/** Reads `address/length`. */
export function spanOf(cidr: string): Span {
  const [address = '', length = ''] = cidr.split('/');
  const family = isIPv6(address) ? 'IPv6' : 'IPv4';
  const hostBits = BigInt((family === 'IPv6' ? 128 : 32) - Number(length));
  const first = (numberOf(address) >> hostBits) << hostBits;
  return { family, first, last: first + (1n << hostBits) - 1n };
}

export function isIn(address: string, { family, first, last }: Span): boolean {
  const value = numberOf(address);
  return (family === 'IPv6') === isIPv6(address) && first <= value && value <= last;
}
