/** Kinds of secondary networks (`k8s.cni.cncf.io/v1`, `whereabouts.cni.cncf.io/v1alpha1`), as their definitions have them. */
import type { KubeObject } from '../meta.ts';

/** k8s.cni.cncf.io/v1 NetworkAttachmentDefinition. */
export interface NetworkAttachmentDefinition extends KubeObject {
  spec?: {
    /** The configuration of CNI plugins, JSON. The API does not read it: it can be any text. */
    config?: string;
  };
}

/** whereabouts.cni.cncf.io/v1alpha1 IPPool: the owners of the addresses of a range. */
export interface IPPool extends KubeObject {
  spec: {
    /** A CIDR. */
    range: string;
    /** By the offset from the first address of the range, in decimal. */
    allocations: Record<string, IPAllocation>;
  };
}

/** One address of an IPPool. */
export interface IPAllocation {
  /** Of the container (the sandbox). */
  id: string;
  /** `namespace/name` of the Pod. */
  podref: string;
  ifname?: string;
}

/**
 * whereabouts.cni.cncf.io/v1alpha1 OverlappingRangeIPReservation: one address, in all ranges that have it. It is named
 * after the address.
 */
export interface OverlappingRangeIPReservation extends KubeObject {
  spec: { podref: string; containerid?: string; ifname?: string };
}
