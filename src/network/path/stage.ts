/** The stages of a connection's way through a cluster, in their order. */
export type StageName =
  | 'dns'
  | 'service'
  | 'egress NetworkPolicy'
  | 'EgressFirewall'
  | 'EgressIP'
  | 'EgressQoS'
  | 'ingress NetworkPolicy'
  | 'target port';

/** The result of one stage. */
export interface Stage {
  readonly stage: StageName;
  /** `pass`: the stage does not apply; `unknown`: the objects do not decide it. */
  readonly verdict: 'pass' | 'allow' | 'deny' | 'unknown';
  /** The object that decided: `NetworkPolicy shop/deny-all`. */
  readonly object?: string;
  /** Where in the object: `spec.ingress[0].from[1]`. */
  readonly field?: string;
  /** A sentence. */
  readonly message: string;
}
