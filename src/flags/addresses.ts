import { type AddressRange, parseAddressRange, rangeOfCidr } from '../allocation/address-range.ts';
import { type IPFamily, parseCidr } from '../objects/address.ts';
import { WrongValue, list, type FlagReader, text } from './readers.ts';

/** Ranges for documentation (RFC 5737, RFC 3849), which are routed nowhere; the first that is free is taken. */
const candidates = {
  IPv4: ['192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24'],
  IPv6: ['2001:db8::/64', '2001:db8:1::/64', '2001:db8:2::/64'],
} as const;

/**
 * Reads `--default-pool`: CIDRs and ranges, both families; "" for no pool; undefined when it is not given.
 *
 * @param families of the Service ranges: what others have is left out, because no Service could use it.
 */
export function defaultPool(families: readonly IPFamily[]): FlagReader<readonly string[] | undefined> {
  return (value) => (value === undefined ? undefined : rangesOfFamilies(list(value), families));
}

/** The items that are ranges of one of the families. @throws {WrongValue} for one that is no range. */
export function rangesOfFamilies(items: readonly string[], families: readonly IPFamily[]): readonly string[] {
  return items.filter((item) => {
    const range = parseAddressRange(item);
    if (range === undefined) {
      throw new WrongValue(`"${item}" is neither a CIDR nor a range such as 192.0.2.10-192.0.2.20`);
    }
    return families.includes(range.family);
  });
}

/**
 * A range for documentation for each family, unless every one overlaps a network of this machine.
 *
 * @param networks of its interfaces, with their addresses: `192.0.2.7/24`.
 */
export function freeRanges(networks: readonly string[], families: readonly IPFamily[]): readonly string[] {
  const taken = networks.flatMap((network) => networkOf(network) ?? []);
  return families.flatMap((family) => {
    const free = candidates[family].find((candidate) => {
      const range = networkOf(candidate);
      return range !== undefined && !taken.some((network) => network.overlaps(range));
    });
    return free ?? [];
  });
}

function networkOf(address: string): AddressRange | undefined {
  const cidr = parseCidr(address);
  return cidr === undefined ? undefined : rangeOfCidr(cidr);
}

const defaults = { IPv4: '10.244.0.0/16', IPv6: 'fd00:10:244::/56' } as const;
/** The part that each node takes, as prefix length: no cluster CIDR may be smaller. */
const nodePrefix = { IPv4: 24, IPv6: 64 } as const;

/**
 * Reads `--cluster-cidr`: one CIDR, or two of different families.
 *
 * @param families of the Service ranges: what Pods have addresses of when nothing is given.
 */
export function clusterCidrs(families: readonly IPFamily[]): FlagReader<readonly string[]> {
  return (value) => {
    if (value === undefined) return families.map((family) => defaults[family]);
    const cidrs = text(value)
      .split(',')
      .map((item) => item.trim());
    const found = cidrs.map(familyOf);
    if (found.length > 2 || new Set(found).size < found.length) {
      throw new WrongValue('must be one CIDR, or two of different families');
    }
    return cidrs;
  };
}

function familyOf(cidr: string): IPFamily {
  const range = cidr.includes('/') ? parseAddressRange(cidr) : undefined;
  if (range === undefined) throw new WrongValue(`"${cidr}" is not a CIDR`);
  const least = nodePrefix[range.family];
  if (Number(cidr.slice(cidr.indexOf('/') + 1)) > least) {
    throw new WrongValue(`"${cidr}" is too small: each node takes a /${least}`);
  }
  return range.family;
}
