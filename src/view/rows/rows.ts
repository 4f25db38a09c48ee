import type { ObjectKey, ObjectName } from '../../objects/meta.ts';
import type { FlowWords } from '../../network/flows/flow.ts';
import type { FlowGroup } from '../../network/flows/groups.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { PoolFit, ReportedAddress, ReportedHolder, WaitingService } from '../../pools/plan.ts';
import type { Trouble, Why } from './trouble.ts';

/**
 * What one sees of a cluster, as rows: plain JSON, which the page's server sends and a browser draws. Each kind of row has
 * a `key` of its own; a row that changed is sent whole, under the same key. Sentences come from planners whose words
 * commands print too. Texts are as objects have them: what shows them on a terminal or a page takes away controls.
 */

/** A row of each kind. */
export interface RowOfKind {
  readonly service: ServiceRow;
  /** Of the one Service that is looked at. */
  readonly serviceDetail: ServiceDetailRow;
  readonly slice: SliceRow;
  readonly pod: PodRow;
  readonly workload: WorkloadRow;
  readonly node: NodeRow;
  readonly policy: PolicyRow;
  readonly namespace: NamespaceRow;
  readonly httpRule: HttpRuleRow;
  readonly pool: PoolRow;
  readonly address: AddressRow;
  readonly waiting: WaitingRow;
  readonly announcer: AnnouncerRow;
  readonly egressAddress: EgressAddressRow;
  readonly event: EventRow;
  readonly problem: ProblemRow;
  readonly flow: FlowRow;
  readonly flowGroup: FlowGroupRow;
  readonly flowWatch: FlowWatchRow;
  readonly journal: JournalRow;
}

export type RowKind = keyof RowOfKind;

/** Endpoints of a Service, without those that are terminating. Of two families the primary one is counted. */
export interface EndpointCounts {
  readonly ready: number;
  readonly total: number;
}

/** The columns of a Service in `servicenet top`. */
export interface ServiceColumns {
  readonly namespace: string;
  readonly name: string;
  /** `ClusterIP`, `NodePort`, `LoadBalancer`, `ExternalName`, or `Headless`. */
  readonly type: string;
  /** Several with commas; `None`, `<none>`. */
  readonly clusterIP: string;
  /** As kubectl prints it: `192.0.2.1`, `<pending>`, `<none>`, a name for ExternalName. */
  readonly external: string;
  /** `80:30080/TCP,443/TCP`, `<none>`. */
  readonly ports: string;
  /** Undefined for Services without endpoints by design (ExternalName). */
  readonly endpoints?: EndpointCounts | undefined;
}

/** A Service. */
export interface ServiceRow extends ServiceColumns {
  /** `shop/web`. */
  readonly key: ObjectKey;
  /** For searches and filters. */
  readonly labels: Readonly<Record<string, string>>;
  /** The selector; absent: others write its slices. */
  readonly selector?: Readonly<Record<string, string>>;
  /** The pools of its addresses, by name. Absent: none. */
  readonly pools?: readonly string[];
  /** The first of its {@link ProblemRow}s. Absent: all is well. */
  readonly trouble?: Trouble;
  /** Why it has no ready endpoint. Absent: it has one, or has none by design. */
  readonly whyNoEndpoint?: Why;
  /** Why it has no address of a load balancer. Absent: it has one, or asks for none. */
  readonly whyNoAddress?: Why;
  /** RFC 3339, as all times here. */
  readonly created: string;
}

/** What the view of one Service shows beside its {@link ServiceRow}. */
export interface ServiceDetailRow {
  /** That of the Service. */
  readonly key: ObjectKey;
  /** `pay.shop.svc.cluster.local`; further ones of a headless Service. At most 100. */
  readonly dnsNames: readonly string[];
  readonly ports: readonly ServicePortRow[];
  /** Of all its slices, the ones that are not ready first, then by address. */
  readonly endpoints: readonly ServiceEndpoint[];
  /** Fields that change what it does, as they are set: `spec.externalTrafficPolicy` is `Local`. Defaults are left out. */
  readonly settings: readonly { readonly field: string; readonly value: string }[];
  /** Its conditions, such as `servicenet.dev/LoadBalancerReady` and `servicenet.dev/Announced`. */
  readonly conditions: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason: string;
    readonly message: string;
    readonly since: string;
  }[];
  /** Of type LoadBalancer: each AddressPool, and why it does not serve the Service. Absent for other types. */
  readonly pools?: readonly PoolFit[];
  /** Keys of the {@link HttpRuleRow}s that lead to it. */
  readonly ledToBy: readonly string[];
}

export interface ServicePortRow {
  /** "" where it has no name. */
  readonly name: string;
  readonly protocol: string;
  readonly port: number;
  readonly nodePort?: number;
  readonly appProtocol?: string;
  /** A number or a name, as the Service has it. */
  readonly targetPort: string;
  /** The numbers that slices have for it, and how many endpoints. */
  readonly targets: readonly { readonly port: number; readonly endpoints: number }[];
}

