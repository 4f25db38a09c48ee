import { isIPv4 } from 'node:net';
import { parseAddress } from '../../objects/address.ts';
import type { IPFamily } from '../../objects/address.ts';

/** An address as text in canonical form, and its family. */
export interface CanonicalIP {
  ip: string;
  family: IPFamily;
}

/**
 * Reads an address as Go's `ParseIPSloppy` does and returns it as `net.IP.String` prints it: decimal fields with
 * leading zeros are read, IPv6 is compressed, IPv4-mapped IPv6 is IPv4. Undefined for other texts.
 */
export function canonicalIP(text: string): CanonicalIP | undefined {
  // A fast path without big integers, for nearly all Pods.
  if (isIPv4(text)) return { ip: text, family: 'IPv4' };
  const parsed = parseAddress(text);
  return parsed === undefined ? undefined : { ip: parsed.canonical, family: parsed.family };
}
