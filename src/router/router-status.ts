import { isReady } from '../objects/endpoints.ts';
import { services } from '../client/resources.ts';
import type { Informer } from '../client/informers/informer.ts';
import type { RoutingTable } from '../network/http/routing-table.ts';
import {
  ignoredAnnotations,
  ignoredMessage,
  publishedAddresses,
  type RouterIdentity,
  routeStatus,
  servicesOf,
  sorted,
} from '../network/http/ingress.ts';
import { ignoredRouteAnnotations } from '../network/http/route-annotations.ts';
import type { RouteAdmission } from '../network/http/route-claims.ts';
import { jsonEqual } from '../objects/json.ts';
import { joinKey, keyOf, type ObjectKey } from '../objects/meta.ts';
import type { EventReason } from '../objects/reasons.ts';
import { formatTime } from '../objects/formats/time.ts';
import type { Service } from '../objects/types/core.generated.ts';
import type { Ingress, IngressLoadBalancerIngress } from '../objects/types/networking.generated.ts';
import type { Route } from '../objects/types/route.generated.ts';
import type { ControllerContext, Runnable } from '../runtime/context.ts';
import { KeyLoop, type ReconcileResult } from '../runtime/key-loop.ts';
import { StatusWriter } from '../runtime/status-writer.ts';
import type { RouterView } from './router-view.ts';

export interface StatusOptions {
  /** The Service whose addresses Ingresses get: `namespace/name`. */
  readonly publishService: ObjectKey | undefined;
  /** Addresses and host names that Ingresses get; goes before {@link publishService}. */
  readonly publishAddresses: readonly string[];
  readonly router: RouterIdentity;
  /** This Pod: at its end the addresses stay while another endpoint of {@link publishService} is ready. */
  readonly podName: string;
}

/** An Event of type Warning. */
interface SentEvent {
  readonly reason: EventReason;
  readonly message: string;
}

/** Events about one object at a time: an Ingress may have hundreds of hosts. */
const maxEvents = 10;

/**
 * Writes the addresses of the router into the status of its Ingresses, and the admission of Routes into theirs.
 * Ingresses and entries of other routers are never written. Events name what is not
 * served and why, and annotations that have no effect. Of
 * several routers of one name the leader writes.
 */
export class RouterStatus implements Runnable {
  readonly #context: ControllerContext;
  readonly #view: RouterView;
  readonly #table: RoutingTable;
  readonly #options: StatusOptions;
  readonly #services: Informer<Service>;
  readonly #unfollow: () => void;
  readonly #ingresses: KeyLoop;
  readonly #ingressStatus: StatusWriter<Ingress>;
  readonly #routes: KeyLoop | undefined;
  /** The last Events about each object, by kind and key. */
  readonly #sentEvents = new Map<string, string>();