export interface ServiceEndpoint extends EndpointRow {
  /** Key of its slice. */
  readonly slice: ObjectKey;
  /** Why it is not ready: the words of its Pod. */
  readonly trouble?: Trouble;
}

/** An EndpointSlice. */
export interface SliceRow {
  readonly key: ObjectKey;
  readonly namespace: string;
  readonly name: string;
  /** Key of its Service; absent: no label names one. */
  readonly service?: ObjectKey;
  /** `IPv4`, `IPv6` or `FQDN`. */
  readonly addressType: string;
  /** `8080/TCP`, with a name `http 8080/TCP`. */
  readonly ports: readonly string[];
  /** The label `endpointslice.kubernetes.io/managed-by`; "" without it. */
  readonly managedBy: string;
  readonly endpoints: readonly EndpointRow[];
}

/** An endpoint of a slice. */
export interface EndpointRow {
  readonly address: string;
  /** Key of its Pod; absent: it is none's. */
  readonly pod?: ObjectKey;
  readonly node?: string;
  readonly zone?: string;
  /** Zones that shall use it. */
  readonly hints?: readonly string[];
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
}

/** What a Pod is doing, in a word. */
export type PodState =
  | 'ready'
  /** Runs, and is not ready. */
  | 'not ready'
  /** Pending: not scheduled, or its containers are being started. */
  | 'starting'
  | 'terminating'
  | 'completed'
  | 'failed';

/** A Pod. */
export interface PodRow {
  readonly key: ObjectKey;
  readonly namespace: string;
  readonly name: string;
  /** Key of its {@link WorkloadRow}. */
  readonly workload: string;
  readonly state: PodState;
  /** Empty: it has none yet. */
  readonly addresses: readonly string[];
  /** Absent: not scheduled. */
  readonly node?: string;
  readonly hostNetwork: boolean;
  /** Keys of the Services whose slices have it. */
  readonly services: readonly ObjectKey[];
  readonly restarts: number;
  readonly labels: Readonly<Record<string, string>>;
  /** Why it is not ready: `Unhealthy`, `CrashLoopBackOff`, `Unschedulable`, … */
  readonly trouble?: Trouble;
  readonly created: string;
}

/** The owner of Pods, by their names and owner references; a Pod without one is its own. */
export interface WorkloadRow extends ObjectName {
  /** `deployment/shop/cart`: what `servicenet trace` takes as a source and destination. */
  readonly key: string;
  readonly pods: number;
  readonly ready: number;
}

/** A Node. */
export interface NodeRow {
  readonly key: ObjectKey;
  readonly name: string;
  readonly isReady: boolean;
  /** Being drained: `spec.unschedulable`. */
  readonly isCordoned: boolean;
  /** Since when it is ready or not. */
  readonly since?: string;
  readonly addresses: readonly string[];
  /** The label `topology.kubernetes.io/zone`. */
  readonly zone?: string;
  readonly podCIDRs: readonly string[];
  /** Pods on it that have not ended. */
  readonly pods: number;
  readonly trouble?: Trouble;
  readonly created: string;
}

/** A NetworkPolicy. */
export interface PolicyRow {
  readonly key: ObjectKey;
  readonly namespace: string;
  readonly name: string;
  /** Of the Pods that it isolates, as kubectl takes it; "" for all of the namespace. */
  readonly selector: string;
  /** In which directions it isolates them, and how many rules allow something there. */
  readonly isolates: readonly { readonly direction: 'ingress' | 'egress'; readonly rules: number }[];
  readonly trouble?: Trouble;
  readonly created: string;
}

/** A namespace, and how much is in it: for the choice before rows are asked for. */
export interface NamespaceRow {
  readonly key: ObjectKey;
  readonly name: string;
  readonly services: number;
  readonly pods: number;
}

/** A host and path of an Ingress or Route. */
export interface HttpRuleRow {
  /** `Ingress/shop/shop/0`. */
  readonly key: string;
  /** "" for every host. */
  readonly host: string;
  readonly path: string;
  readonly match: 'Exact' | 'Prefix' | 'ImplementationSpecific' | 'RegularExpression';
  /** Of a Route of Gateway API, what else a request needs: `GET`, `x-canary: yes`, `?version=2`. */
  readonly only?: readonly string[];
  readonly source: ObjectName;
  /** Absent: no TLS. `secret` is a name, whose contents are never asked for. */
  readonly tls?: { readonly termination: string; readonly secret?: string };
  /** What the router does with requests without TLS. */
  readonly insecure: 'Allow' | 'Redirect' | 'None';
  /** Absent: it is served. */
  readonly trouble?: Trouble;
  /** What the router answers by itself: `redirect, 301`. */
  readonly answer?: string;
  readonly backends: readonly HttpBackendRow[];
}

