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

/** A problem of a Service or an IPAddress. */
export interface AllocationProblem {
  readonly reason: AllocationReason;
  /** For users: one sentence, kube-apiserver's where it has one. */
  readonly message: string;
}
