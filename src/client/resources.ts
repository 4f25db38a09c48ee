import type { CustomResourceDefinition } from '../objects/types/apiextensions.generated.ts';
import type { Lease } from '../objects/types/coordination.generated.ts';
import type {
  Endpoints,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  Secret,
  Service,
  ConfigMap,
  ServiceAccount,
  ReplicationController,
} from '../objects/types/core.generated.ts';
import type { EndpointSlice } from '../objects/types/discovery.generated.ts';
import type {
  Ingress,
  IngressClass,
  IPAddress,
  NetworkPolicy,
  ServiceCIDR,
} from '../objects/types/networking.generated.ts';
import { completeSlice, isSliceEndpoint, isEndpointSubset } from '../objects/endpoints.ts';
import { at, isRecord, isStringList, isStringMap } from '../objects/json.ts';
import { isKubeObject, type KubeObject } from '../objects/meta.ts';
import type {
  IPPool,
  NetworkAttachmentDefinition,
  OverlappingRangeIPReservation,
  PodNetworkConnectivityCheck,
  CloudPrivateIPConfig,
  EgressRouter,
  EgressFirewall,
  EgressIP,
  EgressQoS,
} from '../objects/types/openshift.ts';
import type {
  BackendTLSPolicy,
  Gateway,
  GatewayClass,
  GRPCRoute,
  HTTPRoute,
  ListenerSet,
  ReferenceGrant,
  StreamRoute,
  TLSRoute,
} from '../objects/types/gateway.ts';
import type { Route } from '../objects/types/route.generated.ts';
import type { AddressPool, BGPPeer } from '../objects/types/servicenet.ts';
import type {
  ControllerRevision,
  DaemonSet,
  Deployment,
  ReplicaSet,
  StatefulSet,
} from '../objects/types/apps.generated.ts';
import type { HorizontalPodAutoscaler } from '../objects/types/autoscaling.generated.ts';
import type { CronJob, Job } from '../objects/types/batch.generated.ts';
import type { ClusterTrustBundle, PodCertificateRequest } from '../objects/types/certificates.generated.ts';
import type { PodDisruptionBudget } from '../objects/types/policy.generated.ts';
import type {
  DeviceClass,
  ResourceClaim,
  ResourceClaimTemplate,
} from '../objects/types/resource.generated.ts';
import type { StorageClass } from '../objects/types/storage.generated.ts';
import type { StorageVersionMigration } from '../objects/types/storagemigration.generated.ts';

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

/**
 * The resources of a group: namespaced, with objects whose `members` are objects, unless the differences say otherwise.
 *
 * @param all differences of all of them.
 */
export function inGroup(
  group: string,
  version = 'v1',
  all: Partial<Pick<ResourceType, 'namespaced' | 'definedBy' | 'isOptional'>> = {},
) {
  return <T extends KubeObject>(
    kind: string,
    plural: string,
    members: readonly string[],
    differences: Partial<ResourceType<T>> = {},
  ): ResourceType<T> => ({
    group,
    version,
    plural,
    kind,
    namespaced: true,
    isObject: (object): object is T => isKubeObject(object) && has(object, ...members),
    ...all,
    ...differences,
  });
}

const core = inGroup('');
const networking = inGroup('networking.k8s.io');
const servicenet = inGroup('servicenet.dev', 'v1alpha1', {
  namespaced: false,
  definedBy: 'apply deploy/crds',
});
/** OVN-Kubernetes has them. */
const ovn = inGroup('k8s.ovn.org', 'v1', { isOptional: true });
const whereabouts = inGroup('whereabouts.cni.cncf.io', 'v1alpha1', { isOptional: true });

export const services = core<Service>('Service', 'services', ['spec', 'status'], {
  // For servers that send no status of Services, or an empty one.
  complete: completeStatus,
});

export const endpoints = core<Endpoints>('Endpoints', 'endpoints', [], {
  isObject: (object): object is Endpoints => {
    const subsets: unknown = Reflect.get(object, 'subsets');
    return subsets === undefined || (Array.isArray(subsets) && subsets.every(isEndpointSubset));
  },
});

export const endpointSlices = inGroup('discovery.k8s.io')<EndpointSlice>(
  'EndpointSlice',
  'endpointslices',
  [],
  {
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
  },
);

export const pods = core<Pod>('Pod', 'pods', ['spec', 'status']);

export const nodes = core<Node>('Node', 'nodes', ['spec', 'status'], {
  namespaced: false,
});

export const namespaces = core<Namespace>('Namespace', 'namespaces', ['spec', 'status'], {
  namespaced: false,
});

