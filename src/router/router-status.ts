import { isReady } from '../objects/endpoints.ts';
import { services } from '../client/resources.ts';
import type { Informer } from '../client/informers/informer.ts';
import type { HttpTable } from '../network/http/http-table.ts';
import { ignoredAnnotations } from '../network/http/ingress.ts';
import { publishedAddresses, type RouterIdentity, routeStatus, sorted } from '../network/http/ingress.ts';
import { keyOf, type ObjectKey } from '../objects/meta.ts';
import { formatTime } from '../objects/time.ts';
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

/**
 * Writes the addresses of the router into the status of its Ingresses, and the admission of Routes into theirs.
 * Ingresses and entries of other routers are never written. An Event names annotations that have no effect. Of
 * several routers of one name the leader writes.
 */
export class RouterStatus implements Runnable {
  readonly #context: ControllerContext;
  readonly #view: RouterView;
  readonly #table: HttpTable;
  readonly #options: StatusOptions;
  readonly #services: Informer<Service>;
  readonly #unfollow: () => void;
  readonly #ingresses: KeyLoop;
  readonly #ingressStatus: StatusWriter<Ingress>;
  readonly #routes: KeyLoop | undefined;
  /** The last Event message about each Ingress. */
  readonly #sentEvents = new Map<ObjectKey, string>();

  constructor(context: ControllerContext, view: RouterView, table: HttpTable, options: StatusOptions) {
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
    const changed = (service: Service): void => {
      if (keyOf(service) !== options.publishService) return;
      for (const key of view.ingresses.cache.keys()) this.#ingresses.enqueue(key);
    };
    this.#unfollow = this.#services.addHandler({ added: changed, updated: changed, deleted: changed });
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

  /** Removes the addresses: called by the last router at its end, while it still leads. */
  async clear(signal: AbortSignal): Promise<void> {
    const { log } = this.#context;
    if (this.#hasSuccessor()) return;
    for (const key of [...this.#view.ingresses.cache.keys()]) {
      try {
        const ingress = this.#view.ingresses.cache.get(key);
        if (ingress === undefined || !this.#view.serves(ingress)) continue;
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
      this.#sentEvents.delete(key);
      return undefined;
    }
    this.#sendEvents(ingress);
    const waitMs = this.#ingressStatus.pendingMs(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const loadBalancer = addresses.length === 0 ? {} : { ingress: addresses };
    await this.#ingressStatus.write(ingress, { loadBalancer }, signal);
    return undefined;
  }

  /** Events for what is wrong with an Ingress, again only when something else is. */
  #sendEvents(ingress: Ingress): void {
    const key = keyOf(ingress);
    const ignored = ignoredAnnotations(ingress);
    const problem = this.#view.certificateProblem(key);
    const said = JSON.stringify([ignored, problem]);
    if (this.#sentEvents.get(key) === said) return;
    this.#sentEvents.set(key, said);
    const { events } = this.#context;
    if (ignored !== undefined) events.event(ingress, 'Warning', 'IgnoredAnnotations', ignored);
    if (problem !== undefined) events.event(ingress, 'Warning', problem.reason, problem.message);
  }

  async #writeRoute(
    key: ObjectKey,
    informer: Informer<Route>,
    writer: StatusWriter<Route>,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const route = informer.cache.get(key);
    const admission = this.#table.admissionOf(key);
    if (route === undefined || admission === undefined) return undefined;
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
