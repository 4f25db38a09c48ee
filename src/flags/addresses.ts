import { type AddressRange, parseAddressRange, rangeOfCidr } from '../allocation/address-range.ts';
import { type IPFamily, parseCidr } from '../objects/address.ts';
import { list, text, WrongValue } from './readers.ts';

/** Ranges for documentation (RFC 5737, RFC 3849), which are routed nowhere; the first that is free is taken. */
const candidates = {
  IPv4: ['192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24'],
  IPv6: ['2001:db8::/64', '2001:db8:1::/64', '2001:db8:2::/64'],
} as const;

/** `--default-pool`: CIDRs and ranges; "" for no pool. */
export function poolRanges(value: unknown): readonly string[] {
  return addressRanges(list(value));
}

/** Items that are all CIDRs or ranges. @throws {WrongValue} for one that is neither. */
export function addressRanges(items: readonly string[]): readonly string[] {
  const wrong = items.find((item) => parseAddressRange(item) === undefined);
  if (wrong === undefined) return items;
  throw new WrongValue(`"${wrong}" is neither a CIDR nor a range such as 192.0.2.10-192.0.2.20`);
}

/** The ranges of these families. */
export function rangesOfFamilies(
  ranges: readonly string[],
  families: readonly IPFamily[],
): readonly string[] {
  return ranges.filter((text) => {
    const range = parseAddressRange(text);
    return range !== undefined && families.includes(range.family);
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

/** Of 256 nodes, and of 1,024: as many as there may be. */
const defaults = {
  IPv4: ['10.244.0.0/16', '10.244.0.0/14'],
  IPv6: ['fd00:10:244::/56', 'fd00:10:244::/54'],
} as const;
/** The part that each node takes, as prefix length: no cluster CIDR may be smaller. */
const nodePrefix = { IPv4: 24, IPv6: 64 } as const;

/** `--cluster-cidr`: one CIDR, or two of different families. @throws {WrongValue} */
export function clusterCidrs(value: unknown): readonly string[] {
  const cidrs = text(value)
    .split(',')
    .map((item) => item.trim());
  const found = cidrs.map(familyOf);
  if (found.length > 2 || new Set(found).size < found.length) {
    throw new WrongValue('must be one CIDR, or two of different families');
  }
  return cidrs;
}

/**
 * The ranges of Pod addresses, of which each node has a part.
 *
 * @param given those of {@link clusterCidrs}. @param families of the Service ranges.
 * @throws {WrongValue} for one with parts for fewer nodes.
 */
export function podRanges(
  given: readonly string[] | undefined,
  families: readonly IPFamily[],
  nodes: number,
): readonly string[] {
  const ranges = given ?? families.map((family) => defaults[family][nodes > 256 ? 1 : 0]);
  for (const range of ranges) {
    const count = 2 ** (nodePrefix[familyOf(range)] - prefixLengthOf(range));
    if (count < nodes) throw new WrongValue(`"${range}" has room for ${count} nodes, not for ${nodes}`);
  }
  return ranges;
}

function prefixLengthOf(cidr: string): number {
  return Number(cidr.slice(cidr.indexOf('/') + 1));
}

function familyOf(cidr: string): IPFamily {
  const range = cidr.includes('/') ? parseAddressRange(cidr) : undefined;
  if (range === undefined) throw new WrongValue(`"${cidr}" is not a CIDR`);
  const least = nodePrefix[range.family];
  if (prefixLengthOf(cidr) > least) {
    throw new WrongValue(`"${cidr}" is too small: each node takes a /${least}`);
  }
  return range.family;
}
