import { parseAddress, type IPFamily } from '../../../objects/address.ts';
import type { Service, ServiceSpec } from '../../../objects/types/core.generated.ts';
import { isUnchangedPreferDualStack } from './families.ts';
import type { ServiceReservation } from './reservation.ts';
import { headlessIP } from './type-rules.ts';

/**
 * Allocates and releases the cluster IPs of a write (`pkg/registry/core/service/storage/alloc.go` allocClusterIPs,
 * updateClusterIPs, releaseClusterIPs). Families are set already.
 */

/** Allocates one address for each family: the requested ones, and any for the others. @throws {StatusError} */
export function allocateClusterIPs(service: Service, reservation: ServiceReservation): void {
  const { spec } = service;
  if (spec.type === 'ExternalName' || spec.clusterIPs?.[0] === headlessIP) return;
  const { ipFamilies = [] } = spec;
  // Errors print the list with an empty text for each address that is not allocated yet.
  const addresses = [...(spec.clusterIPs ?? [])];
  while (addresses.length < ipFamilies.length) addresses.push('');
  spec.clusterIPs = addresses;
  const found = ipFamilies.map((family, i) =>
    reservation.takeAddress(service, asFamily(family), addresses[i] ?? ''),
  );
  spec.clusterIPs = [...found, ...addresses.slice(found.length)];
  const [first] = found;
  if (first !== undefined) spec.clusterIP = first;
}

/** Allocates and releases what the change of type or families requires. @throws {StatusError} */
export function updateClusterIPs(service: Service, old: ServiceSpec, reservation: ServiceReservation): void {
  const { spec } = service;
  if (isUnchangedPreferDualStack(spec, old)) return;
  const external = spec.type === 'ExternalName';
  if (old.type === 'ExternalName') {
    if (!external) allocateClusterIPs(service, reservation);
    return;
  }
  const { clusterIPs: held = [], ipFamilies: before = [] } = old;
  if (held[0] === headlessIP) return;
  if (external) {
    before.forEach((_family, i) => reservation.giveAddress(held[i] ?? ''));
    return;
  }
  const { ipFamilies: now = [] } = spec;
  const [, second] = now;
  if (before.length === 1 && now.length === 2 && second !== undefined) {
    const { clusterIPs = [] } = spec;
    const addresses = clusterIPs.length < 2 ? [...clusterIPs, ''] : [...clusterIPs];
    spec.clusterIPs = addresses;
    addresses[1] = reservation.takeAddress(service, asFamily(second), addresses[1] ?? '');
  } else if (before.length === 2 && now.length === 1) {
    reservation.giveAddress(held[1] ?? '');
  }
}

/** Releases all addresses of a Service that is removed. */
export function releaseClusterIPs(spec: ServiceSpec, reservation: ServiceReservation): void {
  if (spec.type === 'ExternalName') return;
  for (const address of spec.clusterIPs ?? []) {
    if (address !== headlessIP && parseAddress(address) !== undefined) reservation.giveAddress(address);
  }
}

function asFamily(family: string): IPFamily {
  return family === 'IPv6' ? 'IPv6' : 'IPv4';
}
