import { parseAddressRange } from '../allocation/address-range.ts';
import type { IPFamily } from '../objects/address.ts';
import { ConfigError } from './service-ranges.ts';

const defaults = { IPv4: '10.244.0.0/16', IPv6: 'fd00:10:244::/56' } as const;
/** The part that each node takes, as prefix length: no cluster CIDR may be smaller. */
const nodePrefix = { IPv4: 24, IPv6: 64 } as const;

/**
 * Reads `--cluster-cidr`.
 *
 * @param families of the Service ranges: what Pods have addresses of when nothing is said.
 * @throws {ConfigError}
 */
export function clusterCidrs(text: string | undefined, families: readonly IPFamily[]): readonly string[] {
  if (text === undefined) return families.map((family) => defaults[family]);
  const cidrs = text.split(',').map((item) => item.trim());
  const found = cidrs.map((cidr) => {
    const range = cidr.includes('/') ? parseAddressRange(cidr) : undefined;
    if (range === undefined) throw new ConfigError(`--cluster-cidr: "${cidr}" is not a CIDR`);
    if (Number(cidr.slice(cidr.indexOf('/') + 1)) > nodePrefix[range.family]) {
      throw new ConfigError(
        `--cluster-cidr: "${cidr}" is too small: each node takes a /${nodePrefix[range.family]}`,
      );
    }
    return range.family;
  });
  if (found.length > 2 || new Set(found).size < found.length) {
    throw new ConfigError('--cluster-cidr: must be one CIDR, or two of different families');
  }
  return cidrs;
}
