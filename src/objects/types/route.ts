/** Route [route.openshift.io/v1], as its Go types have it. */
import type { KubeObject } from '../meta.ts';

/** route/v1 Route. */
export interface Route extends KubeObject {
  spec: RouteSpec;
  status: RouteStatus;
}

/** route/v1 RouteSpec. */
export interface RouteSpec {
  host?: string;
  subdomain?: string;
  path?: string;
  to: RouteTargetReference;
  alternateBackends?: RouteTargetReference[];
  port?: { targetPort: number | string };
  tls?: RouteTLS;
  /** `None` or `Subdomain`. */
  wildcardPolicy?: string;
  httpHeaders?: { actions?: { request?: RouteHeader[]; response?: RouteHeader[] } };
}

/** route/v1 RouteTargetReference. */
export interface RouteTargetReference {
  /** `Service`. */
  kind?: string;
  name: string;
  /** 0 to 256. */
  weight?: number | null;
}

/** route/v1 TLSConfig. */
export interface RouteTLS {
  /** `edge`, `reencrypt` or `passthrough`. */
  termination?: string;
  /** PEM, as are the next three. */
  certificate?: string;
  key?: string;
  caCertificate?: string;
  destinationCACertificate?: string;
  /** `None`, `Allow`, `Redirect` or nothing. */
  insecureEdgeTerminationPolicy?: string;
  externalCertificate?: { name: string };
}

/** route/v1 RouteHTTPHeader. */
export interface RouteHeader {
  name: string;
  action: { type: string; set?: { value: string } };
}

/** route/v1 RouteStatus. */
export interface RouteStatus {
  ingress?: RouteIngress[];
}

/** route/v1 RouteIngress: what one router says of a Route. */
export interface RouteIngress {
  host?: string;
  routerName?: string;
  wildcardPolicy?: string;
  routerCanonicalHostname?: string;
  conditions?: RouteIngressCondition[];
}

/** route/v1 RouteIngressCondition. */
export interface RouteIngressCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}
