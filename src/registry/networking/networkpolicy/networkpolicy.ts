import type { KubeObject, LabelSelector } from '../../../objects/meta.ts';

/** Networking.k8s.io/v1 NetworkPolicy. */
export interface NetworkPolicy extends KubeObject {
  spec: {
    podSelector?: LabelSelector;
    ingress?: { ports?: NetworkPolicyPort[]; from?: NetworkPolicyPeer[] }[];
    egress?: { ports?: NetworkPolicyPort[]; to?: NetworkPolicyPeer[] }[];
    policyTypes?: string[];
  };
}

export interface NetworkPolicyPort {
  protocol?: string;
  port?: number | string;
  endPort?: number;
}

export interface NetworkPolicyPeer {
  podSelector?: LabelSelector;
  namespaceSelector?: LabelSelector;
  ipBlock?: { cidr?: string; except?: string[] };
}

/** One rule of either direction, with its path. */
export interface PlacedRule {
  readonly path: string;
  readonly peersPath: string;
  readonly ports: readonly NetworkPolicyPort[];
  readonly peers: readonly NetworkPolicyPeer[];
}

/** All rules of a policy, ingress first. */
export function rulesOf({ ingress = [], egress = [] }: NetworkPolicy['spec']): PlacedRule[] {
  return [
    ...ingress.map(({ ports = [], from = [] }, i) => {
      const path = `spec.ingress[${i}]`;
      return { path, peersPath: `${path}.from`, ports, peers: from };
    }),
    ...egress.map(({ ports = [], to = [] }, i) => {
      const path = `spec.egress[${i}]`;
      return { path, peersPath: `${path}.to`, ports, peers: to };
    }),
  ];
}
