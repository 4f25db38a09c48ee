import type { KubeObject, Condition, LabelSelector } from '../meta.ts';

/** Kinds of secondary networks (`k8s.cni.cncf.io/v1`, `whereabouts.cni.cncf.io/v1alpha1`), as their definitions have them. */

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

/** Kinds of OpenShift's clouds (`cloud.network.openshift.io/v1`), as their definitions have them. */

/** cloud.network.openshift.io/v1 CloudPrivateIPConfig: named after its address. */
export interface CloudPrivateIPConfig extends KubeObject {
  /** Absent: it is given to no node. */
  spec: { node?: string };
  status?: { node?: string; conditions: Condition[] };
}

/** PodNetworkConnectivityCheck of OpenShift (`controlplane.operator.openshift.io/v1alpha1`), as its definition has it. */

/** Whether an endpoint can be reached from a Pod, by TCP. */
export interface PodNetworkConnectivityCheck extends KubeObject {
  spec: {
    /** A Pod of the namespace. */
    sourcePod: string;
    /** `host:port`. */
    targetEndpoint: string;
    tlsClientCert?: { name: string };
  };
  status?: ConnectivityCheckStatus;
}

/** The results so far; all lists begin with the newest. */
export interface ConnectivityCheckStatus {
  successes?: CheckEntry[];
  failures?: CheckEntry[];
  outages?: OutageEntry[];
  conditions?: CheckCondition[];
}

/** One action of a check. */
export interface CheckEntry {
  /** RFC 3339: when it began. */
  time: string | null;
  success: boolean;
  reason?: string;
  message?: string;
  /** A Go duration. */
  latency?: string | null;
}

/** A time in which the endpoint was not reached. */
export interface OutageEntry {
  /** RFC 3339. */
  start: string | null;
  /** Absent while it lasts. */
  end?: string | null;
  startLogs?: CheckEntry[];
  endLogs?: CheckEntry[];
  message?: string;
}

/** A condition of a check. */
export interface CheckCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime: string | null;
}

/** EgressRouter of OpenShift (`network.operator.openshift.io/v1`), as its definition has it. */

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

/** Kinds of OVN-Kubernetes (`k8s.ovn.org/v1`), as their definitions have them. */

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
