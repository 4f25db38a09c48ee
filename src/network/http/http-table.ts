import type { ObjectKey } from '../../objects/meta.ts';
import type { Ingress } from '../../objects/types/networking.generated.ts';
import type { Route } from '../../objects/types/route.generated.ts';
import { HostRules } from './rules.ts';
import { ingressRules } from './rules.ts';
import {
  type RouteAdmission,
  type RouteRefusal,
  RouteClaims,
  type RouteClaimOptions,
} from './route-claims.ts';
import { routeRule } from './rules.ts';
import { type HttpRule, plainHost } from './rules.ts';

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
export class HttpTable {
  readonly #rules = new HostRules();
  readonly #defaults = new HostRules();
  readonly #ingresses = new Map<ObjectKey, { rules: readonly HttpRule[]; defaults: readonly HttpRule[] }>();
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

  /** @param ingress undefined: gone, or not ours. */
  setIngress(key: ObjectKey, ingress: Pick<Ingress, 'metadata' | 'spec'> | undefined): void {
    const old = this.#ingresses.get(key);
    for (const rule of old?.rules ?? []) this.#rules.delete(rule);
    for (const rule of old?.defaults ?? []) this.#defaults.delete(rule);
    this.#ingresses.delete(key);
    if (ingress === undefined) return;
    const made = ingressRules(ingress);
    for (const rule of made.rules) this.#rules.add(rule);
    for (const rule of made.defaults) this.#defaults.add(rule);
    this.#ingresses.set(key, made);
  }

  /**
   * @param route undefined: gone.
   * @param problem of its certificates or its combination of fields: it claims its host and is not served.
   * @returns the Routes whose admission may be another now.
   */
  setRoute(key: ObjectKey, route: Route | undefined, problem?: RouteRefusal): Set<ObjectKey> {
    if (route === undefined) this.#routes.delete(key);
    else this.#routes.set(key, { route, problem });
    const changed = this.#claims.set(key, route);
    for (const other of changed) this.#serve(other);
    return changed;
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
    return this.#rules.find(plainHost(serverName), '/', ({ termination }) => termination === 'passthrough');
  }

  /** The backend of a request. */
  resolve({ scheme, host: given, path }: RoutedRequest): HttpDecision {
    const host = plainHost(given);
    const isServed = (rule: HttpRule): boolean =>
      scheme === 'https' ? rule.secure && rule.termination !== 'passthrough' : rule.insecure !== 'None';
    const rule = this.#rules.find(host, path, isServed) ?? this.#defaults.find(host, path, isServed);
    if (rule !== undefined) {
      if (scheme === 'https' || rule.insecure === 'Allow') return { kind: 'forward', rule };
      return { kind: 'redirect', rule, status: rule.redirectStatus };
    }
    const other = this.#rules.find(host, path, () => true);
    if (other === undefined) {
      const reason = this.#rules.hasHost(host) ? 'NoPath' : 'NoHost';
      return { kind: 'refuse', rule: other, status: 404, reason };
    }
    const secure = other.termination === 'passthrough' ? 'PassthroughOnly' : 'NotServedSecurely';
    const reason = scheme === 'https' ? secure : 'NotServedInsecurely';
    return { kind: 'refuse', rule: other, status: 503, reason };
  }

  #serve(key: ObjectKey): void {
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
