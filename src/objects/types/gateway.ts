import type { Condition, KubeObject, LabelSelector } from '../meta.ts';

/** `gateway.networking.k8s.io/v1` of Gateway API 1.6 (deploy/crds/gateway-api): the standard channel. */

/** Cluster-scoped. */
export interface GatewayClass extends KubeObject {
  spec: { controllerName: string; parametersRef?: object; description?: string };
  status?: { conditions?: Condition[]; supportedFeatures?: { name: string }[] };
}

/** A reference to another object; `namespace` only where another one may be named. */
export interface ObjectReference {
  /** "" for the core group. */
  group?: string;
  kind?: string;
  name: string;
  namespace?: string;
}

export interface Gateway extends KubeObject {
  spec: GatewaySpec;
  status?: GatewayStatus;
}

export interface GatewaySpec {
  gatewayClassName: string;
  listeners: GatewayListener[];
  addresses?: GatewayAddress[];
  infrastructure?: {
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    parametersRef?: ObjectReference;
  };
  /** Which ListenerSets may add listeners; default none. */
  allowedListeners?: { namespaces?: RouteNamespaces };
  tls?: {
    backend?: { clientCertificateRef?: ObjectReference };
    frontend?: {
      default?: FrontendTls;
      perPort?: { port: number; tls: FrontendTls }[];
    };
  };
}

/** Whether and how clients of HTTPS listeners show certificates. */
export interface FrontendTls {
  validation?: {
    caCertificateRefs: ObjectReference[];
    /** `AllowValidOnly` (default) or `AllowInsecureFallback`. */
    mode?: string;
  };
}

export interface GatewayAddress {
  /** `IPAddress` (default), `Hostname` or a name with a domain. */
  type?: string;
  /** Absent or "": any address of the type. */
  value?: string;
}

/** A listener of a Gateway or of a ListenerSet. */
export interface GatewayListener {
  name: string;
  port: number;
  /** HTTP, HTTPS, TLS, TCP, UDP or a name with a domain. */
  protocol: string;
  /** A name, or `*.` and a name; absent or "" for all. */
  hostname?: string;
  tls?: {
    /** `Terminate` (default) or `Passthrough`. */
    mode?: string;
    certificateRefs?: ObjectReference[];
    options?: Record<string, string>;
  };
  allowedRoutes?: {
    namespaces?: RouteNamespaces;
    kinds?: { group?: string; kind: string }[];
  };
}

export interface RouteNamespaces {
  /** `Same`, `All`, `Selector`; of allowedListeners `None`, too. */
  from?: string;
  selector?: LabelSelector;
}

export interface GatewayStatus {
  addresses?: { type?: string; value: string }[];
  conditions?: Condition[];
  listeners?: ListenerStatus[];
  attachedListenerSets?: number;
}

export interface ListenerStatus {
  name: string;
  supportedKinds?: { group?: string; kind: string }[];
  attachedRoutes: number;
  conditions: Condition[];
}

export interface ListenerSet extends KubeObject {
  spec: { parentRef: ObjectReference; listeners: GatewayListener[] };
  status?: { conditions?: Condition[]; listeners?: ListenerStatus[] };
}

/** The parent of a Route: a Gateway (default) or a ListenerSet. */
export interface ParentReference extends ObjectReference {
  sectionName?: string;
  port?: number;
}

export interface RouteParentStatus {
  parentRef: ParentReference;
  controllerName: string;
  conditions: Condition[];
}

export interface RouteStatus {
  parents: RouteParentStatus[];
}

export interface BackendObjectReference extends ObjectReference {
  port?: number;
}

export interface BackendRef extends BackendObjectReference {
  /** 0 to 1,000,000; default 1. */
  weight?: number;
}

export interface HTTPBackendRef extends BackendRef {
  filters?: HTTPRouteFilter[];
}

/** Fields that all kinds of Routes have. */
export interface CommonRouteSpec {
  parentRefs?: ParentReference[];
}

export interface HTTPRoute extends KubeObject {
  spec: CommonRouteSpec & { hostnames?: string[]; rules?: HTTPRouteRule[] };
  status?: RouteStatus;
}

export interface HTTPRouteRule {
  name?: string;
  matches?: HTTPRouteMatch[];
  filters?: HTTPRouteFilter[];
  backendRefs?: HTTPBackendRef[];
  /** Durations of GEP-2257. */
  timeouts?: { request?: string; backendRequest?: string };
}

export interface HTTPRouteMatch {
  path?: { type?: string; value?: string };
  headers?: ValueMatch[];
  queryParams?: ValueMatch[];
  method?: string;
}

/** A header or a parameter of the query. */
export interface ValueMatch {
  /** `Exact` (default) or `RegularExpression`. */
  type?: string;
  name: string;
  value: string;
}

export interface HTTPRouteFilter {
  type: string;
  requestHeaderModifier?: HTTPHeaderFilter;
  responseHeaderModifier?: HTTPHeaderFilter;
  requestMirror?: {
    backendRef: BackendObjectReference;
    percent?: number;
    fraction?: { numerator: number; denominator?: number };
  };
  requestRedirect?: {
    scheme?: string;
    hostname?: string;
    path?: HTTPPathModifier;
    port?: number;
    statusCode?: number;
  };
  urlRewrite?: { hostname?: string; path?: HTTPPathModifier };
  cors?: HTTPCORSFilter;
  extensionRef?: ObjectReference;
}

export interface HTTPHeaderFilter {
  set?: { name: string; value: string }[];
  add?: { name: string; value: string }[];
  remove?: string[];
}

export interface HTTPPathModifier {
  type: string;
  replaceFullPath?: string;
  replacePrefixMatch?: string;
}

export interface HTTPCORSFilter {
  allowOrigins?: string[];
  allowCredentials?: boolean;
  allowMethods?: string[];
  allowHeaders?: string[];
  exposeHeaders?: string[];
  /** How many seconds the answer to a preflight is kept; default 5. */
  maxAge?: number;
}

export interface GRPCRoute extends KubeObject {
  spec: CommonRouteSpec & { hostnames?: string[]; rules?: GRPCRouteRule[] };
  status?: RouteStatus;
}

export interface GRPCRouteRule {
  name?: string;
  matches?: { method?: { type?: string; service?: string; method?: string }; headers?: ValueMatch[] }[];
  filters?: HTTPRouteFilter[];
  backendRefs?: HTTPBackendRef[];
}

export interface TLSRoute extends KubeObject {
  spec: CommonRouteSpec & { hostnames: string[]; rules: StreamRouteRule[] };
  status?: RouteStatus;
}

export interface StreamRouteRule {
  name?: string;
  backendRefs: BackendRef[];
}

/** A TCPRoute or a UDPRoute. */
export interface StreamRoute extends KubeObject {
  spec: CommonRouteSpec & { rules: StreamRouteRule[] };
  status?: RouteStatus;
}

export interface ReferenceGrant extends KubeObject {
  spec: {
    from: { group: string; kind: string; namespace: string }[];
    to: { group: string; kind: string; name?: string }[];
  };
}

export interface BackendTLSPolicy extends KubeObject {
  spec: {
    targetRefs: (ObjectReference & { sectionName?: string })[];
    validation: {
      caCertificateRefs?: ObjectReference[];
      wellKnownCACertificates?: string;
      hostname: string;
      subjectAltNames?: { type: string; hostname?: string; uri?: string }[];
    };
    options?: Record<string, string>;
  };
  status?: { ancestors: PolicyAncestorStatus[] };
}

export interface PolicyAncestorStatus {
  ancestorRef: ParentReference;
  controllerName: string;
  conditions: Condition[];
}
