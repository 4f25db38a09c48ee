import type { ProblemReason } from '../../objects/reasons.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import { type IPFamily, ipFamilies } from '../../objects/address.ts';

/**
 * The plan of one node's Service traffic: what happens to the first packet of a connection. It holds the rules of
 * kube-proxy 1.37 (`pkg/proxy`) as data and names no data path: the nftables writer, a userspace proxy, the health
 * check servers, conntrack clean-up and `servicenet trace` read it.
 */

/** Something odd in an object. The rest of the object is forwarded. */
export interface Problem {
  readonly reason: ProblemReason;
  readonly kind: 'Service' | 'EndpointSlice';
  readonly key: ObjectKey;
  /** The field, its value and what follows, of the first one where several have the same reason. */
  readonly message: string;
}

/** Collects the problems of one Service and its slices: one for each object and reason. */
export class Problems {
  #byObject: Map<string, { problem: Problem; more: number }> | undefined;

  add(reason: ProblemReason, kind: Problem['kind'], key: ObjectKey, message: string): void {
    const id = `${reason} ${kind} ${key}`;
    this.#byObject ??= new Map();
    const known = this.#byObject.get(id);
    if (known === undefined) this.#byObject.set(id, { problem: { reason, kind, key, message }, more: 0 });
    else known.more++;
  }

