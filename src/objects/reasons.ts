/**
 * The reasons that users read: one CamelCase word in Events, conditions, log lines and metrics. They are API, and do not
 * change. docs/troubleshooting.md explains each; a test compares it with these lists. To add one, add it here and there.
 */

/** The `reason` of the condition, of Events, of log lines and of metrics. These words are API: they do not change. */
export const loadBalancerReasons = [
  /** It has the addresses that it requests. */
  'Assigned',
  /** No pool selects it, or the requested pool does not exist. */
  'NoMatchingPool',
  /** Every pool that may serve it is full. It gets the next address that becomes free, in order of creation. */
  'PoolExhausted',
  /** The requested address is in no pool that may serve it. */
  'AddressNotInPool',
  /** Another Service has the requested address, and no sharing was requested. */
  'AddressInUse',
  /** Sharing was requested, and its rules forbid it. */
  'SharingRefused',
  /** Pools may serve it, but none has addresses of a family that it needs. */
  'FamilyUnavailable',
  /** The requested address is reserved for another Service. */
  'ReservedForOther',
  /** Another Service released the requested address, and the reuseDelay of its pool is not over. */
  'Quarantined',
  /** The request is invalid or contradicts itself. */
  'InvalidRequest',
] as const;

export type LoadBalancerReason = (typeof loadBalancerReasons)[number];

/**
 * The `reason` of Events, of the condition `servicenet.dev/Allocated`, of findings of the audit, of log lines and of
 * metrics. If kube-apiserver's repair loops have a reason, it is the same
 * (`pkg/registry/core/service/{ipallocator,portallocator}/controller/repair*.go`).
 */
export const allocationReasons = [
  /** The Service has all addresses and ports that it requests. */
  'Allocated',
  /** A clusterIP is not an IP address. */
  'ClusterIPNotValid',
  /** A clusterIP is in no ServiceCIDR. */
  'ClusterIPOutOfRange',
  /** A clusterIP without an IPAddress object, or with one of another Service. */
  'ClusterIPNotAllocated',
  /** An older Service has the same clusterIP. */
  'ClusterIPAlreadyAllocated',
  /** No address of a family is free; the Service gets one that becomes free. */
  'ClusterIPRangeFull',
  /** The IP families of the Service contradict each other or the cluster. */
  'IPFamiliesNotValid',
  /** A node port is outside of the range. */
  'PortOutOfRange',
  /** An older Service has the same node port. */
  'PortAlreadyAllocated',
  /** No node port is free; the Service gets one that becomes free. */
  'PortRangeFull',
  /** An IPAddress object of the allocator without a Service. */
  'IPAddressNotAllocated',
  /** An IPAddress object of a Service that does not have the address. */
  'IPAddressWrongReference',
] as const;

export type AllocationReason = (typeof allocationReasons)[number];

/** Why a Service has no ready endpoint, in the order in which they are looked for. */
export const noEndpointReasons = [
  /** Without a selector, others write its EndpointSlices, and there are none. */
  'NoSelector',
  /** No Pod of the namespace has the labels of the selector. */
  'SelectorMatchesNothing',
  /** No Pod that the selector matches runs. */
  'PodsNotRunning',
  /** No Pod that runs is ready. */
  'PodsNotReady',
  /** Every ready Pod is being deleted. */
  'PodsTerminating',
  /** No ready Pod has a container with the name of the target port. */
  'PortNameNotFound',
  /** No ready Pod has an address of the Service's families. */
  'OtherFamily',
  /** The EndpointSlices do not have the ready Pods. */
  'NotInSlicesYet',
] as const;

export type NoEndpointReason = (typeof noEndpointReasons)[number];

/** Why a node that could announce an address by layer 2 does not: another has it. */
export const addressRefusalReasons = [
  /** A machine that is no node answers for the address, or a node of another cluster. */
  'AddressConflict',
  /** Another announcer on a node of this cluster answers for it: a MetalLB speaker, kube-vip, Cilium. */
  'OtherAnnouncer',
  /** It is an address of a node's own. */
  'NodeAddress',
  /** It is the address of the node's router. */
  'GatewayAddress',
] as const;

export type AnnouncementRefusalReason = (typeof addressRefusalReasons)[number];

/** Why a node, or every node, does not announce an address; the reason of conditions, Events, logs and metrics. */
export const notAnnouncedReasons = [
  /** `spec.announce` of the pool names neither layer 2 nor BGP. */
  'AnnouncingOff',
  /** No node runs an agent that announces. */
  'NoAgent',
  /** The agent has not renewed its Lease in time, or has given it back. */
  'LeaseExpired',
  'NodeNotReady',
  /** The label `node.kubernetes.io/exclude-from-external-load-balancers`. */
  'NodeExcluded',
  /** `nodeSelector` of the pool. */
  'NodeNotSelected',
  /** Layer 2: no interface of the name, or with a subnet that contains the address. */
  'NoInterface',
  /** BGP: no session with a peer of the pool is established. */
  'NoSession',
  /** `externalTrafficPolicy: Local`, and no endpoint on the node is ready. */
  'NoLocalEndpoint',
  ...addressRefusalReasons,
] as const;

export type NotAnnouncedReason = (typeof notAnnouncedReasons)[number];

/** The reason of the condition `servicenet.dev/Announced` of a Service. */
export type AnnouncedReason =
  | NotAnnouncedReason
  | 'Announced'
  /** A node is to announce the address by layer 2, and has not reported it yet. */
  | 'Pending';

