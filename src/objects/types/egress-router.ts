/** EgressRouter of OpenShift (`network.operator.openshift.io/v1`), as its definition has it. */
import type { Condition, KubeObject } from '../meta.ts';

/** A Pod with an address of its own that forwards connections to places outside of the cluster. */
export interface EgressRouter extends KubeObject {
  spec: {
    /** `Redirect`. */
    mode: string;
    networkInterface?: { macvlan?: { master?: string; mode: string } };
    /** The first counts. */
    addresses: EgressRouterAddress[];
    redirect?: {
      redirectRules?: RedirectRule[];
      /** The destination of ports without a rule; absent or empty: they are refused. */
      fallbackIP?: string;
    };
  };
  status?: { conditions: Condition[] };
}

/** One of `spec.addresses`. */
export interface EgressRouterAddress {
  /** An address with its prefix length. The definition takes any text. */
  ip: string;
  /** An address of the same family. */
  gateway?: string;
}

/** One of `spec.redirect.redirectRules`. */
export interface RedirectRule {
  destinationIP: string;
  /** 1 to 65535: where clients connect to. */
  port: number;
  protocol: string;
  /** 1 to 65535; absent: that of `port`. */
  targetPort?: number;
}
