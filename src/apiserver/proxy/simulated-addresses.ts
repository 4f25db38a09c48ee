import { parseAddressRange } from '../../allocation/address-range.ts';
import { parseAddress } from '../../objects/address.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { listAt, textAt } from '../../objects/read.ts';

/**
 * True for an address that the cluster gives away: one of a Node, of a Node's range for Pods, or of a ServiceCIDR.
 * What stands behind it is simulated; in the network of the machine it may be a real host.
 *
 * @param list all objects of a cluster-scoped resource.
 */
export function isSimulated(
  address: string,
  list: (group: string, plural: string) => readonly KubeObject[],
): boolean {
  const parsed = parseAddress(address);
  if (parsed === undefined) return false;
  const inRange = (cidr: unknown): boolean => {
    const range = typeof cidr === 'string' ? parseAddressRange(cidr) : undefined;
    return range?.contains(parsed.family, parsed.value) ?? false;
  };
  const isAddress = (listed: unknown): boolean =>
    parseAddress(textAt(listed, 'address'))?.canonical === parsed.canonical;
  return (
    list('networking.k8s.io', 'servicecidrs').some((cidr) => listAt(cidr, 'spec', 'cidrs').some(inRange)) ||
    list('', 'nodes').some(
      (node) =>
        listAt(node, 'spec', 'podCIDRs').some(inRange) || listAt(node, 'status', 'addresses').some(isAddress),
    )
  );
}
