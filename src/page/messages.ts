import type { IPFamily } from '../objects/address.ts';
import type { ObjectKey } from '../objects/meta.ts';
import type { ReachChange } from '../network/path/reach-plan.ts';
import type { Reach } from '../network/path/reach.ts';
import type { TraceReport } from '../network/path/report.ts';
import type { BGPPeerSession, BGPPeerSpec } from '../objects/types/servicenet.ts';
import type { ReportedPools } from '../view/rows/addresses.ts';
import type { JournalEntry, RowKind, RowOfKind } from '../view/rows/rows.ts';

/**
 * All that passes between a browser and the page's server. Only what is under `/data/` needs a session; each request for it
 * but `/data/session` has the header `Authorization: Bearer <session>`. Bodies are JSON of at most 64 KiB, and need
 * `Content-Type: application/json`. Answers that are no success have an {@link ErrorAnswer}:
 *
 * - 400 `BadRequest`: the sentence says what is wrong with the question (a trace to a Service that is not there, YAML)
 * - 401 `SessionUnknown`: erase the session, keep the URL, say: `servicenet page` prints a new link
 * - 403 `NotAllowedOrigin`, 421 `NotAllowedHost`: not from this page
 * - 404 `NotFound`, 405, 413, 415: as usual
 * - 409 `CannotCheck`: a packet cannot be sent from here; the sentence says why
 * - 429 `TooManyRequests`: packets are sent once a second at most
 * - 503 `Disconnected`: the API server does not answer
 */
export interface ErrorAnswer {
  /** A word. */
  readonly reason: string;
  /** A sentence. */
  readonly message: string;
}

/** `POST /data/session`, with the key of the link's fragment (`#k=…`). */
export interface SessionRequest {
  readonly key: string;
}

/** The answer: for `Authorization: Bearer`, and the first message of the stream. It is valid while the server runs. */
export interface SessionAnswer {
  readonly session: string;
}

/** The kinds of rows that each view gets. `problem`, `namespace` and `journal` come with each. */
export const rowsOfView = {
  /** Of all namespaces or one. */
  map: ['service', 'slice', 'pod', 'node'],
  /**
   * Of one Service: its row and details, its slices and Pods, all nodes, the rules that lead to it, Events about it, its
   * slices and Pods. No row of kind `service`: there is no such Service.
   */
  service: ['service', 'serviceDetail', 'slice', 'pod', 'node', 'httpRule', 'event'],
  /** What a form offers to choose from. */
  way: ['service', 'pod', 'workload', 'node'],
  /** When a workload or a policy is another, who reaches whom is asked again. Flows, in groups, are laid over it. */
  reach: ['workload', 'policy', 'flowGroup', 'flowWatch'],
  /** `service`: those of type LoadBalancer. */
  addresses: ['pool', 'address', 'waiting', 'announcer', 'egressAddress', 'service', 'node'],
  http: ['httpRule'],
  /** The flows that its {@link FollowedFlows} ask for, in groups or each, and what its filters choose from. */
  flows: ['flow', 'flowGroup', 'flowWatch', 'service', 'workload', 'node', 'policy'],
  /** The newest 10,000. */
  events: ['event'],
} as const satisfies Readonly<Record<string, readonly RowKind[]>>;

export type ViewName = keyof typeof rowsOfView;

export function isViewName(name: string): name is ViewName {
  return Object.hasOwn(rowsOfView, name);
}

/** What a tab looks at. Another one ends the former: the next message with `state` is of this. */
export interface Follow {
  readonly view: ViewName;
  /** Absent: all. For `service`: its namespace. */
  readonly namespace?: string;
  /** For `service`: its name. */
  readonly name?: string;
  /** Of the Map of all namespaces: its rows also where there are more than {@link mostPods}. */
  readonly all?: boolean;
  /** For `flows` and `reach`: which; absent: all but the cluster's own, in groups. */
  readonly flows?: FollowedFlows;
  /** RFC 3339: the cluster as it was then, which does not change. Absent: as it is. There are no flows of then. */
  readonly at?: string;
}

