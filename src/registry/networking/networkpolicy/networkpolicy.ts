import type {
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
} from '../../../objects/networking.generated.ts';

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
