import {
  addressPools,
  egressFirewalls,
  egressIPs,
  egressQoSes,
  endpointSlices,
  gatewayClasses,
  gateways,
  grpcRoutes,
  httpRoutes,
  ingressClasses,
  ingresses,
  inGroup,
  ipAddresses,
  leases,
  listenerSets,
  namespaces,
  networkAttachmentDefinitions,
  networkPolicies,
  nodes,
  pods,
  referenceGrants,
  type ResourceType,
  routes,
  serviceCIDRs,
  services,
  tlsRoutes,
} from '../client/resources.ts';
import type { KubeObject } from '../objects/meta.ts';
import type { Container, Pod } from '../objects/types/core.generated.ts';

/** What is watched to show a cluster, and the fields of it that a view or a planner reads. */

/** Of objects that a server may not have: there is nothing of them then. */
const optional = <T extends KubeObject>(resource: ResourceType<T>): ResourceType<T> => ({
  ...resource,
  isOptional: true,
});

export const watched = {
  services,
  slices: endpointSlices,
  pods,
  nodes,
  namespaces,
  policies: networkPolicies,
  events: inGroup('')('Event', 'events', ['involvedObject']),
  ingresses,
  ingressClasses,
  serviceCIDRs,
  ipAddresses: optional(ipAddresses),
  pools: optional(addressPools),
  leases,
  egressIPs,
  firewalls: egressFirewalls,
  egressQoSes,
  attachments: networkAttachmentDefinitions,
  routes,
  ...{ gatewayClasses, gateways, listenerSets, httpRoutes, grpcRoutes, tlsRoutes },
  grants: referenceGrants,
} as const;

const applied = 'kubectl.kubernetes.io/last-applied-configuration';

/** Without what `kubectl apply` remembers, which is the object once more. */
export function withoutApplied<T extends KubeObject>(object: T): T {
  const { annotations } = object.metadata;
  if (annotations?.[applied] === undefined) return object;
  const { [applied]: _, ...rest } = annotations;
  return { ...object, metadata: { ...object.metadata, annotations: rest } };
}

/** Without environments, volumes, commands and all else that no view shows. */
export function shownPod(given: Pod): Pod {
  const pod = withoutApplied(given);
  const { spec, status } = pod;
  const { nodeName, hostNetwork, hostname, subdomain, dnsPolicy, dnsConfig, setHostnameAsFQDN } = spec;
  const { phase, podIP, podIPs, conditions, containerStatuses, initContainerStatuses, reason, message } =
    status;
  return {
    ...pod,
    spec: {
      ...defined({ nodeName, hostNetwork, hostname, subdomain, dnsPolicy, dnsConfig, setHostnameAsFQDN }),
      containers: (spec.containers ?? []).map(shownContainer),
      ...(spec.initContainers === undefined
        ? {}
        : { initContainers: spec.initContainers.map(shownContainer) }),
    },
    status: defined({
      ...{ phase, podIP, podIPs, conditions, reason, message },
      ...{ containerStatuses, initContainerStatuses },
      ...{ hostIP: status.hostIP, hostIPs: status.hostIPs },
    }),
  };
}

function shownContainer({ name, image, ports, restartPolicy }: Container): Container {
  return { name, ...defined({ image, ports, restartPolicy }) };
}

/** Members without those that are undefined. */
function defined<T extends object>(members: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const kept: { [Name in keyof T]?: Exclude<T[Name], undefined> } = {};
  for (const name in members) {
    const value = members[name];
    if (isDefined(value)) kept[name] = value;
  }
  return kept;
}

function isDefined<T>(value: T): value is Exclude<T, undefined> {
  return value !== undefined;
}
