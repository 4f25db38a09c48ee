import type { Lease } from '../objects/types/coordination.generated.ts';
import type { Endpoints, Namespace, Node, Pod, Secret, Service } from '../objects/types/core.generated.ts';
import type { EndpointSlice } from '../objects/types/discovery.generated.ts';
import type {
  Ingress,
  IngressClass,
  IPAddress,
  NetworkPolicy,
  ServiceCIDR,
} from '../objects/types/networking.generated.ts';
import { completeSlice, isSliceEndpoint, isEndpointSubset } from '../objects/endpoints.ts';
import { at } from '../objects/read.ts';
import { isRecord, isStringList } from '../objects/json.ts';
import type { KubeObject } from '../objects/meta.ts';
import type {
  IPPool,
  NetworkAttachmentDefinition,
  OverlappingRangeIPReservation,
} from '../objects/types/attachments.ts';
import type { PodNetworkConnectivityCheck } from '../objects/types/connectivity-check.ts';
import type { CloudPrivateIPConfig } from '../objects/types/cloud-network.ts';
import type { EgressRouter } from '../objects/types/egress-router.ts';
import type { EgressFirewall, EgressIP, EgressQoS } from '../objects/types/ovn.ts';
import type { Route } from '../objects/types/route.generated.ts';
import type { AddressPool, BGPPeer } from '../objects/types/servicenet.ts';

/** A resource of the API and the type of its objects. */
export interface ResourceType<T extends KubeObject = KubeObject> {
  /** "" for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Adds outer members that some servers leave out; called before {@link isObject}. */
  readonly complete?: (object: KubeObject) => void;
  /** True for objects with the outer shape of T. Others that a server sends are dropped and counted. */
  readonly isObject: (object: KubeObject) => object is T;
  /** Advice for operators whose server does not serve a custom resource. */
  readonly definedBy?: string;
  /** True for resources that older servers do not have: there they count as empty. */
  readonly isOptional?: boolean;
}

/** True for an object with a name and metadata of the right outer shape: what caches and queues rely on. */
export function isKubeObject(value: unknown): value is KubeObject {
  return isRecord(value) && isRecord(value['metadata']) && typeof value['metadata']['name'] === 'string';
}

/** True when the members are objects: an API server always sends `spec` and `status`. */
function has(object: KubeObject, ...members: readonly string[]): boolean {
  return members.every((member) => isRecord(Reflect.get(object, member)));
}

function completeStatus(object: KubeObject): void {
  if (Reflect.get(object, 'status') === undefined) Reflect.set(object, 'status', {});
}

/** `services`, `endpointslices.discovery.k8s.io`: for logs and metrics. */
export function resourceName(resource: ResourceType): string {
  return resource.group === '' ? resource.plural : `${resource.plural}.${resource.group}`;
}

/** `v1`, `discovery.k8s.io/v1`. */
export function apiVersionOf(resource: ResourceType): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

export const services: ResourceType<Service> = {
  group: '',
  version: 'v1',
  plural: 'services',
  kind: 'Service',
  namespaced: true,
  // For servers that send no status of Services, or an empty one.
  complete: completeStatus,
  isObject: (object): object is Service => has(object, 'spec', 'status'),
};

export const endpoints: ResourceType<Endpoints> = {
  group: '',
  version: 'v1',
  plural: 'endpoints',
  kind: 'Endpoints',
  namespaced: true,
  isObject: (object): object is Endpoints => {
    const subsets: unknown = Reflect.get(object, 'subsets');
    return subsets === undefined || (Array.isArray(subsets) && subsets.every(isEndpointSubset));
  },
};

export const endpointSlices: ResourceType<EndpointSlice> = {
  group: 'discovery.k8s.io',
  version: 'v1',
  plural: 'endpointslices',
  kind: 'EndpointSlice',
  namespaced: true,
  // For servers that store objects as they were sent, except for members that are null or empty.
  complete: completeSlice,
  isObject: (object): object is EndpointSlice => {
    const list: unknown = Reflect.get(object, 'endpoints');
    const ports: unknown = Reflect.get(object, 'ports') ?? null;
    return (
      (list === null || (Array.isArray(list) && list.every(isSliceEndpoint))) &&
      (ports === null || (Array.isArray(ports) && ports.every(isRecord)))
    );
  },
};

export const pods: ResourceType<Pod> = {
  group: '',
  version: 'v1',
  plural: 'pods',
  kind: 'Pod',
  namespaced: true,
  isObject: (object): object is Pod => has(object, 'spec', 'status'),
};

export const nodes: ResourceType<Node> = {
  group: '',
  version: 'v1',
  plural: 'nodes',
  kind: 'Node',
  namespaced: false,
  isObject: (object): object is Node => has(object, 'spec', 'status'),
};

export const namespaces: ResourceType<Namespace> = {
  group: '',
  version: 'v1',
  plural: 'namespaces',
  kind: 'Namespace',
  namespaced: false,
  isObject: (object): object is Namespace => has(object, 'spec', 'status'),
};

export const leases: ResourceType<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
  isObject: (object): object is Lease => has(object, 'spec'),
};

export const ipAddresses: ResourceType<IPAddress> = {
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'ipaddresses',
  kind: 'IPAddress',
  namespaced: false,
  isObject: (object): object is IPAddress => has(object, 'spec'),
};

export const serviceCIDRs: ResourceType<ServiceCIDR> = {
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'servicecidrs',
  kind: 'ServiceCIDR',
  namespaced: false,
  isOptional: true, // v1 since Kubernetes 1.33
  isObject: (object): object is ServiceCIDR => has(object, 'spec', 'status'),
};

