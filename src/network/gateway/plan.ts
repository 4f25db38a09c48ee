import type { ObjectKey } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type {
  BackendTLSPolicy,
  GatewayClass,
  GRPCRoute,
  HTTPRoute,
  ListenerSet,
  ListenerStatus,
  ParentReference,
  ReferenceGrant,
  StreamRoute,
  TLSRoute,
} from '../../objects/types/gateway.ts';
import type { HttpRule, KeyPair, RuleSource } from '../http/rules.ts';

/** What the planner of a Gateway reads and says: the seam between its parts, the router, and who writes status. */

/** `spec.controllerName` of the GatewayClasses that are ours. */
export const gatewayController = 'servicenet.dev/gateway';

export const gatewayGroup = 'gateway.networking.k8s.io';

/** A Route of any kind. */
export type AnyRoute =
  | { readonly kind: 'HTTPRoute'; readonly object: HTTPRoute }
  | { readonly kind: 'GRPCRoute'; readonly object: GRPCRoute }
  | { readonly kind: 'TLSRoute'; readonly object: TLSRoute }
  | { readonly kind: 'TCPRoute' | 'UDPRoute'; readonly object: StreamRoute };

export type RouteKind = AnyRoute['kind'];

/** The objects of a cluster. What a plan has looked up is in its {@link GatewayPlan.lookups}. */
export interface GatewayObjects {
  gatewayClass(name: string): GatewayClass | undefined;
  /** ListenerSets whose parentRef names this Gateway. */
  listenerSets(gateway: ObjectKey): readonly ListenerSet[];
  /** Routes of all kinds with a parentRef to this Gateway or ListenerSet. */
  routes(kind: 'Gateway' | 'ListenerSet', parent: ObjectKey): readonly AnyRoute[];
  /** All of a namespace. */
  grants(namespace: string): readonly ReferenceGrant[];
  namespaceLabels(namespace: string): Readonly<Record<string, string>> | undefined;
  service(key: ObjectKey): Service | undefined;
  /** `ca.crt` of a ConfigMap; a problem in words where no one can be verified with it; undefined where there is no ConfigMap. */
  authority(configMap: ObjectKey): string | { readonly problem: string } | undefined;
  /** The certificate of a Secret; a problem in words where it cannot be served; undefined where there is no Secret. */
  certificate(secret: ObjectKey): KeyPair | { readonly problem: string } | undefined;
  /** Policies of the Service's namespace that name it. */
  policies(service: ObjectKey): readonly BackendTLSPolicy[];
}

/** A condition without the times, which its writer adds. */
export interface PlannedCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/** The state of what serves a Gateway; a part of its status. */
export interface GatewayState {
  /** Of its Service of type LoadBalancer; empty until it has some. */
  readonly addresses: readonly { readonly type: 'IPAddress' | 'Hostname'; readonly value: string }[];
  /** Why there is none, such as an address that was asked for and cannot be had. */
  readonly addressProblem: string | undefined;
}

/** What a Gateway is to do, and what is said about it. */
export interface GatewayPlan {
  readonly gateway: ObjectKey;
  /** `metadata.generation` of what was planned from; of Routes, ListenerSets and policies below, too. */
  readonly generation: number;
  readonly ports: readonly PlannedPort[];
  /** Conditions of the Gateway itself. */
  readonly conditions: readonly PlannedCondition[];
  readonly listeners: readonly PlannedListenerStatus[];
  readonly attachedListenerSets: number;
  readonly listenerSets: readonly PlannedListenerSet[];
  /** For each parentRef of each Route that leads to this Gateway or its ListenerSets, in the Route's order. */
  readonly routes: readonly PlannedRouteParent[];
  /** The policies of Services that its Routes lead to. */
  readonly policies: readonly PlannedPolicy[];
  /**
   * Objects whose change may change the plan: `Service ns/name`, `Secret ns/name`, `ConfigMap ns/name`,
   * `Namespace name`, `ReferenceGrant ns` for all of a namespace, `BackendTLSPolicy ns/service` for those of a Service.
   */
  readonly lookups: ReadonlySet<string>;
}

export interface PlannedListenerStatus extends Pick<
  ListenerStatus,
  'name' | 'supportedKinds' | 'attachedRoutes'
> {
  readonly conditions: readonly PlannedCondition[];
}

export interface PlannedListenerSet {
  readonly key: ObjectKey;
  readonly generation: number;
  readonly conditions: readonly PlannedCondition[];
  readonly listeners: readonly PlannedListenerStatus[];
}

export interface PlannedRouteParent {
  readonly kind: RouteKind;
  readonly key: ObjectKey;
  readonly generation: number;
  /** As the Route has it. */
  readonly parentRef: ParentReference;
  readonly conditions: readonly PlannedCondition[];
}

export interface PlannedPolicy {
  readonly key: ObjectKey;
  readonly generation: number;
  /** For this Gateway as the policy's ancestor. */
  readonly conditions: readonly PlannedCondition[];
}

/** A port of a Gateway with the listeners that are served there. */
export interface PlannedPort {
  readonly port: number;
  /** `TLS`: listeners of HTTPS and TLS, which the server name tells apart. */
  readonly protocol: 'HTTP' | 'TLS' | 'TCP' | 'UDP';
  /** The most specific hostname first. */
  readonly listeners: readonly PlannedListener[];
}

