import type { ObjectKey } from '../../objects/meta.ts';
import type { Ingress } from '../../objects/types/networking.generated.ts';
import type { Route } from '../../objects/types/route.generated.ts';
import {
  type ClaimChanges,
  type RouteAdmission,
  type RouteRefusal,
  RouteClaims,
  type RouteClaimOptions,
} from './route-claims.ts';
import { HostRules, type HttpRule, type IngressRules, ingressRules, plainHost, routeRule } from './rules.ts';

/** The parts of a request that choose the backend. */
export interface RoutedRequest {
  readonly scheme: 'http' | 'https';
  /** The header Host or `:authority`; case, port and a dot at the end do not matter. */
  readonly host: string;
  /** Without the query. */
  readonly path: string;
}

/** The treatment of a request. `reason` is the word of logs and metrics. */
export type HttpDecision =
  | { readonly kind: 'forward'; readonly rule: HttpRule }
  | { readonly kind: 'redirect'; readonly rule: HttpRule; readonly status: 302 | 308 }
  | {
      readonly kind: 'refuse';
      readonly rule: HttpRule | undefined;
      readonly status: 404 | 503;
      readonly reason: 'NoHost' | 'NoPath' | 'NotServedInsecurely' | 'NotServedSecurely' | 'PassthroughOnly';
    };

/** One table of hosts and paths from Ingresses and Routes. A change costs what the object itself costs. */
export class RoutingTable {
  readonly #rules = new HostRules();
  readonly #defaults = new HostRules();
  readonly #ingresses = new Map<ObjectKey, Pick<Ingress, 'metadata' | 'spec'>>();
  readonly #ingressRules = new Map<ObjectKey, IngressRules>();
  readonly #routes = new Map<
    ObjectKey,
    { readonly route: Route; readonly problem: RouteRefusal | undefined }
  >();
  readonly #routeRules = new Map<ObjectKey, HttpRule>();
  readonly #claims: RouteClaims;
  /** Rules that pass TLS through: without any, connections need no look at their first bytes. */
  #passthroughs = 0;

  constructor(options: RouteClaimOptions) {
    this.#claims = new RouteClaims(options);
  }

  /**
   * @param ingress undefined: gone, or not ours.
   * @returns the objects whose hosts may be others now.
   */
  setIngress(key: ObjectKey, ingress: Pick<Ingress, 'metadata' | 'spec'> | undefined): ClaimChanges {
    if (ingress === undefined) this.#ingresses.delete(key);
    else this.#ingresses.set(key, ingress);
    return this.#serve(this.#claims.setIngress(key, ingress));
  }

  /**
   * @param route undefined: gone.
   * @param problem of its certificates or its combination of fields: it claims its host and is not served.
   * @returns the objects whose admission may be another now.
   */
  setRoute(key: ObjectKey, route: Route | undefined, problem?: RouteRefusal): ClaimChanges {
    if (route === undefined) this.#routes.delete(key);
    else this.#routes.set(key, { route, problem });
    return this.#serve(this.#claims.set(key, route));
  }

  /** The hosts of an Ingress that another namespace has: they are not served by it. */
  refusedHosts(key: ObjectKey): ReadonlyMap<string, RouteRefusal> {
    return this.#claims.refusedHosts(key);
  }

  /** The admission of a Route; undefined for an unknown one. */
  admissionOf(key: ObjectKey): RouteAdmission | undefined {
    const claim = this.#claims.admissionOf(key);
    if (claim === undefined || claim.refusal !== undefined) return claim;
    return { ...claim, refusal: this.#routes.get(key)?.problem };
  }

  get hasPassthrough(): boolean {
    return this.#passthroughs > 0;
  }

  /** Whether TLS of a server name goes to a backend as it is. */
  passthrough(serverName: string): HttpRule | undefined {
    const host = plainHost(serverName);
    const isOwn = this.#ownRules(host);
    return this.#rules.find(host, '/', (rule) => rule.termination === 'passthrough' && isOwn(rule));
  }

  /** The backend of a request. */
  resolve({ scheme, host: given, path }: RoutedRequest): HttpDecision {
    const host = plainHost(given);
    const isOwn = this.#ownRules(host);
    const isServed = (rule: HttpRule): boolean =>
      isOwn(rule) &&
      (scheme === 'https' ? rule.secure && rule.termination !== 'passthrough' : rule.insecure !== 'None');
    const other = this.#rules.find(host, path, isOwn);
    // What a host serves by TLS alone is nobody else's without it.
    const rule =
      other === undefined
        ? this.#defaults.find(host, path, isServed)
        : this.#rules.find(host, path, (one) => one.host === other.host && isServed(one));
    if (rule !== undefined) {
      if (scheme === 'https' || rule.insecure === 'Allow') return { kind: 'forward', rule };
      return { kind: 'redirect', rule, status: rule.redirectStatus };
    }
    if (other === undefined) {
      const reason = this.#rules.hasHost(host) ? 'NoPath' : 'NoHost';
      return { kind: 'refuse', rule: other, status: 404, reason };
    }
    const secure = other.termination === 'passthrough' ? 'PassthroughOnly' : 'NotServedSecurely';
    const reason = scheme === 'https' ? secure : 'NotServedInsecurely';
    return { kind: 'refuse', rule: other, status: 503, reason };
  }

  /** Whether a rule may serve a host: it is of the namespace that has the host, if one has it. */
  #ownRules(host: string): (rule: HttpRule) => boolean {
    const owner = this.#claims.ownerOf(host);
    return ({ source }) => owner === undefined || source.namespace === owner;
  }

  #serve(changes: ClaimChanges): ClaimChanges {
    for (const key of changes.ingresses) this.#serveIngress(key);
    for (const key of changes.routes) this.#serveRoute(key);
    return changes;
  }

  #serveIngress(key: ObjectKey): void {
    const old = this.#ingressRules.get(key);
    for (const rule of old?.rules ?? []) this.#rules.delete(rule);
    for (const rule of old?.defaults ?? []) this.#defaults.delete(rule);
    this.#ingressRules.delete(key);
    const ingress = this.#ingresses.get(key);
    if (ingress === undefined) return;
    const refused = this.#claims.refusedHosts(key);
    const { rules, defaults } = ingressRules(ingress);
    const isOurs = ({ host }: HttpRule): boolean => !refused.has(host);
    const made = { rules: rules.filter(isOurs), defaults: defaults.filter(isOurs) };
    for (const rule of made.rules) this.#rules.add(rule);
    for (const rule of made.defaults) this.#defaults.add(rule);
    this.#ingressRules.set(key, made);
  }

  #serveRoute(key: ObjectKey): void {
    const old = this.#routeRules.get(key);
    if (old !== undefined) {
      this.#rules.delete(old);
      this.#routeRules.delete(key);
      if (old.termination === 'passthrough') this.#passthroughs--;
    }
    const known = this.#routes.get(key);
    const admission = this.admissionOf(key);
    if (known === undefined || admission === undefined || admission.refusal !== undefined) return;
    const rule = routeRule(known.route, admission.host);
    this.#rules.add(rule);
    this.#routeRules.set(key, rule);
    if (rule.termination === 'passthrough') this.#passthroughs++;
  }
}