export const leases = inGroup('coordination.k8s.io')<Lease>('Lease', 'leases', ['spec']);

export const ipAddresses = networking<IPAddress>('IPAddress', 'ipaddresses', ['spec'], {
  namespaced: false,
});

export const serviceCIDRs = networking<ServiceCIDR>('ServiceCIDR', 'servicecidrs', ['spec', 'status'], {
  namespaced: false,
  isOptional: true, // v1 since Kubernetes 1.33
});

// The CRD's schema checks the rest; readers handle what an older schema accepted.
export const addressPools = servicenet<AddressPool>('AddressPool', 'addresspools', ['spec']);

export const bgpPeers = servicenet<BGPPeer>('BGPPeer', 'bgppeers', ['spec']);

export const networkPolicies = networking<NetworkPolicy>('NetworkPolicy', 'networkpolicies', ['spec']);

export const egressFirewalls = ovn<EgressFirewall>('EgressFirewall', 'egressfirewalls', ['spec']);

export const egressIPs = ovn<EgressIP>('EgressIP', 'egressips', [], {
  namespaced: false,
  isObject: (object): object is EgressIP => isStringList(at(object, 'spec', 'egressIPs')),
});

export const egressQoSes = ovn<EgressQoS>('EgressQoS', 'egressqoses', [], {
  isObject: (object): object is EgressQoS => Array.isArray(at(object, 'spec', 'egress')),
});

export const cloudPrivateIPConfigs = inGroup('cloud.network.openshift.io')<CloudPrivateIPConfig>(
  'CloudPrivateIPConfig',
  'cloudprivateipconfigs',
  ['spec'],
  {
    namespaced: false,
    isOptional: true, // of OpenShift
  },
);

export const egressRouters = inGroup('network.operator.openshift.io')<EgressRouter>(
  'EgressRouter',
  'egressrouters',
  [],
  {
    isOptional: true, // of OpenShift
    isObject: (object): object is EgressRouter => Array.isArray(at(object, 'spec', 'addresses')),
  },
);

export const connectivityChecks = inGroup(
  'controlplane.operator.openshift.io',
  'v1alpha1',
)<PodNetworkConnectivityCheck>('PodNetworkConnectivityCheck', 'podnetworkconnectivitychecks', ['spec'], {
  isOptional: true, // of OpenShift
});

export const networkAttachmentDefinitions = inGroup('k8s.cni.cncf.io')<NetworkAttachmentDefinition>(
  'NetworkAttachmentDefinition',
  'network-attachment-definitions',
  [],
  {
    isOptional: true, // of multus
  },
);

export const ipPools = whereabouts<IPPool>('IPPool', 'ippools', [], {
  isObject: (object): object is IPPool =>
    typeof at(object, 'spec', 'range') === 'string' && isRecord(at(object, 'spec', 'allocations')),
});

export const overlappingRangeIPReservations = whereabouts<OverlappingRangeIPReservation>(
  'OverlappingRangeIPReservation',
  'overlappingrangeipreservations',
  ['spec'],
);

export const ingresses = networking<Ingress>('Ingress', 'ingresses', ['spec', 'status'], {
  // For servers that send no status of Ingresses.
  complete: completeStatus,
});

export const ingressClasses = networking<IngressClass>('IngressClass', 'ingressclasses', ['spec'], {
  namespaced: false,
});

export const routes = inGroup('route.openshift.io')<Route>('Route', 'routes', [], {
  isOptional: true, // OpenShift has it.
  complete: completeStatus,
  isObject: (object): object is Route => {
    const to: unknown = isRecord(object) && isRecord(object['spec']) ? object['spec']['to'] : undefined;
    return has(object, 'spec', 'status') && isRecord(to) && typeof to['name'] === 'string';
  },
});

export const secrets = core<Secret>('Secret', 'secrets', []);

export const configMaps = core<ConfigMap>('ConfigMap', 'configmaps', [], {
  isObject: (object): object is ConfigMap => {
    const data: unknown = Reflect.get(object, 'data');
    return data === undefined || isStringMap(data);
  },
});

export const serviceAccounts = core<ServiceAccount>('ServiceAccount', 'serviceaccounts', []);

const apps = inGroup('apps');
const batch = inGroup('batch');

export const deployments = apps<Deployment>('Deployment', 'deployments', ['spec', 'status']);

export const replicaSets = apps<ReplicaSet>('ReplicaSet', 'replicasets', ['spec', 'status']);

export const replicationControllers = core<ReplicationController>(
  'ReplicationController',
  'replicationcontrollers',
  ['spec', 'status'],
);