/** Flows that are followed, by the words of `servicenet flows`. */
export interface FollowedFlows {
  readonly from?: string;
  readonly to?: string;
  readonly outcomes?: readonly string[];
  readonly by?: string;
  /** With the cluster's own. */
  readonly all?: boolean;
  /** Each by itself: the newest 500. */
  readonly each?: boolean;
}

/**
 * Where a cluster has more Pods, the Map of all namespaces gets no rows but the namespaces, to choose one, until `all`; the
 * Way gets no Pods.
 */
export const mostPods = 20_000;

/**
 * What a browser says on the WebSocket `/data/stream`: first its session, within two seconds, which is answered with
 * nothing or the end of the connection (code 4401: the session is not known). Then what it follows.
 */
export type ClientMessage = { readonly session: string } | { readonly follow: Follow };

/** What the server says there. */
export type ServerMessage =
  | { readonly state: State }
  | Changes
  /** Whenever it is another. */
  | { readonly status: Status };

/** Rows by kind. A kind without rows may be absent. */
export type Rows = { readonly [Kind in RowKind]?: readonly RowOfKind[Kind][] };

/**
 * All that a view shows. While lists are being read it has what is there so far, and the rest follows as changes.
 * `GET /data/state?view=&namespace=&name=` answers it too, complete.
 */
export interface State {
  readonly follow: Follow;
  readonly cluster: ClusterInfo;
  readonly rows: Rows;
  readonly status: Status;
  /** RFC 3339: when it was so. */
  readonly at: string;
  /** Of the state; each {@link Changes} has one more. */
  readonly seq: number;
}

/** The rows that changed since the message before, whole, and the keys of those that are gone. At most four a second. */
export interface Changes {
  readonly rows: Rows;
  readonly gone: { readonly [Kind in RowKind]?: readonly string[] };
  readonly at: string;
  readonly seq: number;
}

/** What does not change while the server runs. */
export interface ClusterInfo {
  /** `https://127.0.0.1:6443`. */
  readonly server: string;
  /** `servicenet up`, or the cluster of a kubeconfig. */
  readonly kind: 'up' | 'kubeconfig';
  /** The version of servicenet. */
  readonly version: string;
  /** Only this namespace is shown (`servicenet page -n`). */
  readonly onlyNamespace?: string;
  /** Why no packet can be sent ("Send a real one"), a sentence. Absent: it can. */
  readonly whyNoCheck?: string;
  /** Why there are no flows, a sentence. Absent: there may be. */
  readonly whyNoFlows?: string;
  /** Behind `servicenet` in a command to copy, so that it asks this cluster: `--kubeconfig /home/me/prod --context a`. */
  readonly clusterFlags: readonly string[];
}

/** How the server itself stands to the cluster. */
export interface Status {
  /** Kinds (`Pod`) whose first list is being read, and how many objects there are so far and in all, if known. */
  readonly loading: readonly { readonly kind: string; readonly read: number; readonly total?: number }[];
  /** Kinds that may not be listed: what depends on them is not known. */
  readonly forbidden: readonly string[];
  /** The API server does not answer. Rows are then the last known ones. */
  readonly disconnected?: {
    /** The sentence, as `top` shows it. */
    readonly message: string;
    readonly since: string;
  };
  /** There are no rows: what was at {@link Follow.at} is not known, but only from this time on (RFC 3339). */
  readonly knownSince?: string;
}

