import type { RouteRefusalReason } from '../../objects/reasons.ts';
import { compareText } from '../../objects/formats/go-text.ts';
import { isDNS1123Label, isDNS1123Subdomain } from '../../objects/names.ts';
import { keyOf, type ObjectKey, type ObjectMeta } from '../../objects/meta.ts';
import type { Ingress } from '../../objects/types/networking.generated.ts';
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
  /** Whether a host belongs to the namespace that claimed it first. Otherwise only Routes claim, host and path. */
  readonly ownership: boolean;
}

/** The admission of a Route by a router. */
export interface RouteAdmission {
  /** The host that the router serves, `*.` left out; "" for none. */
  readonly host: string;
  /** Undefined: admitted. */
  readonly refusal: RouteRefusal | undefined;
}

/** Why a Route, or a host of an Ingress, is not served: reason and message of the condition Admitted and of an Event. */
export interface RouteRefusal {
  readonly reason: RouteRefusalReason;
  readonly message: string;
}

/** An object that wants a host; an Ingress may want several. */
interface Claim {
  readonly key: ObjectKey;
  readonly metadata: Pick<ObjectMeta, 'namespace' | 'name' | 'uid' | 'creationTimestamp'>;
  /** Undefined: of an Ingress. */
  readonly route: Route | undefined;
  readonly host: string;
  /** The host, or `*.` and the domain. */
  readonly name: string;
  /** Claims in one group can conflict; those of others only with an Ingress' wildcard above them. */
  readonly group: string;
  /** A refusal by the host itself; such Routes claim nothing. */
  readonly refusal: RouteRefusal | undefined;
}

/** The objects whose admission is another after a change. */
export interface ClaimChanges {
  readonly routes: Set<ObjectKey>;
  readonly ingresses: Set<ObjectKey>;
}

/**
 * Who may serve which host. Among Routes the router of OpenShift decides so (`host_admitter.go`, `unique_host.go`): the
 * oldest one gets its host for its namespace. Hosts of Ingresses are claimed alike, so that a host belongs to one
 * namespace, whatever kind its objects are; a wildcard of an Ingress is for each host below it that has no older claim.
 * What is admitted depends on the objects alone, not on the order in which they came: an older one displaces others, and
 * when it goes, they are admitted again, the oldest first.
 */
export class RouteClaims {
  readonly #options: RouteClaimOptions;
  readonly #routes = new Map<ObjectKey, Claim>();
  readonly #ingresses = new Map<ObjectKey, readonly Claim[]>();
  readonly #groups = new Map<string, Claim[]>();
  /** The groups of hosts below a wildcard, by its name. */
  readonly #below = new Map<string, Set<string>>();
  readonly #admissions = new Map<ObjectKey, RouteAdmission>();
  readonly #refusedHosts = new Map<ObjectKey, Map<string, RouteRefusal>>();
  /** By group: the namespace of each name. */
  readonly #owners = new Map<string, ReadonlyMap<string, string>>();

  constructor(options: RouteClaimOptions) {
    this.#options = options;
  }

  /** Undefined for an unknown Route. */
  admissionOf(key: ObjectKey): RouteAdmission | undefined {
    return this.#admissions.get(key);
  }

  /** The hosts of an Ingress that another namespace has. */
  refusedHosts(key: ObjectKey): ReadonlyMap<string, RouteRefusal> {
    return this.#refusedHosts.get(key) ?? new Map<string, RouteRefusal>();
  }