export interface HttpBackendRow {
  readonly service: ObjectKey;
  /** "" for a Service's first one. */
  readonly port: string;
  /** Among those of the rule; 0: no request. */
  readonly weight: number;
  readonly ready: number;
  readonly total: number;
  /** Why it gets no request: `NoService`, `NoPort`, `NoEndpoints`. */
  readonly trouble?: Trouble;
}

/** An AddressPool, as `servicenet pools -o json` tells it. */
export interface PoolRow {
  readonly key: string;
  readonly name: string;
  /** As its spec has them: CIDRs and ranges. */
  readonly addresses: readonly string[];
  readonly families: readonly PoolFamily[];
  /** Parts of its spec that are not valid, and overlaps: sentences. */
  readonly problems: readonly string[];
}

export interface PoolFamily {
  readonly family: IPFamily;
  /** Numbers from 2^53 on are rounded. */
  readonly total: number;
  readonly used: number;
  readonly free: number;
  readonly quarantined: number;
  /** Each address in its order, of a pool of at most 1,024 in this family; absent for larger ones. */
  readonly squares?: readonly PoolSquare[];
}

/** One address of a pool. Who has it, is in the {@link AddressRow} of the same address. */
export interface PoolSquare {
  readonly address: string;
  readonly state: 'free' | 'used' | 'quarantined' | 'reserved';
  /** When a quarantine ends. */
  readonly until?: string;
}

/** An address that Services have, or that is reserved for one. */
export interface AddressRow extends Omit<ReportedAddress, 'services'> {
  /** The address. */
  readonly key: string;
  readonly holders: readonly ReportedHolder[];
}

/** A Service of type LoadBalancer that waits for an address. */
export interface WaitingRow extends WaitingService {
  /** The Service. */
  readonly key: ObjectKey;
}

/** A node whose agent announces addresses. */
export interface AnnouncerRow {
  /** Name of the node. */
  readonly key: string;
  readonly node: string;
  /** Its Lease is renewed in time. */
  readonly isAlive: boolean;
  readonly interfaces: readonly { readonly name: string; readonly subnets: readonly string[] }[];
  /** Names of BGPPeers with an established session. */
  readonly sessions: readonly string[];
  /** By layer 2, now. */
  readonly announced: readonly string[];
  /** Addresses that it could announce and does not, with the reason word and its sentence. */
  readonly refused: readonly (Trouble & { readonly address: string; readonly holder: string })[];
}

/** An address of an EgressIP. */
export interface EgressAddressRow {
  /** `name address`. */
  readonly key: string;
  readonly address: string;
  readonly egressIP: string;
  /** Absent: on none. */
  readonly node?: string;
}

/** An Event of Kubernetes. */
export interface EventRow {
  readonly key: ObjectKey;
  /** When it was last seen. */
  readonly time: string;
  readonly count: number;
  readonly warning: boolean;
  readonly reason: string;
  readonly message: string;
  readonly about: ObjectName;
  /** The component that recorded it. */
  readonly source: string;
}

/** Something that is wrong, and that a user can mend. What to do is in docs/troubleshooting.md, under the reason. */
export interface ProblemRow extends Trouble {
  /** `PodsNotReady Service shop/pay`. */
  readonly key: string;
  readonly about: ObjectName;
  /** When its cause began; absent: objects do not tell. */
  readonly since?: string;
}

/** A connection of a cluster network, or what was denied of one source at one port. */
export interface FlowRow extends FlowWords {
  readonly key: string;
  /** How many were denied. Absent: it was not denied. */
  readonly packets?: number;
}

/** What is alike of the last five minutes. */
export type FlowGroupRow = FlowGroup;

/** How the flows stand that are looked at: one row. */
export interface FlowWatchRow {
  readonly key: 'flows';
  readonly state: 'beginning' | 'watching' | 'ended';
  /** Why there are none, or no more: a sentence without a full stop. */
  readonly whyEnded?: string;
  /** Not all of them could be told: `FlowsSampled`. */
  readonly trouble?: Trouble;
  /** Groups or flows in all; those that are not told are the least bad and busy, or the oldest. */
  readonly total: number;
}

/** What has changed of late: one row. */
export interface JournalRow {
  readonly key: 'journal';
  /** RFC 3339: what was before is not known. Absent: nothing is known yet. */
  readonly knownSince?: string;
  /** Half minutes in which something happened, oldest first. */
  readonly buckets: readonly {
    /** When it begins. */
    readonly time: string;
    /** Of objects, without Events. */
    readonly changes: number;
    /** Events of type Warning. */
    readonly warnings: number;
  }[];
}

/** A change of an object. */
export interface JournalEntry extends ObjectName {
  /** RFC 3339, to the millisecond: when it was heard of. */
  readonly time: string;
  readonly change: 'added' | 'modified' | 'deleted';
  /** In few words: `ready endpoints 2 → 1`; "" where the change says all. */
  readonly text: string;
  /** The newest Event of the object at that time, to a second. */
  readonly cause?: Trouble;
}