/** `POST /data/trace`. The answer is a {@link TraceAnswer}, the JSON of `servicenet trace -o json`. */
export interface TraceRequest {
  /** `deploy/shop/cart`, `pod/shop/cart-1`, `node/node-1`, `outside`, an address. */
  readonly from: string;
  /** `svc/shop/catalog:80`, `http://shop.example.com/`, a name as DNS has it, … */
  readonly to: string;
  /** Default TCP. */
  readonly protocol?: 'TCP' | 'UDP' | 'SCTP';
  /** Of names without one; default `default`. */
  readonly namespace?: string;
  /** Open a real connection too. Once a second, TCP alone, and only inside of the cluster network of `up`. */
  readonly check?: boolean;
  /** RFC 3339: in the cluster as it was then. Not with `check`. */
  readonly at?: string;
}

/** Members that are undefined are not sent: without `reachable`, objects do not decide it. */
export type TraceAnswer = TraceReport;

/**
 * `GET /data/reach?namespace=&protocol=&from=&to=&at=`: the JSON of `servicenet trace --matrix -o json`, of 60 rows and 60
 * columns at most. `from` and `to` are parts of the names of rows and columns.
 */
export type ReachAnswer = Reach;

/** As many rows, and columns, are answered. */
export const mostReach = 60;

/**
 * `GET /data/journal?from=&to=&most=`: changes of all that is watched but Events, in the time after `from` and up to `to`
 * (RFC 3339). With `from` alone the oldest come, oldest first; else the newest, newest first.
 */
export interface JournalAnswer {
  /** RFC 3339: what was before is not known. Absent: nothing is known yet. */
  readonly knownSince?: string;
  /** At most {@link mostJournal}. */
  readonly changes: readonly JournalEntry[];
}

/** As many changes are answered. */
export const mostJournal = 500;

/** `POST /data/reach/plan`: NetworkPolicies as they would be. Nothing is written. */
export interface ReachPlanRequest {
  /** Of policies without one. */
  readonly namespace: string;
  /** Default TCP. */
  readonly protocol?: 'TCP' | 'UDP' | 'SCTP';
  /** New or changed NetworkPolicies, as documents of YAML. */
  readonly yaml: string;
  /** Names of those that would be deleted. */
  readonly delete?: readonly string[];
}

/** The JSON of `servicenet trace --matrix -f … -o json`. */
export interface ReachPlanAnswer {
  readonly changes: readonly ReachChange[];
  readonly problems: readonly string[];
}

/** A BGPPeer, and what each node has told of its session. */
export interface BGPPeerAnswer extends Pick<BGPPeerSpec, 'peerAddress' | 'myASN' | 'peerASN'> {
  readonly name: string;
  readonly sessions: readonly BGPPeerSession[];
}

/** `GET /data/pools`: the JSON of `servicenet pools -o json`, of which the page asks for what no row has, and BGPPeers. */
export interface PoolsAnswer extends Pick<ReportedPools, 'ipPools'> {
  /** Absent: there are none. */
  readonly bgpPeers?: readonly BGPPeerAnswer[];
}

/** `POST /data/pools/plan`: an edit of AddressPools. Nothing is written. */
export interface PoolsPlanRequest {
  /** AddressPools as they shall be, as documents of YAML. */
  readonly yaml: string;
  /** Names of AddressPools that shall be deleted. */
  readonly delete?: readonly string[];
}

/** The JSON of `servicenet pools plan -o json`. */
export interface PoolsPlanAnswer {
  readonly effects: readonly {
    readonly service: ObjectKey;
    readonly family: IPFamily;
    readonly effect: 'moves' | 'loses' | 'gains' | 'adopts' | 'stays';
    readonly from?: string;
    readonly to?: string;
  }[];
  readonly problems: readonly string[];
}

/**
 * `GET /data/object?kind=&namespace=&name=`: one object of the kinds that are watched, as the server keeps it. Values of
 * `env` and the annotation of `kubectl apply` are left out.
 */
export interface ObjectAnswer {
  /** Without `managedFields`. */
  readonly yaml: string;
  /** `metadata.managedFields` as YAML, to be unfolded; "" where there are none. */
  readonly managedFields: string;
}