  /** The namespace that alone serves a host; undefined where nobody claims it, or hosts are shared. */
  ownerOf(host: string): string | undefined {
    if (!this.#options.ownership) return undefined;
    const wildcard = wildcardOf(host) ?? host;
    return this.#owners.get(this.#groupOf(host))?.get(host) ?? this.#owners.get(wildcard)?.get(wildcard);
  }

  /** Adds, changes or (undefined) removes a Route. @returns what is now another, and `key` itself. */
  set(key: ObjectKey, route: Route | undefined): ClaimChanges {
    const old = this.#routes.get(key);
    const claim = route === undefined ? undefined : this.#claimOf(route);
    this.#admissions.delete(key);
    if (claim === undefined) this.#routes.delete(key);
    else this.#routes.set(key, claim);
    const changes = this.#replace(old === undefined ? [] : [old], claim === undefined ? [] : [claim]);
    changes.routes.add(key);
    return changes;
  }

  /** The same for an Ingress: it claims the hosts of its rules and of its certificates. */
  setIngress(key: ObjectKey, ingress: Pick<Ingress, 'metadata' | 'spec'> | undefined): ClaimChanges {
    const claims = ingress === undefined ? [] : this.#claimsOf(key, ingress);
    const old = this.#ingresses.get(key) ?? [];
    this.#refusedHosts.delete(key);
    if (ingress === undefined) this.#ingresses.delete(key);
    else this.#ingresses.set(key, claims);
    const changes = this.#replace(old, claims);
    changes.ingresses.add(key);
    return changes;
  }

  #replace(old: readonly Claim[], made: readonly Claim[]): ClaimChanges {
    const groups = new Set<string>();
    for (const claim of old) {
      const { group } = claim;
      groups.add(group);
      const rest = (this.#groups.get(group) ?? []).filter((one) => one !== claim);
      if (rest.length > 0) this.#groups.set(group, rest);
      else {
        this.#groups.delete(group);
        const above = wildcardOf(group) ?? group;
        const below = this.#below.get(above);
        below?.delete(group);
        if (below?.size === 0) this.#below.delete(above);
      }
    }
    for (const claim of made) {
      const { group } = claim;
      groups.add(group);
      this.#groups.set(group, [...(this.#groups.get(group) ?? []), claim].sort(compareClaims));
      const above = wildcardOf(group) ?? group;
      if (above !== group) this.#below.set(above, (this.#below.get(above) ?? new Set()).add(group));
    }
    const changes = { routes: new Set<ObjectKey>(), ingresses: new Set<ObjectKey>() };
    for (const group of [...groups]) {
      for (const below of this.#below.get(group) ?? []) groups.add(below);
    }
    for (const group of groups) this.#decide(group, changes);
    return changes;
  }

  #groupOf(host: string): string {
    return this.#options.wildcards ? (wildcardOf(host) ?? host) : host;
  }

  #claimsOf(key: ObjectKey, { metadata, spec }: Pick<Ingress, 'metadata' | 'spec'>): Claim[] {
    const named = [
      ...(spec.rules ?? []).map(({ host }) => host),
      ...(spec.tls ?? []).flatMap(({ hosts }) => hosts),
    ];
    const hosts = new Set(named.map((host = '') => plainHost(host)).filter((host) => host !== ''));
    return [...hosts].map((host) => ({
      ...{ key, metadata, host, name: host, group: this.#groupOf(host) },
      ...{ route: undefined, refusal: undefined },
    }));
  }

  #claimOf(route: Route): Claim {
    const { host: given = '', subdomain = '' } = route.spec;
    const { domain } = this.#options;
    const host = plainHost(
      given === '' && subdomain !== '' && domain !== '' ? `${subdomain}.${domain}` : given,
    );
    const name = isWildcardRoute(route) ? (wildcardOf(host) ?? host) : host;
    return {
      ...{ key: keyOf(route), metadata: route.metadata, route, host, name, group: this.#groupOf(host) },
      refusal: this.#hostRefusal(route, host),
    };
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

  /** Admits the claims of a group, the oldest first: each that conflicts with no admitted one. */
  #decide(group: string, changes: ClaimChanges): void {
    const admitted = new AdmittedClaims(this.#options.ownership);
    const own = this.#groups.get(group) ?? [];
    const above = wildcardOf(group) ?? group;
    const wildcards = above === group ? [] : (this.#groups.get(above) ?? []);
    const claims = wildcards.length === 0 ? own : [...own, ...wildcards].sort(compareClaims);
    for (const claim of claims) {
      const refusal = claim.refusal ?? admitted.add(claim);
      // Those above are decided in their own group.
      if (claim.group !== group) continue;
      if (claim.route === undefined) this.#admitIngress(claim, refusal, changes.ingresses);
      else this.#admitRoute(claim, refusal, changes.routes);
    }
    if (own.length === 0) this.#owners.delete(group);
    else this.#owners.set(group, admitted.owners());
  }

  #admitRoute({ key, host }: Claim, refusal: RouteRefusal | undefined, changed: Set<ObjectKey>): void {
    const old = this.#admissions.get(key);
    if (old !== undefined && old.host === host && isSame(old.refusal, refusal)) return;
    this.#admissions.set(key, { host, refusal });
    changed.add(key);
  }

  #admitIngress({ key, host }: Claim, refusal: RouteRefusal | undefined, changed: Set<ObjectKey>): void {
    const refused = this.#refusedHosts.get(key) ?? new Map<string, RouteRefusal>();
    if (isSame(refused.get(host), refusal)) return;
    if (refusal === undefined) refused.delete(host);
    else refused.set(host, refusal);
    if (refused.size === 0) this.#refusedHosts.delete(key);
    else this.#refusedHosts.set(key, refused);
    changed.add(key);
  }
}

function isSame(a: RouteRefusal | undefined, b: RouteRefusal | undefined): boolean {
  return a?.reason === b?.reason && a?.message === b?.message;
}

/** The age of an object: its creation, then its UID as text. */
function compareClaims({ metadata: a }: Claim, { metadata: b }: Claim): number {
  return (
    compareText(a.creationTimestamp ?? '', b.creationTimestamp ?? '') || compareText(a.uid ?? '', b.uid ?? '')
  );
}

/**
 * The claims that are admitted in a group, with a lookup for each kind of conflict: a group may have thousands of
 * Routes.
 */
class AdmittedClaims {
  readonly #ownership: boolean;
  /** The first claim of each name. */
  readonly #first = new Map<string, Claim>();
  /** Of Routes: by name, then path. */
  readonly #paths = new Map<string, Map<string, Claim>>();
  /** By the same host: a Route that ends TLS elsewhere than here, and one that ends it here. */
  readonly #passthrough = new Map<string, Claim>();
  readonly #terminated = new Map<string, Claim>();
  readonly #wildcards: Claim[] = [];
  /** The first claim of a host below the domain, by namespace: all of the group. */
  readonly #namespaces = new Map<string, Claim>();

