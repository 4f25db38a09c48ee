import { compareText } from '../../objects/go-text.ts';
import { isDNS1123Label, isDNS1123Subdomain } from '../../objects/names.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Route } from '../../objects/types/route.generated.ts';
import { isWildcardRoute, terminationOf, plainHost, wildcardOf } from './rules.ts';

/** The settings of a router for Routes' claims of hosts. */
export interface RouteClaimOptions {
  /** For Routes with a subdomain and no host: `<subdomain>.<domain>`; "" for none. */
  readonly domain: string;
  /** Hosts may be these and below; empty: all. */
  readonly allowedDomains: readonly string[];
  /** Hosts may not be these nor below; goes before {@link allowedDomains}. */
  readonly deniedDomains: readonly string[];
  /** Whether `wildcardPolicy: Subdomain` is admitted. */
  readonly wildcards: boolean;
  /** Whether a host belongs to the namespace of its oldest Route. Otherwise only host and path are claimed. */
  readonly ownership: boolean;
}

/** The admission of a Route by a router. */
export interface RouteAdmission {
  /** The host that the router serves, `*.` left out; "" for none. */
  readonly host: string;
  /** Undefined: admitted. */
  readonly refusal: RouteRefusal | undefined;
}

/** Why a Route is not served: the reason and message of its condition Admitted. */
export interface RouteRefusal {
  readonly reason: string;
  readonly message: string;
}

interface Claim {
  readonly key: ObjectKey;
  readonly route: Route;
  readonly host: string;
  /** Claims in one group can conflict, others cannot. */
  readonly group: string;
  /** A refusal by the host itself; such Routes claim nothing. */
  readonly refusal: RouteRefusal | undefined;
}

/**
 * Who may serve which host, as the router of OpenShift decides (`host_admitter.go`, `unique_host.go`): the oldest Route
 * gets its host for its namespace. What is admitted depends on the Routes alone, not on the order in which they came: an
 * older one displaces others, and when it goes, they are admitted again, the oldest first.
 */
export class RouteClaims {
  readonly #options: RouteClaimOptions;
  readonly #claims = new Map<ObjectKey, Claim>();
  readonly #groups = new Map<string, Claim[]>();
  readonly #admissions = new Map<ObjectKey, RouteAdmission>();

  constructor(options: RouteClaimOptions) {
    this.#options = options;
  }

  /** Undefined for an unknown Route. */
  admissionOf(key: ObjectKey): RouteAdmission | undefined {
    return this.#admissions.get(key);
  }

  /** Adds, changes or (undefined) removes a Route. @returns the keys whose admission is now another, and `key` itself. */
  set(key: ObjectKey, route: Route | undefined): Set<ObjectKey> {
    const old = this.#claims.get(key);
    const claim = route === undefined ? undefined : this.#claimOf(route);
    const changed = new Set<ObjectKey>([key]);
    if (old !== undefined) {
      this.#claims.delete(key);
      this.#admissions.delete(key);
      const rest = (this.#groups.get(old.group) ?? []).filter((one) => one !== old);
      if (rest.length === 0) this.#groups.delete(old.group);
      else this.#groups.set(old.group, rest);
    }
    if (claim !== undefined) {
      this.#claims.set(key, claim);
      const group = this.#groups.get(claim.group) ?? [];
      this.#groups.set(claim.group, [...group, claim].sort(compareClaims));
    }
    for (const group of new Set([old?.group, claim?.group])) {
      if (group !== undefined) this.#decide(group, changed);
    }
    return changed;
  }

  #claimOf(route: Route): Claim {
    const { host: given = '', subdomain = '' } = route.spec;
    const { domain, wildcards } = this.#options;
    const host = plainHost(
      given === '' && subdomain !== '' && domain !== '' ? `${subdomain}.${domain}` : given,
    );
    const group = wildcards ? (wildcardOf(host) ?? host) : host;
    return { key: keyOf(route), route, host, group, refusal: this.#hostRefusal(route, host) };
  }

  #hostRefusal(route: Route, host: string): RouteRefusal | undefined {
    const { allowedDomains, deniedDomains, wildcards } = this.#options;
    const notAdmitted = (message: string): RouteRefusal => ({ reason: 'RouteNotAdmitted', message });
    if (host === '') return { reason: 'NoHostValue', message: 'no host is set and the router gives none' };
    const { wildcardPolicy = '' } = route.spec;
    if (!['', 'None', 'Subdomain'].includes(wildcardPolicy)) {
      return notAdmitted(`the wildcard policy ${JSON.stringify(wildcardPolicy)} is unknown`);
    }
    if (isWildcardRoute(route) && !wildcards) return notAdmitted('wildcard routes are not allowed');
    const isBelow = (domain: string): boolean => host === domain || host.endsWith(`.${domain}`);
    if (deniedDomains.some(isBelow)) return notAdmitted('the host is in a denied domain');
    if (allowedDomains.length > 0 && !allowedDomains.some(isBelow)) {
      return notAdmitted('the host is in no allowed domain');
    }
    // The annotation that lets the API server take longer labels changes nothing here.
    const isLabelled = host.split('.').every((label) => isDNS1123Label(label).length === 0);
    if (isLabelled && isDNS1123Subdomain(host).length === 0) return undefined;
    return { reason: 'InvalidHost', message: `the host ${JSON.stringify(host.slice(0, 64))} is no DNS name` };
  }

