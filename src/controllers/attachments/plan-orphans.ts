/** Addresses of IPPools that no Pod has (whereabouts `pkg/reconciler`). */
import { readEntries, type PoolEntry } from '../../allocation/whereabouts-pool.ts';
import { type AddressRange, rangeOfCidr } from '../../allocation/address-range.ts';
import { poolName } from '../../allocation/whereabouts-range.ts';
import { asksForNetworks } from '../../network/attachments/attachments.ts';
import { isAttached, type NetworkStatus, networkStatusOf } from '../../network/attachments/network-status.ts';
import { formatAddress, parseAddress, parseCidr } from '../../objects/address.ts';
import { conditionOf } from '../../objects/conditions.ts';
import { isFinished } from '../../objects/pods.ts';
import type { IPPool, OverlappingRangeIPReservation } from '../../objects/types/attachments.ts';
import type { Pod } from '../../objects/types/core.generated.ts';

/** The addresses that the offsets of a pool count; undefined where its range is no CIDR. */
export function networkOf({ spec }: IPPool): AddressRange | undefined {
  const cidr = parseCidr(spec.range);
  return cidr === undefined ? undefined : rangeOfCidr(cidr);
}

/** The entries of a pool; none where its range is no CIDR. */
export function entriesOf(pool: IPPool): readonly PoolEntry[] {
  const network = networkOf(pool);
  return network === undefined ? [] : readEntries(network, pool.spec.allocations);
}

/** The network's name: the part of the pool's name before the range; "" without one. */
export function networkNameOf({ metadata, spec }: IPPool): string {
  const { name = '' } = metadata;
  const own = poolName(spec.range);
  return name.endsWith(`-${own}`) ? name.slice(0, -own.length - 1) : '';
}

/** The canonical text of an entry's address. */
export function addressText(pool: IPPool, { value }: PoolEntry): string {
  return formatAddress(networkOf(pool)?.family ?? 'IPv4', value);
}

/** Whether a Pod has an address, by its status and annotations. */
export type Holding =
  /** It has. */
  | 'held'
  /** It is not attached yet: the annotation may get the address soon. */
  | 'pending'
  | 'orphaned';

/**
 * @param pod of the entry; undefined: there is none.
 * @param ifname the interface that the address is of; "": in entries of old versions, of any interface.
 * @param address canonical.
 */
export function holdingOf(pod: Pod | undefined, ifname: string, address: string): Holding {
  return holding(pod, ifname, (ip) => ip === address);
}

/**
 * The same of a reservation, whose name may begin with that of a network. (whereabouts compares the whole name, so that
 * reservations of named networks look orphaned to it.)
 */
export function reservationHolding(
  pod: Pod | undefined,
  { metadata, spec }: OverlappingRangeIPReservation,
): Holding {
  const { name = '' } = metadata;
  return holding(pod, spec.ifname ?? '', (ip) => {
    const own = poolName(ip);
    return name === own || name.endsWith(`-${own}`);
  });
}

/** (whereabouts looks at the addresses of all interfaces: what the pool of another range gave stays.) */
function holding(pod: Pod | undefined, ifname: string, matches: (ip: string) => boolean): Holding {
  if (pod === undefined || isDisrupted(pod)) return 'orphaned';
  const isOf = ({ interface: own = ifname, default: isDefault }: NetworkStatus): boolean =>
    isDefault !== true && (ifname === '' || own === ifname);
  const ips = (networkStatusOf(pod) ?? []).flatMap((each) => (isOf(each) ? (each.ips ?? []) : []));
  if (ips.some((ip) => matches(parseAddress(ip)?.canonical ?? ip))) return 'held';
  const isAwaited = asksForNetworks(pod) && !isAttached(pod) && !isFinished(pod);
  return pod.status.phase === 'Pending' || isAwaited ? 'pending' : 'orphaned';
}

/** Its node is gone, and the taint manager has deleted it. */
function isDisrupted({ status }: Pod): boolean {
  const condition = conditionOf(status.conditions, 'DisruptionTarget');
  return condition?.status === 'True' && condition.reason === 'DeletionByTaintManager';
}