  constructor(context: ControllerContext, view: RouterView, table: RoutingTable, options: StatusOptions) {
    this.#context = context;
    this.#view = view;
    this.#table = table;
    this.#options = options;
    this.#services = context.informers.informer(services);
    this.#ingresses = new KeyLoop(context, 'ingress-status', {}, (loop) => {
      loop.waitFor(view);
      return (key, signal) => this.#writeIngress(key, signal);
    });
    this.#ingressStatus = new StatusWriter(this.#ingresses, view.ingresses);
    view.onIngress = (key) => this.#ingresses.enqueue(key);
    for (const key of view.ingresses.cache.keys()) this.#ingresses.enqueue(key);
    const changed = (service: Service, old?: Service): void => {
      if (keyOf(service) === options.publishService) {
        for (const key of view.ingresses.cache.keys()) this.#ingresses.enqueue(key);
      } else if ([service, old].some((one) => one?.spec.type === 'ExternalName')) this.#enqueueUsers(service);
    };
    this.#unfollow = this.#services.addHandler({
      added: (service) => changed(service),
      updated: (service, old) => changed(service, old),
      deleted: (service) => changed(service),
    });
    const { routes: routeCache } = view;
    if (routeCache === undefined) return;
    const loop = new KeyLoop(context, 'route-status', {}, (own) => {
      own.waitFor(view);
      const writer = new StatusWriter(own, routeCache);
      return (key, signal) => this.#writeRoute(key, routeCache, writer, signal);
    });
    this.#routes = loop;
    view.onRoute = (key) => loop.enqueue(key);
    for (const key of routeCache.cache.keys()) loop.enqueue(key);
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#ingresses.run(signal), this.#routes?.run(signal)]);
    this.#unfollow();
  }

  /**
   * Removes the addresses: called by the last router at its end, while it still leads. Those that a router of another
   * installation has written stay.
   */
  async clear(signal: AbortSignal): Promise<void> {
    const { log } = this.#context;
    if (this.#hasSuccessor()) return;
    const own = this.#addresses();
    for (const key of [...this.#view.ingresses.cache.keys()]) {
      try {
        const ingress = this.#view.ingresses.cache.get(key);
        if (ingress === undefined || !this.#view.serves(ingress)) continue;
        if (!jsonEqual(ingress.status.loadBalancer?.ingress ?? [], own)) continue;
        await this.#ingressStatus.write(ingress, { loadBalancer: {} }, signal);
      } catch (error) {
        log.warn({ ingress: key, err: error }, 'the addresses of an Ingress stay in its status');
      }
    }
  }

  /** Whether another Pod answers at the addresses. */
  #hasSuccessor(): boolean {
    const { publishService, podName } = this.#options;
    if (publishService === undefined || podName === '') return false;
    return this.#view
      .slices(publishService)
      .flatMap(({ endpoints }) => endpoints ?? [])
      .some((endpoint) => isReady(endpoint) && endpoint.targetRef?.name !== podName);
  }

  #addresses(): IngressLoadBalancerIngress[] {
    const { publishAddresses, publishService } = this.#options;
    if (publishAddresses.length > 0) {
      return sorted(
        publishAddresses.map((one) => (/^[\d.]+$|:/.test(one) ? { ip: one } : { hostname: one })),
      );
    }
    const service = publishService === undefined ? undefined : this.#services.cache.get(publishService);
    return service === undefined ? [] : publishedAddresses(service);
  }

  async #writeIngress(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const addresses = this.#addresses();
    const ingress = this.#view.ingresses.cache.get(key);
    if (ingress === undefined || !this.#view.serves(ingress)) {
      this.#sentEvents.delete(`Ingress ${key}`);
      return undefined;
    }
    this.#sendEvents(`Ingress ${key}`, ingress, this.#ingressProblems(key, ingress));
    const waitMs = this.#ingressStatus.pendingMs(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const loadBalancer = addresses.length === 0 ? {} : { ingress: addresses };
    await this.#ingressStatus.write(ingress, { loadBalancer }, signal);
    return undefined;
  }

  /** Objects whose requests go to a Service say by an Event that it names a host only. */
  #enqueueUsers({ metadata: { namespace, name = '' } }: Service): void {
    const isUser = (object: Ingress | Route): boolean =>
      object.metadata.namespace === namespace && servicesOf(object).includes(name);
    const { ingresses, routes } = this.#view;
    for (const one of ingresses.cache.values()) if (isUser(one)) this.#ingresses.enqueue(keyOf(one));
    for (const one of routes?.cache.values() ?? []) if (isUser(one)) this.#routes?.enqueue(keyOf(one));
  }

  #ingressProblems(key: ObjectKey, ingress: Ingress): SentEvent[] {
    const problems: SentEvent[] = [...this.#externalNames(ingress)];
    const ignored = ignoredAnnotations(ingress);
    if (ignored !== undefined) problems.push({ reason: 'IgnoredAnnotations', message: ignored });
    const certificate = this.#view.certificateProblem(key);
    if (certificate !== undefined) problems.push(certificate);
    return [...problems, ...this.#table.refusedHosts(key).values()];
  }

  #routeProblems(route: Route, { refusal }: RouteAdmission): SentEvent[] {
    if (refusal !== undefined) return [refusal];
    const ignored = ignoredMessage(ignoredRouteAnnotations(route.metadata.annotations ?? {}));
    const problems = [...this.#externalNames(route)];
    if (ignored !== undefined) problems.push({ reason: 'IgnoredAnnotations', message: ignored });
    return problems;
  }

  #externalNames(object: Ingress | Route): SentEvent[] {
    const { namespace = '' } = object.metadata;
    return servicesOf(object)
      .filter((name) => this.#view.service(joinKey(namespace, name))?.spec.type === 'ExternalName')
      .map((name) => ({
        reason: 'ExternalNameBackend',
        message: `requests for the Service ${name} are answered with 503: it is of type ExternalName, which this router does not follow`,
      }));
  }

  /** Events for what is wrong with an object, again only when something else is. */
  #sendEvents(id: string, object: Ingress | Route, problems: readonly SentEvent[]): void {
    const said = JSON.stringify(problems);
    if (this.#sentEvents.get(id) === said) return;
    this.#sentEvents.set(id, said);
    for (const { reason, message } of problems.slice(0, maxEvents)) {
      this.#context.events.event(object, 'Warning', reason, message);
    }
  }

  async #writeRoute(
    key: ObjectKey,
    informer: Informer<Route>,
    writer: StatusWriter<Route>,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const route = informer.cache.get(key);
    const admission = this.#table.admissionOf(key);
    if (route === undefined || admission === undefined) {
      this.#sentEvents.delete(`Route ${key}`);
      return undefined;
    }
    this.#sendEvents(`Route ${key}`, route, this.#routeProblems(route, admission));
    const waitMs = writer.pendingMs(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const { wildcardPolicy = 'None' } = route.spec;
    const now = formatTime(this.#context.clock.now());
    const shown = { ...admission, wildcardPolicy: wildcardPolicy === '' ? 'None' : wildcardPolicy };
    const status = routeStatus(route.status, this.#options.router, shown, now);
    await writer.write(route, status, signal);
    return undefined;
  }
}
