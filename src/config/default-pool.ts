import { parseAddressRange } from '../allocation/address-range.ts';
import type { IPFamily } from '../objects/address.ts';
import { ConfigError } from './service-ranges.ts';

/** Documentation ranges (RFC 5737, RFC 3849): no network has them, so nothing can be taken away by accident. */
export const defaultPoolRanges = '192.0.2.0/24,2001:db8::/64';

/**
 * Reads `--default-pool`: CIDRs and ranges, both families; "" for no pool.
 *
 * @param families of the Service ranges: what others have is left out, because no Service could use it.
 * @throws {ConfigError}
 */
export function defaultPool(text: string, families: readonly IPFamily[]): readonly string[] {
  const items = text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  return items.filter((item) => {
    const range = parseAddressRange(item);
    if (range === undefined) {
      throw new ConfigError(
        `--default-pool: "${item}" is neither a CIDR nor a range such as 192.0.2.10-192.0.2.20`,
      );
    }
    return families.includes(range.family);
  });
}
