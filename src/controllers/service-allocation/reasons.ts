/**
 * The one vocabulary of allocation: `reason` of Events, of the condition `servicenet.dev/Allocated`, of findings of
 * the audit, of log lines and of metrics. Where kube-apiserver's repair loops have a word
 * (`pkg/registry/core/service/{ipallocator,portallocator}/controller/repair*.go`), it is theirs.
 */
export const reasons = [
  /** The Service has all that it asks for. */
  'Allocated',
  /** A clusterIP is no IP address. */
  'ClusterIPNotValid',
  /** A clusterIP is in no ServiceCIDR. */
  'ClusterIPOutOfRange',
  /** A clusterIP without an IPAddress object, or with one of another Service. */
  'ClusterIPNotAllocated',
  /** An older Service has the same clusterIP. */
  'ClusterIPAlreadyAllocated',
  /** No address of a family is left; given when one becomes free. */
  'ClusterIPRangeFull',
  /** What the Service says of IP families contradicts itself or the cluster. */
  'IPFamiliesNotValid',
  /** A node port is outside of the range. */
  'PortOutOfRange',
  /** An older Service has the same node port. */
  'PortAlreadyAllocated',
  /** No node port is left; given when one becomes free. */
  'PortRangeFull',
  /** An IPAddress object of the allocator without a Service. */
  'IPAddressNotAllocated',
  /** An IPAddress object of a Service that does not have the address. */
  'IPAddressWrongReference',
] as const;

export type Reason = (typeof reasons)[number];

/** Something that a Service, or an IPAddress, has wrong. */
export interface Problem {
  readonly reason: Reason;
  /** For users: one sentence, kube-apiserver's where it has one. */
  readonly message: string;
}
