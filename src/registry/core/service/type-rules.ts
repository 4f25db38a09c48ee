import type { Service, ServiceSpec } from '../../../objects/core.generated.ts';

/**
 * Which fields a Service's type, and what goes with it, make meaningful (`pkg/api/service/util.go`,
 * `pkg/registry/core/service/storage`). A Service is a union with `type` as the discriminator.
 */

/** The value of `clusterIP` that asks for no address. */
export const none = 'None';

/** Any type but ExternalName has `clusterIP`, even if it is `None`. */
export function needsClusterIP(spec: ServiceSpec): boolean {
  return spec.type !== 'ExternalName';
}

/** NodePort and LoadBalancer have node ports, if only explicit ones. */
export function mayHaveNodePorts(spec: ServiceSpec): boolean {
  return spec.type === 'NodePort' || spec.type === 'LoadBalancer';
}

/** Ports without a node port get one. */
export function allocatesNodePorts(spec: ServiceSpec): boolean {
  if (spec.type === 'LoadBalancer') return spec.allocateLoadBalancerNodePorts !== false;
  return spec.type === 'NodePort';
}

/** LoadBalancer with the external policy Local: the only one with a `healthCheckNodePort`. */
export function needsHealthCheck(spec: ServiceSpec): boolean {
  return spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local';
}

/** Reachable from outside of the cluster: the only ones with an `externalTrafficPolicy`. */
export function externallyAccessible(spec: ServiceSpec): boolean {
  if (spec.type === 'LoadBalancer' || spec.type === 'NodePort') return true;
  return spec.type === 'ClusterIP' && (spec.externalIPs?.length ?? 0) > 0;
}

/** `clusterIPs` is exactly `["None"]`. */
export function isHeadless(spec: ServiceSpec): boolean {
  return spec.clusterIPs?.length === 1 && spec.clusterIPs[0] === none;
}

/** A missing or empty selector: somebody else writes the Service's endpoints. */
export function hasNoSelector(spec: ServiceSpec): boolean {
  if (spec.selector === undefined) return true;
  for (const _ in spec.selector) return false;
  return true;
}

/** Two lists of addresses or families are equal; a missing one is empty. */
export function sameList(a: readonly string[] = [], b: readonly string[] = []): boolean {
  return a.length === b.length && a.every((item, i) => item === b[i]);
}

/** The node ports that are set, in port order, repeated when ports share one. */
export function nodePortsOf(spec: ServiceSpec): number[] {
  const ports: number[] = [];
  for (const { nodePort } of spec.ports ?? []) {
    if (nodePort !== undefined && nodePort !== 0) ports.push(nodePort);
  }
  return ports;
}

/** What a 422 of this Service is about. */
export function subject(service: Service): { group: string; kind: string; name: string } {
  return { group: '', kind: 'Service', name: service.metadata.name ?? '' };
}
