import { parseAddressRange } from '../allocation/address-range.ts';
import type { IPFamily } from '../objects/address.ts';
import { WrongValue } from './errors.ts';
import { type FlagReader, text } from './flags.ts';

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
