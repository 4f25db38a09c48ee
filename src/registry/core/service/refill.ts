import type { ServiceSpec } from '../../../objects/types/core.generated.ts';
import { allocatesNodePorts, needsClusterIP, needsHealthCheck, nodePortsOf, sameList } from './type-rules.ts';

/**
 * Completes the linked and allocated fields of a spec before allocation (`pkg/registry/core/service/storage/storage.go`
 * patchAllocatedValues, normalizeClusterIPs).
 */

/** Sets the plural of a new Service that has only the singular. */
export function normalizeNewClusterIPs(spec: ServiceSpec): void {
  const { clusterIP, clusterIPs } = spec;
  if (clusterIP === undefined || clusterIP === '') return;
  if (clusterIPs === undefined || clusterIPs.length === 0) spec.clusterIPs = [clusterIP];
}

/**
 * Restores allocated values that the client left out, so that a manifest without them can be applied to an existing
 * Service. Node ports follow the name of their port.
 */
export function refillAllocatedValues(spec: ServiceSpec, old: ServiceSpec): void {
  if (needsClusterIP(old) && needsClusterIP(spec)) {
    if (isUnset(spec.clusterIP) && old.clusterIP !== undefined) spec.clusterIP = old.clusterIP;
    if (isUnset(spec.clusterIPs) && old.clusterIPs !== undefined) spec.clusterIPs = [...old.clusterIPs];
  }
  if (allocatesNodePorts(old) && allocatesNodePorts(spec)) refillNodePorts(spec, old);
  if (needsHealthCheck(old) && needsHealthCheck(spec) && (spec.healthCheckNodePort ?? 0) === 0) {
    if (old.healthCheckNodePort !== undefined) spec.healthCheckNodePort = old.healthCheckNodePort;
  }
}

function refillNodePorts(spec: ServiceSpec, old: ServiceSpec): void {
  const oldPorts = old.ports ?? [];
  const before = nodePortsOf(old);
  const kept = new Set(nodePortsOf(spec).filter((port) => before.includes(port)));
  for (const port of spec.ports ?? []) {
    if ((port.nodePort ?? 0) !== 0) continue;
    const namesake = oldPorts.findLast((candidate) => (candidate.name ?? '') === (port.name ?? ''));
    const number = namesake?.nodePort ?? 0;
    if (number !== 0 && !kept.has(number)) port.nodePort = number;
  }
}

/** Sets the plural from the singular in an update by a client that has only the singular. */
export function normalizeClusterIPs(spec: ServiceSpec, old: ServiceSpec): void {
  const before = old.clusterIP ?? '';
  const now = spec.clusterIP ?? '';
  if (before === now) {
    if (isUnset(spec.clusterIPs) && !isUnset(old.clusterIPs)) spec.clusterIPs = [...(old.clusterIPs ?? [])];
    return;
  }
  if (!sameList(old.clusterIPs, spec.clusterIPs)) return;
  if (now === '') delete spec.clusterIPs;
  else spec.clusterIPs = [now];
}

function isUnset(value: string | readonly string[] | undefined): boolean {
  return value === undefined || value.length === 0;
}