export const addressPools: ResourceType<AddressPool> = {
  group: 'servicenet.dev',
  version: 'v1alpha1',
  plural: 'addresspools',
  kind: 'AddressPool',
  namespaced: false,
  definedBy: 'apply deploy/crds',
  // The CRD's schema checks the rest; readers handle what an older schema accepted.
  isObject: (object): object is AddressPool => has(object, 'spec'),
};

export const bgpPeers: ResourceType<BGPPeer> = {
  group: 'servicenet.dev',
  version: 'v1alpha1',
  plural: 'bgppeers',
  kind: 'BGPPeer',
  namespaced: false,
  definedBy: 'apply deploy/crds',
  isObject: (object): object is BGPPeer => has(object, 'spec'),
};

export const networkPolicies: ResourceType<NetworkPolicy> = {
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'networkpolicies',
  kind: 'NetworkPolicy',
  namespaced: true,
  isObject: (object): object is NetworkPolicy => has(object, 'spec'),
};

export const egressFirewalls: ResourceType<EgressFirewall> = {
  group: 'k8s.ovn.org',
  version: 'v1',
  plural: 'egressfirewalls',
  kind: 'EgressFirewall',
  namespaced: true,
  isOptional: true, // of OVN-Kubernetes
  isObject: (object): object is EgressFirewall => has(object, 'spec'),
};

export const egressIPs: ResourceType<EgressIP> = {
  group: 'k8s.ovn.org',
  version: 'v1',
  plural: 'egressips',
  kind: 'EgressIP',
  namespaced: false,
  isOptional: true, // of OVN-Kubernetes
  isObject: (object): object is EgressIP => isStringList(at(object, 'spec', 'egressIPs')),
};

export const egressQoSes: ResourceType<EgressQoS> = {
  group: 'k8s.ovn.org',
  version: 'v1',
  plural: 'egressqoses',
  kind: 'EgressQoS',
  namespaced: true,
  isOptional: true, // of OVN-Kubernetes
  isObject: (object): object is EgressQoS => Array.isArray(at(object, 'spec', 'egress')),
};

export const cloudPrivateIPConfigs: ResourceType<CloudPrivateIPConfig> = {
  group: 'cloud.network.openshift.io',
  version: 'v1',
  plural: 'cloudprivateipconfigs',
  kind: 'CloudPrivateIPConfig',
  namespaced: false,
  isOptional: true, // of OpenShift
  isObject: (object): object is CloudPrivateIPConfig => has(object, 'spec'),
};

export const egressRouters: ResourceType<EgressRouter> = {
  group: 'network.operator.openshift.io',
  version: 'v1',
  plural: 'egressrouters',
  kind: 'EgressRouter',
  namespaced: true,
  isOptional: true, // of OpenShift
  isObject: (object): object is EgressRouter => Array.isArray(at(object, 'spec', 'addresses')),
};

export const connectivityChecks: ResourceType<PodNetworkConnectivityCheck> = {
  group: 'controlplane.operator.openshift.io',
  version: 'v1alpha1',
  plural: 'podnetworkconnectivitychecks',
  kind: 'PodNetworkConnectivityCheck',
  namespaced: true,
  isOptional: true, // of OpenShift
  isObject: (object): object is PodNetworkConnectivityCheck => has(object, 'spec'),
};

export const networkAttachmentDefinitions: ResourceType<NetworkAttachmentDefinition> = {
  group: 'k8s.cni.cncf.io',
  version: 'v1',
  plural: 'network-attachment-definitions',
  kind: 'NetworkAttachmentDefinition',
  namespaced: true,
  isOptional: true, // of multus
  isObject: (object): object is NetworkAttachmentDefinition => isKubeObject(object),
};

export const ipPools: ResourceType<IPPool> = {
  group: 'whereabouts.cni.cncf.io',
  version: 'v1alpha1',
  plural: 'ippools',
  kind: 'IPPool',
  namespaced: true,
  isOptional: true, // of whereabouts
  isObject: (object): object is IPPool =>
    typeof at(object, 'spec', 'range') === 'string' && isRecord(at(object, 'spec', 'allocations')),
};

export const overlappingRangeIPReservations: ResourceType<OverlappingRangeIPReservation> = {
  group: 'whereabouts.cni.cncf.io',
  version: 'v1alpha1',
  plural: 'overlappingrangeipreservations',
  kind: 'OverlappingRangeIPReservation',
  namespaced: true,
  isOptional: true, // of whereabouts
  isObject: (object): object is OverlappingRangeIPReservation => has(object, 'spec'),
};

export const ingresses: ResourceType<Ingress> = {
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'ingresses',
  kind: 'Ingress',
  namespaced: true,
  // For servers that send no status of Ingresses.
  complete: completeStatus,
  isObject: (object): object is Ingress => has(object, 'spec', 'status'),
};

export const ingressClasses: ResourceType<IngressClass> = {
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'ingressclasses',
  kind: 'IngressClass',
  namespaced: false,
  isObject: (object): object is IngressClass => has(object, 'spec'),
};

export const routes: ResourceType<Route> = {
  group: 'route.openshift.io',
  version: 'v1',
  plural: 'routes',
  kind: 'Route',
  namespaced: true,
  isOptional: true, // OpenShift has it.
  complete: completeStatus,
  isObject: (object): object is Route => {
    const to: unknown = isRecord(object) && isRecord(object['spec']) ? object['spec']['to'] : undefined;
    return has(object, 'spec', 'status') && isRecord(to) && typeof to['name'] === 'string';
  },
};

export const secrets: ResourceType<Secret> = {
  group: '',
  version: 'v1',
  plural: 'secrets',
  kind: 'Secret',
  namespaced: true,
  isObject: (object): object is Secret => isKubeObject(object),
};
