import { formatAddress, parseStrictAddress } from '../../objects/address.ts';

/** The domains of reverse names. */
export const reverseDomains = ['in-addr.arpa', 'ip6.arpa'] as const;

/**
 * The address that a reverse name stands for, in canonical form: `10.0.96.10.in-addr.arpa` → `10.96.0.10` (RFC 1035,
 * 3.5; RFC 3596, 2.5). Undefined for every other name, and for the name of a network.
 *
 * @param name in lower case, without a dot at the end.
 */
export function addressOfReverseName(name: string): string | undefined {
  const [v4, v6] = reverseDomains;
  if (name.endsWith(`.${v4}`)) {
    const labels = name.slice(0, -v4.length - 1).split('.');
    const address = parseStrictAddress(labels.reverse().join('.'));
    return address?.family === 'IPv4' ? address.canonical : undefined;
  }
  if (!name.endsWith(`.${v6}`)) return undefined;
  const digits = name.slice(0, -v6.length - 1);
  if (!/^[0-9a-f](\.[0-9a-f]){31}$/.test(digits)) return undefined;
  const value = BigInt(`0x${digits.split('.').reverse().join('')}`);
  return formatAddress('IPv6', value);
}