/** Why a part of a Service or slice is not forwarded. */
export const forwardingReasons = [
  /** Text that is no address or CIDR. */
  'InvalidAddress',
  /** Outside of 1 to 65535, or absent in a slice. */
  'InvalidPort',
  /** Neither TCP, UDP nor SCTP. */
  'InvalidProtocol',
  /** Outside of 1 to 86400 seconds; the default, 10800, is used. */
  'InvalidAffinityTimeout',
  /** An endpoint of another family than its slice's. */
  'AddressFamilyMismatch',
  /** An endpoint without an address. */
  'NoAddress',
  /** The same endpoint twice in one slice, or the same port twice in one Service. */
  'Duplicate',
  /** `loadBalancerSourceRanges` has no usable range of a family in which there is a load balancer IP: all may connect. */
  'NoSourceRange',
  /** `externalTrafficPolicy: Local` of a load balancer without `healthCheckNodePort`. */
  'NoHealthCheckNodePort',
  /** Another Service has the address and port. */
  'DestinationConflict',
] as const;

export type ProblemReason = (typeof forwardingReasons)[number];

/** Why a router does not admit a Route, or does not serve a host of an Ingress: the condition Admitted and Events. */
export const routeRefusalReasons = [
  // Those of the router of OpenShift.
  'HostAlreadyClaimed',
  'NoHostValue',
  'InvalidHost',
  'RouteNotAdmitted',
  'ExtendedValidationFailed',
  'ExternalCertificateGetFailed',
  'ExternalCertificateSecretDeleted',
  'ExternalCertificateValidationFailed',
  /** An annotation restricts access in a way that the router does not know. */
  'UnsupportedRestriction',
] as const;

export type RouteRefusalReason = (typeof routeRefusalReasons)[number];

/** Reasons of Events alone. Where a component of Kubernetes or another project has the Event, the word is that one's. */
export const eventReasons = [
  'AmbiguousSelector',
  'AttachmentIncomplete',
  'BackOff',
  'BackoffLimitExceeded',
  'CIDRNotAvailable',
  'CertificateExpired',
  'CertificateOverdueForRefresh',
  'ClaimLost',
  'ClaimMisbound',
  'CloudAssignmentFailed',
  'CloudDeletionFailed',
  'CloudUpdateFailed',
  'Completed',
  'ConnectivityOutageDetected',
  'ConnectivityRestored',
  'Created',
  'DeadlineExceeded',
  'EgressIPConflict',
  'Evicted',
  'ExternalNameBackend',
  'ExternalExpanding',
  'ExternalProvisioning',
  'Failed',
  'FailedBinding',
  'FailedResourceClaimCreation',
  'FailedComputeMetricsReplicas',
  'FailedCreate',
  'FailedCreatePodSandBox',
  'FailedDaemonPod',
  'FailedDelete',
  'FailedGetContainerResourceMetric',
  'FailedGetExternalMetric',
  'FailedGetObjectMetric',
  'FailedGetPodsMetric',
  'FailedGetResourceMetric',
  'FailedGetScale',
  'FailedIngressToRouteConversion',
  'FailedMapVolume',
  'FailedMount',
  'FailedPostStartHook',
  'FailedPreStopHook',
  'FailedRescale',
  'FailedScheduling',
  'FailedToCreateEndpoint',
  'FailedToForward',
  'FailedToStartServiceHealthcheck',
  'FailedToUpdateEndpoint',
  'FailedToUpdateEndpointSlices',
  'IPAddressGarbageCollected',
  'IPAddressGarbageCollectionFailed',
  'IgnoredAnnotations',
  'IncompleteIngressToRouteRules',
  'InvalidAnnotationValue',
  'InvalidCertificate',
  'InvalidEgressFirewall',
  'InvalidEgressIP',
  'InvalidIPAddress',
  'InvalidMetricSourceType',
  'InvalidNetworkPolicy',
  'JobAlreadyActive',
  'InspectFailed',
  'Killing',
  'MissingJob',
  'NetworkNotReady',
  'NoMatchingNodeFound',
  'NoNetworkFound',
  'NoPods',
  'NodeAffinity',
  'NodeNotReady',
  'NodePorts',
  'Overwritten',
  'OwnerRefInvalidNamespace',
  'ProvisioningFailed',
  'ProvisioningSucceeded',
  'Pulled',
  'Pulling',
  'Released',
  'ReplicaSetCreateError',
  'ResizeCompleted',
  'ResizeDeferred',
  'ResizeError',
  'ResizeInfeasible',
  'ResizeStarted',
  'Resumed',
  'SawCompletedJob',
  'ScalingReplicaSet',
  'Scheduled',
  'SecretNotFound',
  'SelectorRequired',
  'Started',
  'SucceededDaemonPod',
  'SuccessfulCreate',
  'SuccessfulDelete',
  'SuccessfulRescale',
  'Suspended',
  'SysctlForbidden',
  'TaintManagerEviction',
  'TooManyAddressesToMirror',
  'TooManyMissedTimes',
  'TopologyAwareHintsDisabled',
  'TopologyAwareHintsEnabled',
  'UnassignedRequest',
  'UndefinedRequest',
  'UnexpectedJob',
  'Unhealthy',
  'UnmanagedPods',
  'UnparseableSchedule',
  'UnsupportedPlugin',
  'UnsupportedRequest',
  'VolumeFailedDelete',
  'VolumeFailedRecycle',
  'VolumeMismatch',
  'VolumeResizeSuccessful',
  'WaitForFirstConsumer',
  'WaitForPodScheduled',
] as const;

/** The `reason` of an Event. */
export type EventReason =
  | (typeof eventReasons)[number]
  | LoadBalancerReason
  | AllocationReason
  | AnnouncedReason
  | ProblemReason
  | RouteRefusalReason
  /** A kubelet's, for each resource of a node. */
  | `OutOf${string}`;
