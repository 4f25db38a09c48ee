import { parseAddress, type IPFamily } from '../../../objects/address.ts';
import type { Service, ServiceSpec, ServicePort } from '../../../objects/types/core.generated.ts';
import { isUnchangedPreferDualStack } from './families.ts';
import type { ServiceReservation } from './reservation.ts';
import {
  headlessIP,
  allocatesNodePorts,
  mayHaveNodePorts,
  needsHealthCheck,
  nodePortsOf,
  subject,
} from './type-rules.ts';
import { AllocationError } from '../../../allocation/address-range.ts';
import { internalError, plainError } from '../../../objects/status.ts';
import { invalid, invalidObject } from '../../validation/field-errors.ts';

/**
 * - Allocates and releases the cluster IPs of a write (`pkg/registry/core/service/storage/alloc.go` allocClusterIPs,
 *   updateClusterIPs, releaseClusterIPs). Families are set already.
 * - Allocates and releases the node ports of a write (`pkg/registry/core/service/storage/alloc.go` txnAllocNodePorts,
 *   txnUpdateNodePorts, releaseAllocatedResources).
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
    before.forEach((_family, i) => reservation.releaseAddress(held[i] ?? ''));
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
    reservation.releaseAddress(held[1] ?? '');
  }
}

/** Releases all addresses of a Service that is removed. */
export function releaseClusterIPs(spec: ServiceSpec, reservation: ServiceReservation): void {
  if (spec.type === 'ExternalName') return;
  for (const address of spec.clusterIPs ?? []) {
    if (address !== headlessIP && parseAddress(address) !== undefined) reservation.releaseAddress(address);
  }
}

function asFamily(family: string): IPFamily {
  return family === 'IPv6' ? 'IPv6' : 'IPv4';
}

/** Allocates the node ports of a new Service, and its health check node port. @throws {StatusError} */
export function allocateNodePorts(service: Service, reservation: ServiceReservation): void {
  if (mayHaveNodePorts(service.spec)) allocateSharedPorts(service, reservation);
  if (needsHealthCheck(service.spec)) allocateHealthCheckPort(service.spec, reservation);
}

/**
 * Ports with the same number (53 on TCP and UDP) share one node port: a requested one, or an allocated one. Two
 * different requests for one number are both fulfilled.
 */
function allocateSharedPorts(service: Service, reservation: ServiceReservation): void {
  const { ports = [] } = service.spec;
  const automatic = allocatesNodePorts(service.spec);
  const byPort = new Map<number, number>();
  const requestedFor = new Map<number, number>();
  for (const { port, nodePort = 0 } of ports.toReversed())
    if (nodePort !== 0) requestedFor.set(port, nodePort);
  ports.forEach((port, i) => {
    const { nodePort: wanted = 0 } = port;
    if (wanted === 0 && !automatic) return;
    const shared = byPort.get(port.port);
    if (shared !== undefined) {
      if (wanted === 0) port.nodePort = shared;
      else if (wanted !== shared) allocateWanted(service, i, wanted, reservation);
      return;
    }
    const requested = requestedFor.get(port.port);
    if (requested === undefined) port.nodePort = allocateAny(reservation);
    else {
      allocateWanted(service, i, requested, reservation);
      port.nodePort = requested;
    }
    byPort.set(port.port, port.nodePort);
  });
}

/** Allocates new node ports of an update and releases removed ones. @throws {StatusError} */
export function updateNodePorts(service: Service, old: ServiceSpec, reservation: ServiceReservation): void {
  const { spec } = service;
  if (mayHaveNodePorts(old) && (spec.type === 'ExternalName' || spec.type === 'ClusterIP')) {
    for (const port of nodePortsOf(old)) reservation.releasePort(port);
  }
  if (mayHaveNodePorts(spec)) allocateNewPorts(service, old, reservation);
  const needed = needsHealthCheck(old);
  const needs = needsHealthCheck(spec);
  if (needs && !needed) allocateHealthCheckPort(spec, reservation);
  if (needed && !needs) reservation.releasePort(old.healthCheckNodePort ?? 0);
}

/** Unlike in a create, each port without a node port gets one of its own. */
function allocateNewPorts(service: Service, old: ServiceSpec, reservation: ServiceReservation): void {
  const { ports = [] } = service.spec;
  const automatic = allocatesNodePorts(service.spec);
  const before = nodePortsOf(old);
  const now = new Set<string>();
  const taken = new Set<number>();
  ports.forEach((port, i) => {
    const { nodePort: wanted = 0 } = port;
    if (wanted === 0) {
      if (!automatic) return;
      port.nodePort = allocateAny(reservation);
    } else if (!before.includes(wanted) && !taken.has(wanted)) {
      allocateWanted(service, i, wanted, reservation);
      taken.add(wanted);
    }
    const key = printedPort(port);
    if (now.has(key)) throw plainError(`duplicate nodePort: ${key}`);
    now.add(key);
  });
  const kept = nodePortsOf(service.spec);
  for (const port of before) if (!kept.includes(port)) reservation.releasePort(port);
}

/**
 * Releases all node ports of a Service that is removed. Those of an ExternalName were never allocated: as in
 * kube-apiserver, its removal frees the number even if another Service has it.
 */
export function releaseNodePorts(spec: ServiceSpec, reservation: ServiceReservation): void {
  for (const port of nodePortsOf(spec)) reservation.releasePort(port);
  if (needsHealthCheck(spec)) reservation.releasePort(spec.healthCheckNodePort ?? 0);
}

function allocateHealthCheckPort(spec: ServiceSpec, reservation: ServiceReservation): void {
  const { healthCheckNodePort: wanted = 0 } = spec;
  try {
    if (wanted === 0) spec.healthCheckNodePort = reservation.allocateAnyPort();
    else reservation.allocatePort(wanted);
  } catch (error) {
    if (!(error instanceof AllocationError)) throw error;
    const what = wanted === 0 ? 'a' : 'requested';
    throw internalError(`failed to allocate ${what} HealthCheck NodePort ${wanted}: ${error.message}`, error);
  }
}

function allocateWanted(
  service: Service,
  index: number,
  port: number,
  reservation: ServiceReservation,
): void {
  try {
    reservation.allocatePort(port);
  } catch (error) {
    if (!(error instanceof AllocationError)) throw error;
    const fault = invalid(`spec.ports[${index}].nodePort`, port, error.message);
    throw invalidObject(subject(service), [fault]);
  }
}

function allocateAny(reservation: ServiceReservation): number {
  try {
    return reservation.allocateAnyPort();
  } catch (error) {
    if (!(error instanceof AllocationError)) throw error;
    throw internalError(`failed to allocate a nodePort: ${error.message}`, error);
  }
}

/** Protocol and node port as Go prints the struct of both. */
function printedPort({ protocol = '', nodePort = 0 }: ServicePort): string {
  return `{${protocol} ${nodePort}}`;
}
