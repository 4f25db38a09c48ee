import { compareText } from '../../objects/formats/go-text.ts';
import type { Ingress, IngressBackend } from '../../objects/types/networking.generated.ts';
import type { Route, RouteHTTPHeader, RouteTargetReference } from '../../objects/types/route.generated.ts';
import { type RouteSettings, routeSettings, type Termination } from './route-annotations.ts';

/** The rule of an Ingress or a Route for one host and path. Pure. */

/** The object that a rule comes from. */
export interface RuleSource {
  readonly kind: 'Ingress' | 'Route' | 'HTTPRoute' | 'GRPCRoute' | 'TLSRoute' | 'TCPRoute' | 'UDPRoute';
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

/** A certificate with its key, both PEM. */
export interface KeyPair {
  /** The certificate of the server, then those of authorities. */
  readonly certificate: string;
  readonly key: string;
}

/** TLS to a backend, by a BackendTLSPolicy. */
export interface BackendTls {
  /** SNI. */
  readonly serverName: string;
  /** PEM of whom is trusted; undefined: the system's authorities. */
  readonly ca: string | undefined;
  /** Names of which the certificate has to have one; empty: {@link serverName}. */
  readonly names: readonly { readonly type: 'Hostname' | 'URI'; readonly value: string }[];
  /** Shown to the backend where it asks. */
  readonly client: KeyPair | undefined;
}

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
  /** What annotations of a Route ask. */
  readonly settings: RouteSettings | undefined;
  /** TLS to the backend of a Route of Gateway API. */
  readonly backendTls?: BackendTls | undefined;
}

const ranks: Readonly<Record<PathMatch, number>> = { Exact: 0, Prefix: 1, ImplementationSpecific: 2 };

/** The order of rules with the same host and path: by the way they match, then by age, UID and name. */
function compareRules(a: HttpRule, b: HttpRule): number {
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

/** On an Ingress with TLS: `false` serves requests without TLS too, instead of sending them to https. */
export const redirectAnnotation = 'servicenet.dev/ssl-redirect';

/** The rules that an Ingress adds to the table. */
export interface IngressRules {
  readonly rules: readonly HttpRule[];
  /** For requests that no rule of any object matches. */
  readonly defaults: readonly HttpRule[];
}

/**
 * The rules of an Ingress. Left out are backends that are no Services, as ingress-nginx does. Without `http`, a host's
 * requests are for the default backend. ImplementationSpecific paths match as Prefix.
 */
export function ingressRules(ingress: Pick<Ingress, 'metadata' | 'spec'>): IngressRules {
  const { metadata, spec } = ingress;
  const namespace = metadata.namespace ?? '';
  const source: RuleSource = {
    kind: 'Ingress',
    namespace,
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    created: metadata.creationTimestamp ?? '',
  };
  const secured = new Set((spec.tls ?? []).flatMap(({ hosts }) => hosts ?? []).map(plainHost));
  const redirects = metadata.annotations?.[redirectAnnotation] !== 'false';
  const ruleOf = (host: string, path: string, match: PathMatch, backend: Backend): HttpRule => {
    const hasTls = secured.has(host) || secured.has(wildcardOf(host) ?? host);
    return {
      ...{ source, host, match, path },
      backends: [backend],
      termination: hasTls ? 'edge' : undefined,
      secure: true,
      insecure: hasTls && redirects ? 'Redirect' : 'Allow',
      redirectStatus: 308,
      requestHeaders: [],
      responseHeaders: [],
      destinationCA: undefined,
      settings: undefined,
    };
  };
  const rules: HttpRule[] = [];
  const hosts = new Set<string>(['']);
  for (const rule of spec.rules ?? []) {
    const host = plainHost(rule.host ?? '');
    hosts.add(host);
    for (const { path = '', pathType, backend } of rule.http?.paths ?? []) {
      const to = serviceOf(backend, namespace);
      if (to === undefined) continue;
      const match = pathType === 'Exact' || pathType === 'Prefix' ? pathType : 'ImplementationSpecific';
      rules.push(ruleOf(host, match === 'Exact' ? path : withoutSlash(path), match, to));
    }
  }
  const fallback = spec.defaultBackend === undefined ? undefined : serviceOf(spec.defaultBackend, namespace);
  const defaults =
    fallback === undefined ? [] : [...hosts].map((host) => ruleOf(host, '', 'Prefix', fallback));
  return { rules, defaults };
}

/** One slash at the end counts for nothing: elements are compared. */
function withoutSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path;
}