  /** Admits the Routes of a group, the oldest first: each that conflicts with no admitted one. */
  #decide(group: string, changed: Set<ObjectKey>): void {
    const admitted = new AdmittedClaims(this.#options.ownership);
    for (const claim of this.#groups.get(group) ?? []) {
      const refusal = claim.refusal ?? admitted.add(claim);
      const old = this.#admissions.get(claim.key);
      const isSame =
        old !== undefined &&
        old.host === claim.host &&
        old.refusal?.reason === refusal?.reason &&
        old.refusal?.message === refusal?.message;
      if (isSame) continue;
      this.#admissions.set(claim.key, { host: claim.host, refusal });
      changed.add(claim.key);
    }
  }
}

/** The age of a Route: its creation, then its UID as text. */
function compareClaims({ route: { metadata: a } }: Claim, { route: { metadata: b } }: Claim): number {
  return (
    compareText(a.creationTimestamp ?? '', b.creationTimestamp ?? '') || compareText(a.uid ?? '', b.uid ?? '')
  );
}

/**
 * The Routes that are admitted in a group, with a lookup for each kind of conflict: a group may have thousands of
 * Routes.
 */
class AdmittedClaims {
  readonly #ownership: boolean;
  /** By host, with `*.` for wildcards; then path. */
  readonly #paths = new Map<string, Map<string, Claim>>();
  /** By the same host: a Route that ends TLS elsewhere than here, and one that ends it here. */
  readonly #passthrough = new Map<string, Claim>();
  readonly #terminated = new Map<string, Claim>();
  readonly #wildcards: Claim[] = [];
  /** The first Route of a host below the domain, by namespace: all of the group. */
  readonly #namespaces = new Map<string, Claim>();

  constructor(ownership: boolean) {
    this.#ownership = ownership;
  }

  /** Why the Route is refused; otherwise it is admitted from now on. */
  add(claim: Claim): RouteRefusal | undefined {
    const { route, host } = claim;
    const isWildcard = isWildcardRoute(route);
    const name = isWildcard ? (wildcardOf(host) ?? host) : host;
    const holder = this.#holder(claim, name, isWildcard);
    if (holder !== undefined) return claimed(claim, holder);
    const paths = this.#paths.get(name) ?? new Map<string, Claim>();
    paths.set(pathOf(claim), claim);
    this.#paths.set(name, paths);
    const termination = terminationOf(route);
    if (termination === 'passthrough') this.#passthrough.set(name, claim);
    else if (termination !== undefined && !this.#terminated.has(name)) this.#terminated.set(name, claim);
    if (isWildcard) this.#wildcards.push(claim);
    const namespace = namespaceOf(claim);
    if (!this.#namespaces.has(namespace)) this.#namespaces.set(namespace, claim);
    return undefined;
  }

  #holder(claim: Claim, name: string, isWildcard: boolean): Claim | undefined {
    const namespace = namespaceOf(claim);
    const paths = this.#paths.get(name);
    if (this.#ownership) {
      const [owner] = paths?.values() ?? [];
      if (owner !== undefined && namespaceOf(owner) !== namespace) return owner;
      const others = isWildcard ? this.#namespaces.values() : this.#wildcards;
      for (const other of others) if (namespaceOf(other) !== namespace) return other;
    }
    const same = paths?.get(pathOf(claim));
    if (same !== undefined) return same;
    const termination = terminationOf(claim.route);
    if (termination === undefined) return undefined;
    return (
      this.#passthrough.get(name) ?? (termination === 'passthrough' ? this.#terminated.get(name) : undefined)
    );
  }
}

function namespaceOf({ route }: Claim): string {
  return route.metadata.namespace ?? '';
}

function pathOf({ route }: Claim): string {
  const { path = '' } = route.spec;
  return path === '/' ? '' : path;
}

/** The name of a Route of another namespace stays hidden. */
function claimed(claim: Claim, holder: Claim): RouteRefusal {
  const message =
    namespaceOf(holder) === namespaceOf(claim)
      ? `the older route ${holder.route.metadata.name ?? ''} holds host ${claim.host}`
      : `a route in another namespace holds host ${claim.host}`;
  return { reason: 'HostAlreadyClaimed', message };
}

/**
 * Why a Route is refused for its header actions. HAProxy expands formats in values (`%[req.hdr(Host)]`); this
 * router does not, and a backend would receive the format. `%%` is a percent sign.
 */
export function dynamicHeaderProblem({ spec }: Pick<Route, 'spec'>): RouteRefusal | undefined {
  const { request = [], response = [] } = spec.httpHeaders?.actions ?? {};
  const dynamic = [...request, ...response].find(({ action }) =>
    (action.set?.value ?? '').replaceAll('%%', '').includes('%'),
  );
  if (dynamic === undefined) return undefined;
  const message = `the value for the header ${dynamic.name} is dynamic (%[…]), which this router does not support`;
  return { reason: 'ExtendedValidationFailed', message };
}
