import type { Service, ServiceSpec } from '../../../objects/types/core.generated.ts';

/**
 * The fields that a Service's type and related fields allow (`pkg/api/service/util.go`,
 * `pkg/registry/core/service/storage`). A Service is a union with `type` as the discriminator.
 */

/** The value of `clusterIP` for headless Services. */
export const headlessIP = 'None';

/** Any type but ExternalName has `clusterIP`, even if it is `None`. */
export function needsClusterIP(spec: ServiceSpec): boolean {
  return spec.type !== 'ExternalName';
}

/** NodePort and LoadBalancer can have node ports. */
export function mayHaveNodePorts(spec: ServiceSpec): boolean {
  return spec.type === 'NodePort' || spec.type === 'LoadBalancer';
}

/** Types for which missing node ports are allocated. */
export function allocatesNodePorts(spec: ServiceSpec): boolean {
  if (spec.type === 'LoadBalancer') return spec.allocateLoadBalancerNodePorts !== false;
  return spec.type === 'NodePort';
}

/** LoadBalancer with the external policy Local: the only one with a `healthCheckNodePort`. */
export function needsHealthCheck(spec: ServiceSpec): boolean {
  return spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local';
}

/** Externally reachable types: the only ones with an `externalTrafficPolicy`. */
export function externallyAccessible(spec: ServiceSpec): boolean {
  if (spec.type === 'LoadBalancer' || spec.type === 'NodePort') return true;
  return spec.type === 'ClusterIP' && (spec.externalIPs?.length ?? 0) > 0;
}

/** `clusterIPs` is exactly `["None"]`. */
export function hasHeadlessIPs(spec: ServiceSpec): boolean {
  return spec.clusterIPs?.length === 1 && spec.clusterIPs[0] === headlessIP;
}

/** A missing or empty selector: another client writes the Service's endpoints. */
export function hasNoSelector(spec: ServiceSpec): boolean {
  if (spec.selector === undefined) return true;
  for (const _ in spec.selector) return false;
  return true;
}

/** Two lists of addresses or families are equal; a missing one is empty. */
export function sameList(a: readonly string[] = [], b: readonly string[] = []): boolean {
  return a.length === b.length && a.every((item, i) => item === b[i]);
}

/** The node ports that are set, in the order of ports, repeated when ports share one. */
export function nodePortsOf(spec: ServiceSpec): number[] {
  const ports: number[] = [];
  for (const { nodePort } of spec.ports ?? []) {
    if (nodePort !== undefined && nodePort !== 0) ports.push(nodePort);
  }
  return ports;
}

/** The object of a 422. */
export function subject(service: Service): { group: string; kind: string; name: string } {
  return { group: '', kind: 'Service', name: service.metadata.name ?? '' };
}