  /** In the order in which they were found. */
  list(): readonly Problem[] {
    if (this.#byObject === undefined) return noProblems;
    return Array.from(this.#byObject.values(), ({ problem, more }) =>
      more === 0 ? problem : { ...problem, message: `${problem.message} (and ${more} more)` },
    );
  }
}

const noProblems: readonly Problem[] = [];

/** Protocols of Service ports. */
export type Protocol = 'TCP' | 'UDP' | 'SCTP';

/** A traffic policy, and the list of endpoints that it chooses from. */
export type TrafficPolicy = 'Cluster' | 'Local';

/** Everything that a node forwards. Addresses are canonical text everywhere, CIDRs too. */
export interface ForwardingPlan {
  readonly node: NodePlan;
  /** By `namespace/name`. Services that the proxy skips are absent; the order is not part of the contract. */
  readonly services: ReadonlyMap<ObjectKey, ServicePlan>;
  /** The owner of each destination, by {@link destinationKey}: exactly one Service port. */
  readonly destinations: ReadonlyMap<string, DestinationOwner>;
  /** Cluster IPs → number of Service ports that have it. Other ports of these addresses are rejected. */
  readonly clusterIPs: ReadonlyMap<string, number>;
}

/** The Service port that a destination belongs to. */
export interface DestinationOwner {
  readonly port: ServicePortPlan;
  readonly destination: Destination;
}

/** The part of the plan for the node as a whole. */
export interface NodePlan {
  readonly name: string;
  /** The value of the label `topology.kubernetes.io/zone`; undefined without one. */
  readonly zone: string | undefined;
  /** One for each family that is served, IPv4 first. */
  readonly families: readonly NodeFamilyPlan[];
}

/** The part of the plan for the node in one address family. */
export interface NodeFamilyPlan {
  readonly family: IPFamily;
  /** The node's own address of the family; undefined: it has none. */
  readonly primaryAddress: string | undefined;
  /**
   * Where node ports answer: `all` is every address of the node, whenever it comes or goes; loopback never.
   * Sorted.
   */
  readonly nodePortAddresses: 'all' | readonly string[];
  /** The node's own addresses as far as they are known, loopback left out. Sorted. */
  readonly nodeAddresses: readonly string[];
  /** Packets to addresses in these ranges that are no Service's are dropped. Sorted. */
  readonly serviceCIDRs: readonly string[];
  /** The detection of Pods as the source of a packet; undefined: they cannot be recognised. */
  readonly podDetection: PodDetection | undefined;
}

/** kube-proxy's `--detect-local-mode`, for one family. */
export type PodDetection =
  | { readonly by: 'cidr'; readonly cidrs: readonly string[] }
  | { readonly by: 'bridge'; readonly interface: string }
  | { readonly by: 'interfacePrefix'; readonly prefix: string };

/** One Service, in all its families. */
export interface ServicePlan {
  readonly key: ObjectKey;
  /** Sorted by family (IPv4 first), protocol, port number. */
  readonly ports: readonly ServicePortPlan[];
  /** One per family with ports; empty unless `type: LoadBalancer` has `externalTrafficPolicy: Local`. */
  readonly healthChecks: readonly HealthCheckPlan[];
  /** Invalid parts, which were left out. */
  readonly problems: readonly Problem[];
}

/** One port of a Service in one family: kube-proxy's ServicePort. */
export interface ServicePortPlan {
  /** Unique in the plan, and stable: `namespace/name:port name/protocol/family`. */
  readonly id: string;
  readonly service: ObjectKey;
  /** `spec.ports[].name`, which the slices join by; may be "". */
  readonly name: string;
  readonly protocol: Protocol;
  readonly family: IPFamily;
  readonly clusterIP: string;
  /** 1 to 65535. */
  readonly port: number;
  /** Where connections can go to, in the order of {@link DestinationKind}, then by address. */
  readonly destinations: readonly Destination[];
  readonly internalTrafficPolicy: TrafficPolicy;
  /** `Cluster` where the Service cannot be reached from outside. */
  readonly externalTrafficPolicy: TrafficPolicy;
  /** Seconds since the last new connection for which a client keeps its endpoint; undefined: no affinity. */
  readonly affinitySeconds: number | undefined;
  /** The endpoints of policy `Cluster`; empty where nothing uses them. Sorted by address and port. */
  readonly clusterEndpoints: readonly PlannedEndpoint[];
  /** The endpoints of policy `Local`; empty where nothing uses them. Sorted by address and port. */
  readonly localEndpoints: readonly PlannedEndpoint[];
  /**
   * UDP only: the endpoints that serve, terminating ones and those that policies leave out too. A flow to one of the
   * destinations whose reply comes from another address is stale (`conntrack/cleanup.go`); with an empty list
   * nothing is. Sorted by address and port; undefined for other protocols.
   */
  readonly servingEndpoints: readonly PlannedEndpoint[] | undefined;
}

/** An endpoint that connections may be forwarded to. */
export interface PlannedEndpoint {
  readonly address: string;
  /** 1 to 65535. */
  readonly port: number;
  /** On this node: a connection from its own address to itself is masqueraded (hairpin, D8). */
  readonly isLocal: boolean;
}

/** The order is that in which they have precedence when two Service ports claim one address and port. */
export type DestinationKind = 'clusterIP' | 'loadBalancerIP' | 'externalIP' | 'nodePort';

/** An address and port that a Service port answers on. */
export interface Destination {
  /** {@link destinationKey}: names it in the plan. */
  readonly key: string;
  readonly kind: DestinationKind;
  /** Undefined for node ports: every one of the node's `nodePortAddresses`. */
  readonly address: string | undefined;
  /** The Service's port, or the node port. */
  readonly port: number;
  /** Load balancer IPs only: sources outside of these CIDRs are dropped before all else; undefined: none are. */
  readonly sourceRanges: readonly string[] | undefined;
  readonly actions: SourceActions;
}

/**
 * The source of a connection: a Pod that {@link PodDetection} recognises, the node itself (source address of the
 * node), or another client. A packet that is both of a Pod and of the node counts as of a Pod.
 */
export type Source = 'pod' | 'node' | 'other';

/** The actions for a new connection, by its source. Where Pods cannot be recognised, `pod` equals `other`. */
export type SourceActions = Readonly<Record<Source, Action>>;

/** Forward to an endpoint of a list, never empty, each as likely as the other; refuse at once; or stay silent. */
export type Action =
  | {
      readonly action: 'forward';
      readonly to: TrafficPolicy;
      /** The endpoint sees the node as the client. */
      readonly masquerade: boolean;
    }
  /** Refused at once: no endpoint is usable anywhere. */
  | { readonly action: 'reject' }
  /** The policy is Local, and no usable endpoint is on this node. */
  | { readonly action: 'drop' };

/** The health check of a Service for load balancers (`healthcheck/service_health.go`). */
export interface HealthCheckPlan {
  readonly family: IPFamily;
  /** `spec.healthCheckNodePort`, 1 to 65535. */
  readonly port: number;
  /** Distinct addresses of ready endpoints on this node. */
  readonly localEndpoints: number;
}

/** Of a node that forwards nothing. Node ports would answer at any of its addresses, of which none is known. */
export const emptyPlan: ForwardingPlan = {
  node: {
    name: '',
    zone: undefined,
    families: ipFamilies.map((family) => ({
      ...{ family, primaryAddress: undefined, nodePortAddresses: 'all', nodeAddresses: [], serviceCIDRs: [] },
      podDetection: undefined,
    })),
  },
  services: new Map(),
  destinations: new Map(),
  clusterIPs: new Map(),
};

/** The key of a destination in {@link ForwardingPlan.destinations}. */
export function destinationKey(
  family: IPFamily,
  protocol: Protocol,
  address: string | undefined,
  port: number,
): string {
  return `${address ?? family} ${protocol} ${port}`;
}