export const statefulSets = apps<StatefulSet>('StatefulSet', 'statefulsets', ['spec', 'status']);

export const daemonSets = apps<DaemonSet>('DaemonSet', 'daemonsets', ['spec', 'status']);

export const controllerRevisions = apps<ControllerRevision>('ControllerRevision', 'controllerrevisions', [
  'data',
]);

export const jobs = batch<Job>('Job', 'jobs', ['spec', 'status']);

export const cronJobs = batch<CronJob>('CronJob', 'cronjobs', ['spec', 'status']);

export const podDisruptionBudgets = inGroup('policy')<PodDisruptionBudget>(
  'PodDisruptionBudget',
  'poddisruptionbudgets',
  ['spec', 'status'],
);

export const horizontalPodAutoscalers = inGroup('autoscaling', 'v2')<HorizontalPodAutoscaler>(
  'HorizontalPodAutoscaler',
  'horizontalpodautoscalers',
  ['spec', 'status'],
);

export const persistentVolumeClaims = core<PersistentVolumeClaim>(
  'PersistentVolumeClaim',
  'persistentvolumeclaims',
  ['spec', 'status'],
);

export const persistentVolumes = core<PersistentVolume>(
  'PersistentVolume',
  'persistentvolumes',
  ['spec', 'status'],
  { namespaced: false },
);

export const storageClasses = inGroup('storage.k8s.io')<StorageClass>('StorageClass', 'storageclasses', [], {
  namespaced: false,
});

const certificates = inGroup('certificates.k8s.io');

export const clusterTrustBundles = certificates<ClusterTrustBundle>(
  'ClusterTrustBundle',
  'clustertrustbundles',
  ['spec'],
  {
    namespaced: false,
    isOptional: true, // v1 since Kubernetes 1.37
  },
);

export const podCertificateRequests = certificates<PodCertificateRequest>(
  'PodCertificateRequest',
  'podcertificaterequests',
  ['spec', 'status'],
  { isOptional: true }, // v1 since Kubernetes 1.37
);

export const storageVersionMigrations = inGroup('storagemigration.k8s.io')<StorageVersionMigration>(
  'StorageVersionMigration',
  'storageversionmigrations',
  ['spec', 'status'],
  {
    namespaced: false,
    isOptional: true, // v1 since Kubernetes 1.37
  },
);

export const customResourceDefinitions = inGroup('apiextensions.k8s.io')<CustomResourceDefinition>(
  'CustomResourceDefinition',
  'customresourcedefinitions',
  ['spec', 'status'],
  { namespaced: false },
);

/** v1 since Kubernetes 1.34. */
const devices = inGroup('resource.k8s.io', 'v1', { isOptional: true });

export const resourceClaims = devices<ResourceClaim>('ResourceClaim', 'resourceclaims', ['spec', 'status']);

export const resourceClaimTemplates = devices<ResourceClaimTemplate>(
  'ResourceClaimTemplate',
  'resourceclaimtemplates',
  ['spec'],
);

export const deviceClasses = devices<DeviceClass>('DeviceClass', 'deviceclasses', ['spec'], {
  namespaced: false,
});

/** Of Gateway API: the CRDs of the standard channel may be missing, and check the shape of their objects. */
const ofGateways = inGroup('gateway.networking.k8s.io', 'v1', { isOptional: true });

export const gatewayClasses = ofGateways<GatewayClass>('GatewayClass', 'gatewayclasses', ['spec'], {
  namespaced: false,
});

export const gateways = ofGateways<Gateway>('Gateway', 'gateways', ['spec']);

export const listenerSets = ofGateways<ListenerSet>('ListenerSet', 'listenersets', ['spec']);

export const httpRoutes = ofGateways<HTTPRoute>('HTTPRoute', 'httproutes', ['spec']);

export const grpcRoutes = ofGateways<GRPCRoute>('GRPCRoute', 'grpcroutes', ['spec']);

export const tlsRoutes = ofGateways<TLSRoute>('TLSRoute', 'tlsroutes', ['spec']);

export const tcpRoutes = ofGateways<StreamRoute>('TCPRoute', 'tcproutes', ['spec']);

export const udpRoutes = ofGateways<StreamRoute>('UDPRoute', 'udproutes', ['spec']);

export const referenceGrants = ofGateways<ReferenceGrant>('ReferenceGrant', 'referencegrants', ['spec']);

export const backendTLSPolicies = ofGateways<BackendTLSPolicy>('BackendTLSPolicy', 'backendtlspolicies', [
  'spec',
]);
