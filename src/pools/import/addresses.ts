import { type AddressRange, parseAddressRange } from '../../allocation/address-range.ts';
import { parseCidr } from '../../objects/address.ts';
import { LARGEST } from '../../controllers/load-balancer/pool.ts';

/** As many entries as an AddressPool takes in `spec.addresses` (deploy/crds). */
export const mostEntries = 256;

/**
 * CIDRs, ranges and single addresses as an AddressPool takes them. CIDRs are cut to their network, as other load
 * balancers read them; what an AddressPool cannot have is left out, with a note that says why.
 *
 * @param owner whose they are, for the notes.
 */
export function importedAddresses(owner: string, texts: readonly string[], notes: string[]): string[] {
  const taken: string[] = [];
  for (const text of texts) {
    const range = readForeignRange(text.trim());
    if (typeof range === 'string') notes.push(`${owner}: ${JSON.stringify(text)} not imported: ${range}`);
    else if (taken.length === mostEntries) {
      notes.push(`${owner}: ${range.text} not imported: a pool has at most ${mostEntries} entries`);
    } else taken.push(range.text);
  }
  return taken;
}

/** The range, or why there is none. */
function readForeignRange(text: string): AddressRange | string {
  const range = text.includes('/')
    ? networkOf(text)
    : parseAddressRange(text.includes('-') ? text : `${text}-${text}`);
  if (range === undefined)
    return 'it is neither an address, a CIDR nor a range that ends behind its beginning';
  if (range.size === 1n && range.first === 0n) {
    return 'it asks DHCP for addresses, which has no counterpart';
  }
  if (range.size > LARGEST[range.family]) {
    return `a pool's ${range.family} range is at most a /${range.family === 'IPv4' ? 8 : 64}`;
  }
  return range;
}

/** A CIDR without the bits of a host in it. */
function networkOf(text: string): AddressRange | undefined {
  const cidr = parseCidr(text);
  if (cidr === undefined || cidr.leadingZeros || cidr.ipv4Mapped) return undefined;
  return parseAddressRange(cidr.canonical);
}
