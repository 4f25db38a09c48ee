import type { Condition, KubeObject, LabelSelector } from '../meta.ts';

/** `servicenet.dev/v1alpha1` AddressPool, cluster-scoped (deploy/crds). */
export interface AddressPool extends KubeObject {
  spec: AddressPoolSpec;
  status?: AddressPoolStatus;
}

export interface AddressPoolSpec {
  /** CIDRs, ranges `a-b` and single addresses, both families. */
  addresses?: string[];
  /** CIDRs, ranges and single addresses that are never assigned. */
  exclude?: string[];
  /** Never assign the network and broadcast address of `subnet`, or of each CIDR where there is no subnet. */
  avoidFirstLast?: boolean;
  subnet?: string;
  /** Serve Services that do not name this pool; default true. */
  autoAssign?: boolean;
  /** Higher is tried first; default 0. */
  priority?: number;
  namespaceSelector?: LabelSelector;
  serviceSelector?: LabelSelector;
  /** Default `by-key`. */
  sharing?: string;
  /** Default `Retain`. */
  shrinkPolicy?: string;
  /** The time for which a released address is quarantined: `90s`, `1h30m`; default none. */
  reuseDelay?: string;
  reservations?: AddressReservation[];
  /** How nodes announce the addresses; default: by layer 2, on interfaces whose subnet contains them. */
  announce?: AddressPoolAnnounce;
}

/** Neither member: the addresses are not announced. */
export interface AddressPoolAnnounce {
  layer2?: AddressPoolLayer2;
  bgp?: AddressPoolBGP;
}

export interface AddressPoolLayer2 {
  /** Names; default: those whose subnet contains the address. */
  interfaces?: string[];
  /** Nodes that may announce; default all. */
  nodeSelector?: LabelSelector;
}

export interface AddressPoolBGP {
  /** Names of BGPPeers; default all. */
  peers?: string[];
  nodeSelector?: LabelSelector;
  /** `64512:100`, `64512:1:2` or a well-known name. */
  communities?: string[];
  /** 0 to 4,294,967,295; for peers of the same AS. Default 100. */
  localPreference?: number;
  /** Bits of the routes; default 32 and 128. */
  aggregationLength?: number;
  aggregationLengthV6?: number;
}

/** An address for one Service, which need not exist yet. */
export interface AddressReservation {
  address: string;
  namespace: string;
  name: string;
}

export interface AddressPoolStatus {
  ipv4?: FamilyUsage;
  ipv6?: FamilyUsage;
  /** Quarantined addresses. The only record that outlives the process. */
  resting?: RestingAddress[];
  /** Addresses that nodes refuse to announce. */
  refused?: RefusedPoolAddress[];
  conditions?: Condition[];
}

/** An address that a node does not announce, since another machine has it. */
export interface RefusedPoolAddress {
  address: string;
  node: string;
  reason: string;
  message?: string;
  /** RFC 3339. */
  since: string;
}

/** A quarantined address. */
export interface RestingAddress {
  address: string;
  /** `namespace/name` of the Service that released it, which may get it back at once. */
  service: string;
  /** RFC 3339. */
  until: string;
}

/** Numbers of addresses; `free` can be assigned now. 2^53 - 1 means that or more. */
export interface FamilyUsage {
  total: number;
  used: number;
  free: number;
  quarantined: number;
}

/** `servicenet.dev/v1alpha1` BGPPeer, cluster-scoped (deploy/crds): a router that nodes open sessions to. */
export interface BGPPeer extends KubeObject {
  spec: BGPPeerSpec;
  status?: BGPPeerStatus;
}

export interface BGPPeerStatus {
  /** One a node, which writes it when it changes. */
  sessions?: BGPPeerSession[];
}

/** The session of a node with a peer, as the node's agent last had it. */
export interface BGPPeerSession {
  node: string;
  /** `Established`, or why it is not. */
  reason: string;
  /** For people. */
  message: string;
  /** RFC 3339. */
  since: string;
  /** Reasons why a session that is established does less than it might. */
  warnings?: string[];
}

export interface BGPPeerSpec {
  /** 1 to 4,294,967,295, as all AS numbers. */
  myASN: number;
  peerASN: number;
  peerAddress: string;
  /** Default 179. */
  peerPort?: number;
  /** Of the family of `peerAddress`; default that of the route to the peer. */
  sourceAddress?: string;
  /** An IPv4 address; default the InternalIP of the node. */
  routerID?: string;
  /** `9s`; 3 to 65,535 whole seconds. */
  holdTime?: string;
  /** Default true. */
  gracefulRestart?: boolean;
  /** Nodes that open a session; default all. */
  nodeSelector?: LabelSelector;
}
