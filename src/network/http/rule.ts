/** The rule of an Ingress or a Route for one host and path. Pure. */
import { compareText } from '../../objects/go-text.ts';

/** The object that a rule comes from. */
export interface RuleSource {
  readonly kind: 'Ingress' | 'Route';
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** `creationTimestamp`; the older of two equal rules counts. */
  readonly created: string;
}

/** A Service that gets requests. */
export interface Backend {
  readonly namespace: string;
  readonly service: string;
  /**
   * Number or name. Of an Ingress: a port of the Service. Of a Route: `targetPort`, a port of the endpoints, or undefined
   * for the Service's first one.
   */
  readonly port: number | string | undefined;
  /** The share of this Service among those of the rule; 0: none. */
  readonly weight: number;
}

/** A header to set (`value`) or to delete (no `value`). Names are in lower case. */
export interface HeaderAction {
  readonly name: string;
  readonly value?: string;
}

/** How TLS ends: `edge` here, `reencrypt` here and again at the backend, `passthrough` at the backend alone. */
export type Termination = 'edge' | 'reencrypt' | 'passthrough';

/** How a path matches. A Route's path is a `Prefix`. */
export type PathMatch = 'Exact' | 'Prefix' | 'ImplementationSpecific';

/** One host and path, and the backends of their requests. */
export interface HttpRule {
  readonly source: RuleSource;
  /** Lower case; `*.example.com` for one label before the domain, "" for every host. */
  readonly host: string;
  /**
   * Exact: the whole path. Otherwise a prefix by elements: `/a` matches `/a` and `/a/b`; `/a/` matches only paths
   * below it; "" matches all.
   */
  readonly path: string;
  readonly match: PathMatch;
  readonly backends: readonly Backend[];
  /** Undefined: the object has no TLS settings. */
  readonly termination: Termination | undefined;
  /** Whether requests with TLS are served. */
  readonly secure: boolean;
  /** The treatment of requests without TLS. */
  readonly insecure: 'Allow' | 'Redirect' | 'None';
  /** Status of the redirect to https: 308 as ingress-nginx has it, 302 as the router of OpenShift. */
  readonly redirectStatus: 302 | 308;
  readonly requestHeaders: readonly HeaderAction[];
  readonly responseHeaders: readonly HeaderAction[];
  /** PEM of the authority that signs the certificates of a re-encrypting rule's backends. */
  readonly destinationCA: string | undefined;
}

const ranks: Readonly<Record<PathMatch, number>> = { Exact: 0, Prefix: 1, ImplementationSpecific: 2 };

/** The order of rules with the same host and path: by the way they match, then by age, UID and name. */
export function compareRules(a: HttpRule, b: HttpRule): number {
  return (
    ranks[a.match] - ranks[b.match] ||
    compareText(a.source.created, b.source.created) ||
    compareText(a.source.uid, b.source.uid) ||
    compareText(a.source.namespace, b.source.namespace) ||
    compareText(a.source.name, b.source.name)
  );
}

/** The host of a request or rule: lower case, without its port and the dot at its end. */
export function plainHost(host: string): string {
  const port = host.startsWith('[') ? host.indexOf(':', host.indexOf(']')) : host.indexOf(':');
  const name = (port === -1 ? host : host.slice(0, port)).toLowerCase();
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

/** `a.example.com` → `*.example.com`: the wildcard that covers a host; undefined for a host of one label. */
export function wildcardOf(host: string): string | undefined {
  const dot = host.indexOf('.');
  return dot <= 0 || dot === host.length - 1 ? undefined : `*${host.slice(dot)}`;
}
