/** Kinds of OVN-Kubernetes (`k8s.ovn.org/v1`), as their definitions have them. */
import type { Condition, KubeObject, LabelSelector } from '../meta.ts';

/** k8s.ovn.org/v1 EgressFirewall: one a namespace, named `default`. */
export interface EgressFirewall extends KubeObject {
  spec: { egress?: EgressFirewallRule[] };
  status?: { status?: string; messages?: string[] };
}

/** k8s.ovn.org/v1 EgressFirewallRule. */
export interface EgressFirewallRule {
  /** Everything but `Allow` denies. */
  type: string;
  ports?: { protocol: string; port?: number }[];
  /** One of the three. */
  to: { cidrSelector?: string; dnsName?: string; nodeSelector?: LabelSelector };
}

/** k8s.ovn.org/v1 EgressIP. */
export interface EgressIP extends KubeObject {
  spec: {
    egressIPs: string[];
    namespaceSelector: LabelSelector;
    /** Absent: all Pods of the namespaces. */
    podSelector?: LabelSelector;
  };
  /** An ordinary field: a PUT without it removes it. */
  status?: { items?: EgressIPItem[] };
}

/** k8s.ovn.org/v1 EgressIPStatusItem. */
export interface EgressIPItem {
  egressIP: string;
  node: string;
}

/** k8s.ovn.org/v1 EgressQoS: one a namespace, named `default`. */
export interface EgressQoS extends KubeObject {
  spec: { egress: EgressQoSRule[] };
  status?: { status?: string; conditions?: Condition[] };
}

/** k8s.ovn.org/v1 EgressQoSRule. */
export interface EgressQoSRule {
  /** 0 to 63. */
  dscp: number;
  /** Absent: everywhere. */
  dstCIDR?: string;
  /** Absent: all Pods of the namespace. */
  podSelector?: LabelSelector;
}