function serviceOf({ service }: IngressBackend, namespace: string): Backend | undefined {
  if (service === undefined) return undefined;
  const { name = '', number = 0 } = service.port ?? {};
  return { namespace, service: service.name, port: name === '' ? number : name, weight: 1 };
}

/** The weight of a Service without one inside the router; the API server writes 100. */
const missingWeight = 1;

/** Whether a Route is for every host of one label before the domain of its host. */
export function isWildcardRoute({ spec }: Pick<Route, 'spec'>): boolean {
  return spec.wildcardPolicy === 'Subdomain';
}

/** How the TLS of a Route ends; undefined for one without. The API server's default is `edge`. */
export function terminationOf({ spec }: Pick<Route, 'spec'>): Termination | undefined {
  if (spec.tls === undefined) return undefined;
  const termination = spec.tls.termination.toLowerCase();
  return termination === 'passthrough' || termination === 'reencrypt' ? termination : 'edge';
}

/**
 * The rule of a Route: http serves Routes without TLS, and those with TLS that allow it; Redirect sends to https, and
 * others are not served there (`template.go` of the router of OpenShift).
 *
 * @param host that the router gave it or the Route has.
 */
export function routeRule(route: Pick<Route, 'metadata' | 'spec'>, host: string): HttpRule {
  const { metadata, spec } = route;
  const namespace = metadata.namespace ?? '';
  const termination = terminationOf(route);
  const policy = spec.tls?.insecureEdgeTerminationPolicy ?? '';
  const backendOf = ({ name, weight }: RouteTargetReference): Backend => ({
    ...{ namespace, service: name },
    port: spec.port?.targetPort,
    weight: weight ?? missingWeight,
  });
  const plain = plainHost(host);
  return {
    source: {
      ...{ kind: 'Route', namespace, name: metadata.name ?? '', uid: metadata.uid ?? '' },
      created: metadata.creationTimestamp ?? '',
    },
    host: isWildcardRoute(route) ? (wildcardOf(plain) ?? plain) : plain,
    path: spec.path === undefined || spec.path === '/' ? '' : spec.path,
    match: 'Prefix',
    backends: [spec.to, ...(spec.alternateBackends ?? [])].map(backendOf),
    termination,
    secure: termination !== undefined,
    insecure: termination === undefined ? 'Allow' : insecureOf(termination, policy),
    redirectStatus: 302,
    requestHeaders: (spec.httpHeaders?.actions?.request ?? []).map(headerAction),
    responseHeaders: (spec.httpHeaders?.actions?.response ?? []).map(headerAction),
    destinationCA: spec.tls?.destinationCACertificate,
    settings: routeSettings(metadata.annotations ?? {}, termination),
  };
}

function insecureOf(termination: Termination, policy: string): HttpRule['insecure'] {
  if (policy === 'Redirect') return 'Redirect';
  return policy === 'Allow' && termination !== 'passthrough' ? 'Allow' : 'None';
}

/** A value is a HAProxy format: `%%` is a percent sign. */
function headerAction({ name, action }: RouteHTTPHeader): HeaderAction {
  const set = action.type === 'Set' ? action.set?.value : undefined;
  return { name: name.toLowerCase(), ...(set === undefined ? {} : { value: set.replaceAll('%%', '%') }) };
}

