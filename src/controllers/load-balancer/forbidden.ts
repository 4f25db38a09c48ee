import { AddressRange, parseAddressRange } from '../../allocation/address-range.ts';
import { parseStrictAddress } from '../../objects/address.ts';
import type { Node } from '../../objects/core.generated.ts';
import type { ServiceCIDR } from '../../objects/networking.generated.ts';
import type { Forbidden } from './pool-layout.ts';

/** The addresses that a cluster uses itself: its nodes', their pod CIDRs and its Service CIDRs. */
export function forbiddenRanges(nodes: Iterable<Node>, cidrs: Iterable<ServiceCIDR>): Forbidden[] {
  const forbidden: Forbidden[] = [];
  const add = (range: AddressRange | undefined, owner: string): void => {
    if (range !== undefined) forbidden.push({ range, owner });
  };
  for (const { metadata, spec } of cidrs) {
    for (const cidr of spec.cidrs ?? []) add(parseAddressRange(cidr), `ServiceCIDR ${metadata.name ?? ''}`);
  }
  for (const { metadata, spec, status } of nodes) {
    const owner = `node ${metadata.name ?? ''}`;
    for (const cidr of spec.podCIDRs ?? []) add(parseAddressRange(cidr), `the Pods of ${owner}`);
    for (const { address } of status.addresses ?? []) add(single(address), owner);
  }
  return forbidden;
}

/** Undefined for host names. */
function single(text: string): AddressRange | undefined {
  const parsed = parseStrictAddress(text);
  if (parsed === undefined) return undefined;
  return new AddressRange(parsed.family, parsed.value, parsed.value, parsed.canonical);
}
