import ipaddr from 'ipaddr.js';
import { parseAddress } from '../../objects/address.ts';

/** What Go's `IsGlobalUnicast` refuses. Private ranges pass. */
const closedRanges: ReadonlySet<string> = new Set([
  'unspecified',
  'loopback',
  'linkLocal',
  'multicast',
  'broadcast',
]);

/** IPv6 prefixes behind which the last 32 bits are an IPv4 address. */
const ipv4InLastBits = [
  '::/96', // IPv4-compatible (RFC 4291, 2.5.5.1)
  '::ffff:0:0:0/96', // IPv4-translated (RFC 2765)
  '64:ff9b::/96', // NAT64 (RFC 6052)
  '64:ff9b:1::/48', // NAT64 of a site (RFC 8215)
].map((cidr) => ipaddr.IPv6.parseCIDR(cidr));

/** 6to4 (RFC 3056): an IPv4 address follows the first 16 bits. */
const sixToFour = ipaddr.IPv6.parseCIDR('2002::/16');

/**
 * True for an address that the server connects to for no client: not a global unicast one as Go's `IsGlobalUnicast`
 * has it, or an IPv6 form of such an IPv4 address that a gateway in the network of the machine would translate.
 * True for text that is no address, too.
 */
export function isClosed(text: string): boolean {
  const parsed = parseAddress(text);
  if (parsed === undefined || parsed.leadingZeros) return true;
  // An IPv4-mapped address is canonical as the IPv4 address.
  const address = ipaddr.parse(parsed.canonical);
  if (closedRanges.has(address.range())) return true;
  if (!(address instanceof ipaddr.IPv6)) return false;
  const embedded = embeddedIPv4(address);
  return embedded !== undefined && closedRanges.has(embedded.range());
}

function embeddedIPv4(address: ipaddr.IPv6): ipaddr.IPv4 | undefined {
  const bytes = address.toByteArray();
  if (ipv4InLastBits.some((cidr) => address.match(cidr))) return new ipaddr.IPv4(bytes.slice(12));
  if (address.match(sixToFour)) return new ipaddr.IPv4(bytes.slice(2, 6));
  return undefined;
}