  constructor(ownership: boolean) {
    this.#ownership = ownership;
  }

  /** The namespace of each name. */
  owners(): ReadonlyMap<string, string> {
    return new Map([...this.#first].map(([name, claim]) => [name, namespaceOf(claim)]));
  }

  /** Why the claim is refused; otherwise it is admitted from now on. */
  add(claim: Claim): RouteRefusal | undefined {
    const { route, name } = claim;
    const holder = this.#holder(claim);
    if (holder !== undefined) return claimed(claim, holder);
    if (!this.#first.has(name)) this.#first.set(name, claim);
    if (isWildcard(claim)) this.#wildcards.push(claim);
    const namespace = namespaceOf(claim);
    if (!this.#namespaces.has(namespace)) this.#namespaces.set(namespace, claim);
    if (route === undefined) return undefined;
    const paths = this.#paths.get(name) ?? new Map<string, Claim>();
    paths.set(pathOf(route), claim);
    this.#paths.set(name, paths);
    const termination = terminationOf(route);
    if (termination === 'passthrough') this.#passthrough.set(name, claim);
    else if (termination !== undefined && !this.#terminated.has(name)) this.#terminated.set(name, claim);
    return undefined;
  }

  /** Claims of other names that keep a claim out, if they are another namespace's. */
  #rivals(claim: Claim, owner: Claim | undefined): Iterable<Claim> {
    // A wildcard of an Ingress leaves others the hosts that they had before.
    if (!isWildcard(claim)) return owner === undefined ? this.#wildcards : [];
    return claim.route === undefined ? [] : this.#namespaces.values();
  }

  #holder(claim: Claim): Claim | undefined {
    const { name, route } = claim;
    if (this.#ownership) {
      const owner = this.#first.get(name);
      const isOthers = (other: Claim): boolean => namespaceOf(other) !== namespaceOf(claim);
      if (owner !== undefined && isOthers(owner)) return owner;
      for (const other of this.#rivals(claim, owner)) if (isOthers(other)) return other;
    }
    if (route === undefined) return undefined;
    const same = this.#paths.get(name)?.get(pathOf(route));
    if (same !== undefined) return same;
    const termination = terminationOf(route);
    if (termination === undefined) return undefined;
    return (
      this.#passthrough.get(name) ?? (termination === 'passthrough' ? this.#terminated.get(name) : undefined)
    );
  }
}

function isWildcard({ name }: Claim): boolean {
  return name.startsWith('*.');
}

function namespaceOf({ metadata }: Claim): string {
  return metadata.namespace ?? '';
}

function pathOf({ spec: { path = '' } }: Route): string {
  return path === '/' ? '' : path;
}

/** The name of an object of another namespace stays hidden. */
function claimed(claim: Claim, holder: Claim): RouteRefusal {
  const kind = holder.route === undefined ? 'ingress' : 'route';
  const message =
    namespaceOf(holder) === namespaceOf(claim)
      ? `the older ${kind} ${holder.metadata.name ?? ''} holds host ${claim.host}`
      : `${kind === 'route' ? 'a' : 'an'} ${kind} in another namespace holds host ${claim.host}`;
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