/** The rules of one host. */
interface PathRules {
  readonly exact: Map<string, HttpRule[]>;
  readonly prefixes: Map<string, HttpRule[]>;
}

/**
 * Rules by host and path. A request is matched by the rules of its host, then of the wildcard that covers it, then of all
 * hosts; within a host by the longest path, Exact before Prefix before ImplementationSpecific, then by the oldest object.
 * A change costs what its own rules cost; a lookup one step for each `/` of the request, up to that of the longest rule.
 */
export class HostRules {
  readonly #hosts = new Map<string, PathRules>();
  /** The most slashes in a prefix so far: it bounds the cost of a request with 10,000 slashes. */
  #depth = 0;

  add(rule: HttpRule): void {
    let paths = this.#hosts.get(rule.host);
    if (paths === undefined) {
      paths = { exact: new Map(), prefixes: new Map() };
      this.#hosts.set(rule.host, paths);
    }
    const lists = rule.match === 'Exact' ? paths.exact : paths.prefixes;
    const list = lists.get(rule.path);
    if (list === undefined) lists.set(rule.path, [rule]);
    else insertSorted(list, rule);
    if (rule.match !== 'Exact') this.#depth = Math.max(this.#depth, rule.path.split('/').length);
  }

  /** @param rule the same object that was added. */
  delete(rule: HttpRule): void {
    const paths = this.#hosts.get(rule.host);
    if (paths === undefined) return;
    const lists = rule.match === 'Exact' ? paths.exact : paths.prefixes;
    const rest = (lists.get(rule.path) ?? []).filter((one) => one !== rule);
    if (rest.length === 0) lists.delete(rule.path);
    else lists.set(rule.path, rest);
    if (paths.exact.size + paths.prefixes.size === 0) this.#hosts.delete(rule.host);
  }

  /** Whether any rule is for this very host, a wildcard that covers it, or all hosts. */
  hasHost(host: string): boolean {
    return this.#candidates(host).length > 0;
  }

  /**
   * The first rule that matches and is accepted.
   *
   * @param host as {@link plainHost} returns it.
   * @param path without the query.
   */
  find(host: string, path: string, accept: (rule: HttpRule) => boolean): HttpRule | undefined {
    for (const paths of this.#candidates(host)) {
      const found = paths.exact.get(path)?.find(accept) ?? this.#findPrefix(paths.prefixes, path, accept);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #candidates(host: string): PathRules[] {
    const found: PathRules[] = [];
    for (const key of new Set([host, wildcardOf(host) ?? '', ''])) {
      const paths = this.#hosts.get(key);
      if (paths !== undefined) found.push(paths);
    }
    return found;
  }

  #findPrefix(
    prefixes: ReadonlyMap<string, HttpRule[]>,
    path: string,
    accept: (rule: HttpRule) => boolean,
  ): HttpRule | undefined {
    if (prefixes.size === 0) return undefined;
    const slashes: number[] = [];
    for (let at = path.indexOf('/'); at !== -1 && slashes.length <= this.#depth;) {
      slashes.push(at);
      at = path.indexOf('/', at + 1);
    }
    // The whole path counts where no slash was left out behind it.
    if (slashes.length <= this.#depth) {
      const whole = prefixes.get(path)?.find(accept);
      if (whole !== undefined) return whole;
    }
    for (const slash of slashes.reverse()) {
      const found =
        prefixes.get(path.slice(0, slash + 1))?.find(accept) ??
        prefixes.get(path.slice(0, slash))?.find(accept);
      if (found !== undefined) return found;
    }
    return prefixes.get('')?.find(accept);
  }
}

/** Into its place by {@link compareRules}: thousands of rules may have one host and path. */
function insertSorted(list: HttpRule[], rule: HttpRule): void {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = list[middle];
    if (other !== undefined && compareRules(other, rule) <= 0) low = middle + 1;
    else high = middle;
  }
  list.splice(low, 0, rule);
}