/** A listener that is served. */
export interface PlannedListener {
  /** Kind, key and name: `Gateway shop/web http`; for logs and traces. */
  readonly id: string;
  /** Lower case; `*.example.com` for any depth below it, "" for all. */
  readonly hostname: string;
  readonly protocol: 'HTTP' | 'HTTPS' | 'TLS' | 'TCP' | 'UDP';
  /** Of HTTPS and TLS. */
  readonly tls: ListenerTls | undefined;
  /** Of HTTP and HTTPS: in the order in which they are tried. */
  readonly matches: readonly GatewayMatch[];
  /** Of TLS: the most specific hostname first; of TCP and UDP: the Route that carries the traffic, alone. */
  readonly streams: readonly StreamRule[];
}

export interface ListenerTls {
  readonly mode: 'Terminate' | 'Passthrough';
  /** The first is for clients whose server name no other has. Empty for Passthrough. */
  readonly certificates: readonly KeyPair[];
  /** How clients' certificates are asked for; undefined: not at all. */
  readonly clients: ClientValidation | undefined;
}

export interface ClientValidation {
  /** PEM. */
  readonly ca: string;
  readonly mode: 'AllowValidOnly' | 'AllowInsecureFallback';
}

/** A backend of a rule. */
export interface GatewayBackend {
  /** Its share among those of the rule, 0 to 1,000,000. */
  readonly weight: number;
  /** A rule with this one Service; undefined for one that is unknown, not permitted, or no Service. */
  readonly rule: HttpRule | undefined;
  /** By filters of the backendRef alone. */
  readonly requestHeaders: HeaderChange | undefined;
}

/** What carries the connections of a TLSRoute, TCPRoute or UDPRoute. */
export interface StreamRule {
  readonly source: RuleSource;
  /** Lower case, of a TLSRoute: within the listener's hostname; "" otherwise. */
  readonly hostname: string;
  readonly backends: readonly GatewayBackend[];
}

/** One match of one rule of an HTTPRoute or GRPCRoute on a listener. */
export interface GatewayMatch {
  /** The Route's own hostname, lower case; "" for one without. */
  readonly hostname: string;
  readonly path: {
    /** `Prefix` by elements, without a slash at its end; "" matches all. */
    readonly type: 'Exact' | 'Prefix' | 'RegularExpression';
    readonly value: string;
  };
  readonly method: string | undefined;
  /** Names in lower case; each once. */
  readonly headers: readonly PlannedValueMatch[];
  readonly query: readonly PlannedValueMatch[];
  readonly rule: GatewayRule;
}

export interface PlannedValueMatch {
  readonly name: string;
  /** A text, or an expression for all of the value. */
  readonly value: string;
  readonly isExpression: boolean;
}

/** What is done with the requests of a rule. */
export interface GatewayRule {
  readonly source: RuleSource;
  /** `rules[].name`, else its index. */
  readonly name: string;
  readonly isGrpc: boolean;
  readonly backends: readonly GatewayBackend[];
  readonly filters: RuleFilters;
  /** Milliseconds for the whole exchange with the client; undefined: no limit of the rule. */
  readonly requestTimeoutMs: number | undefined;
  /** Milliseconds for one try with a backend. */
  readonly backendTimeoutMs: number | undefined;
}

/** Filters of a rule. */
export interface RuleFilters {
  readonly requestHeaders: HeaderChange | undefined;
  readonly responseHeaders: HeaderChange | undefined;
  readonly redirect: RedirectFilter | undefined;
  readonly rewrite: RewriteFilter | undefined;
  readonly mirrors: readonly MirrorFilter[];
  readonly cors: CorsFilter | undefined;
  /** Why the rule is not valid, in words: requests get 500. */
  readonly unsupported: string | undefined;
}

/** Names in lower case. */
export interface HeaderChange {
  readonly set: readonly { readonly name: string; readonly value: string }[];
  readonly add: readonly { readonly name: string; readonly value: string }[];
  readonly remove: readonly string[];
}

export interface PathChange {
  readonly type: 'ReplaceFullPath' | 'ReplacePrefixMatch';
  readonly value: string;
}

export interface RedirectFilter {
  readonly scheme: string | undefined;
  readonly hostname: string | undefined;
  readonly port: number | undefined;
  readonly path: PathChange | undefined;
  readonly status: number;
}

export interface RewriteFilter {
  readonly hostname: string | undefined;
  readonly path: PathChange | undefined;
}

export interface MirrorFilter {
  /** A rule with this one Service; undefined: nothing is mirrored. */
  readonly rule: HttpRule | undefined;
  /** The share of requests that is mirrored: numerator ≤ denominator. */
  readonly numerator: number;
  readonly denominator: number;
}

export interface CorsFilter {
  /** As written: `*`, or scheme, host (`*` in it is greedy) and port. */
  readonly origins: readonly string[];
  readonly methods: readonly string[];
  readonly headers: readonly string[];
  readonly exposed: readonly string[];
  readonly credentials: boolean;
  /** Seconds. */
  readonly maxAgeSeconds: number;
}

/** Why a condition is False. */
export interface Problem {
  readonly reason: string;
  readonly message: string;
}

/** A condition that is True; its reason is mostly its type. */
export function isTrue(type: string, message: string, reason = type): PlannedCondition {
  return { type, status: 'True', reason, message };
}

/** A condition that is False. */
export function isFalse(type: string, { reason, message }: Problem): PlannedCondition {
  return { type, status: 'False', reason, message };
}

/** True with the type as its reason, unless there is a problem. */
export function trueUnless(type: string, problem: Problem | undefined, message: string): PlannedCondition {
  return problem === undefined ? isTrue(type, message) : isFalse(type, problem);
}
