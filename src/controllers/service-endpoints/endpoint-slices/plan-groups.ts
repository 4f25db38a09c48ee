/** From Pods to endpoints, grouped by the ports that they serve. Pure. */
import { isPodReady, isPodTerminating } from '../../../objects/pods.ts';
import type { IPFamily } from '../../../objects/address.ts';
import type { Pod, Service } from '../../../objects/types/core.generated.ts';
import type { Endpoint, EndpointPort } from '../../../objects/types/discovery.generated.ts';
import { canonicalIP, mayBackService, podReference, publishedHostname } from '../pod.ts';
import { portsKey, resolvePorts } from '../target-port.ts';

/** The parts of a Node that a plan reads: that it exists, and its zone. */
export interface NodePlace {
  zone?: string;
}

/** The endpoints that serve one list of ports, by {@link endpointKey}. */
export interface PortGroup {
  ports: EndpointPort[];
  endpoints: Map<string, Endpoint>;
}

/** All groups of one address family, by {@link portsKey}, and the Pods that are left out. */
export interface Groups {
  byPorts: Map<string, PortGroup>;
  /** Pods whose Node is not known. */
  withoutNode: Pod[];
}

/**
 * Groups the Pods of a Service. Terminating Pods stay in. A Pod whose Node does not exist is left out, unless the
 * Service publishes addresses that are not ready; its group exists nevertheless.
 */
export function groupPods(
  service: Service,
  pods: readonly Pod[],
  family: IPFamily,
  placeOf: (nodeName: string) => NodePlace | undefined,
): Groups {
  const byPorts = new Map<string, PortGroup>();
  const withoutNode: Pod[] = [];
  for (const pod of pods) {
    if (!mayBackService(pod)) continue;
    const ports = resolvePorts(service, pod);
    const key = portsKey(ports);
    let group = byPorts.get(key);
    if (group === undefined) {
      group = { ports, endpoints: new Map() };
      byPorts.set(key, group);
    }
    const place = placeOf(pod.spec.nodeName ?? '');
    if (place === undefined && service.spec.publishNotReadyAddresses !== true) {
      withoutNode.push(pod);
      continue;
    }
    const endpoint = toEndpoint(service, pod, family, place);
    if (endpoint.addresses.length > 0) group.endpoints.set(endpointKey(endpoint), endpoint);
  }
  return { byPorts, withoutNode };
}

function toEndpoint(service: Service, pod: Pod, family: IPFamily, place: NodePlace | undefined): Endpoint {
  const serving = isPodReady(pod);
  const terminating = isPodTerminating(pod);
  const hostname = publishedHostname(pod, service);
  const { nodeName } = pod.spec;
  const addresses: string[] = [];
  for (const { ip } of pod.status.podIPs ?? []) {
    const parsed = canonicalIP(ip);
    if (parsed?.family === family) addresses.push(parsed.ip);
  }
  return {
    addresses,
    conditions: {
      ready: service.spec.publishNotReadyAddresses === true || (serving && !terminating),
      serving,
      terminating,
    },
    ...(hostname === undefined ? {} : { hostname }),
    targetRef: podReference(pod),
    ...(nodeName === undefined || nodeName === '' ? {} : { nodeName }),
    ...(place?.zone === undefined || place.zone === '' ? {} : { zone: place.zone }),
  };
}

/** The identity of an endpoint: addresses, hostname and target. Other fields may change in place. */
export function endpointKey(endpoint: Endpoint): string {
  const { addresses, hostname, targetRef } = endpoint;
  const text = addresses.length === 1 ? (addresses[0] ?? '') : [...addresses].sort().join(',');
  return `${text}\t${hostname ?? ''}\t${targetRef?.namespace ?? ''}\t${targetRef?.name ?? ''}`;
}

/** True when two endpoints with the same key are equal, except for hints, which are planned later. */
export function sameEndpoint(a: Endpoint, b: Endpoint): boolean {
  return (
    a.nodeName === b.nodeName &&
    a.zone === b.zone &&
    a.conditions?.ready === b.conditions?.ready &&
    a.conditions?.serving === b.conditions?.serving &&
    a.conditions?.terminating === b.conditions?.terminating &&
    a.targetRef?.kind === b.targetRef?.kind &&
    a.targetRef?.uid === b.targetRef?.uid &&
    a.targetRef?.apiVersion === b.targetRef?.apiVersion &&
    a.targetRef?.fieldPath === b.targetRef?.fieldPath
  );
}
