/** Annotations that the rules of a Service look at (`core/v1/annotation_key_constants.go`). */

export const topologyMode = 'service.kubernetes.io/topology-mode';
export const deprecatedTopologyHints = 'service.kubernetes.io/topology-aware-hints';
/** CIDRs joined by commas: what `spec.loadBalancerSourceRanges` was before it was a field. */
export const sourceRanges = 'service.beta.kubernetes.io/load-balancer-source-ranges';
