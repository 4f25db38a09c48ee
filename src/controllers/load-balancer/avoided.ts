import { AddressRange, parseAddressRange } from '../../allocation/address-range.ts';
import { formatAddress } from '../../objects/address.ts';
import type { AddressPoolSpec } from './pool.ts';

/**
 * The addresses that `avoidFirstLast` takes out: network and broadcast of the subnet that the pool is in, or of each
 * CIDR where the pool names no subnet (a CIDR of fewer than four addresses is taken to be a part of a subnet). IPv6
 * has no broadcast; its first address is the subnet-router anycast address.
 */
export function avoidedAddresses(
  spec: Pick<AddressPoolSpec, 'addresses' | 'subnet'>,
  problems: string[],
): AddressRange[] {
  if (spec.subnet !== undefined) {
    const subnet = spec.subnet.includes('/') ? parseAddressRange(spec.subnet) : undefined;
    if (subnet === undefined) {
      problems.push(
        `spec.subnet: ${JSON.stringify(spec.subnet.slice(0, 80))} is not a CIDR; first and last are not avoided`,
      );
      return [];
    }
    return firstAndLast(subnet);
  }
  return (spec.addresses ?? []).flatMap((text) => {
    const range = text.includes('/') ? parseAddressRange(text) : undefined;
    return range === undefined || range.size < 4n ? [] : firstAndLast(range);
  });
}

function firstAndLast({ family, first, last }: AddressRange): AddressRange[] {
  const single = (value: bigint): AddressRange => {
    const text = formatAddress(family, value);
    return new AddressRange(family, value, value, `${text}-${text}`);
  };
  return family === 'IPv4' ? [single(first), single(last)] : [single(first)];
}
