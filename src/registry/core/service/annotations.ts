/** Annotations of Services (`core/v1/annotation_key_constants.go`). */

export const topologyMode = 'service.kubernetes.io/topology-mode';
export const deprecatedTopologyHints = 'service.kubernetes.io/topology-aware-hints';
/** CIDRs separated by commas: the predecessor of `spec.loadBalancerSourceRanges`. */
export const sourceRanges = 'service.beta.kubernetes.io/load-balancer-source-ranges';
