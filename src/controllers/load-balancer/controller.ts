import { isConflict, isNotFound } from '../../client/errors.ts';
import { byNamespace, indexByNamespace } from '../../client/indexes.ts';
import type { Informer } from '../../client/informer.ts';
import { namespaces, services } from '../../client/resources.ts';
import { jsonEqual } from '../../objects/json.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { Namespace } from '../../objects/namespace.ts';
import type { Service } from '../../objects/service.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../runtime/context.ts';
import { Controller, Priority, type ReconcileResult } from '../runtime/controller.ts';
import { Expectations } from '../runtime/expectations.ts';
import { LoadBalancerAllocator } from './allocator.ts';
import { LoadBalancerMetrics } from './metrics.ts';
import { planReleased, planServed, type ServicePlan } from './plan.ts';
import { PoolKeeper } from './pool-keeper.ts';
import { isForeign, presentAddresses, readyCondition, unservedPorts } from './present.ts';
import { isServed, readRequest, type AddressRequest, type RequestSettings } from './request.ts';
import { writeService } from './service-writer.ts';

/** Options of {@link loadBalancerController}; all have defaults. */
export type LoadBalancerOptions = Partial<RequestSettings>;

/** The `loadBalancerClass` of Services that ask for this controller by name. */
const defaultLoadBalancerClass = 'servicenet.dev/load-balancer';

/** When to look again for an own write that the cache has not shown, if no event does so before, in milliseconds. */
const lookAgain = 1000;

/** Gives Services of type LoadBalancer addresses from AddressPools, and says so in their status. */
export function loadBalancerController(options: LoadBalancerOptions = {}): ControllerDefinition {
  const settings: RequestSettings = {
    loadBalancerClass: options.loadBalancerClass ?? defaultLoadBalancerClass,
    isDefaultClass: options.isDefaultClass ?? true,
    compat: options.compat ?? true,
  };
  return {
    name: 'load-balancer-controller',
    start: (context) => new LoadBalancerWiring(context, settings).runnables,
  };
}

class LoadBalancerWiring {
  readonly runnables: readonly Runnable[];
  readonly #context: ControllerContext;
  readonly #settings: RequestSettings;
  readonly #services: Informer<Service>;
  readonly #namespaces: Informer<Namespace>;
  readonly #allocator = new LoadBalancerAllocator();
  readonly #controller: Controller;
  readonly #pools: PoolKeeper;
  readonly #metrics: LoadBalancerMetrics;
  readonly #expectations: Expectations<Service>;
  /** Keys that came too early for the cache. */
  readonly #waiting = new Set<ObjectKey>();
  /** Every Service has been heard: only then may addresses be given. */
  #isWarm = false;

  constructor(context: ControllerContext, settings: RequestSettings) {
    this.#context = context;
    this.#settings = settings;
    this.#services = context.informers.informer(services);
    this.#services.addIndex(byNamespace, indexByNamespace);
    this.#namespaces = context.informers.informer(namespaces);
    this.#metrics = new LoadBalancerMetrics(context.metrics);
    this.#expectations = new Expectations(this.#services, context.clock);
    this.#pools = new PoolKeeper(context, this.#allocator, this.#metrics, {
      changed: () => this.#spread(),
      waitFor: [this.#services, this.#namespaces],
      warmUp: () => this.#warmUp(),
    });
    this.#controller = new Controller({
      name: 'load_balancer',
      context,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      workers: 16,
      waitFor: [this.#services, this.#namespaces, ...this.#pools.sources],
    });
    this.runnables = [this.#controller, this.#pools.controller];
    this.#services.addHandler({
      added: (service, initial) => {
        this.#controller.enqueue(keyOf(service), initial ? { priority: Priority.resync } : {});
      },
      updated: (service) => {
        this.#waiting.delete(keyOf(service));
        this.#controller.enqueue(keyOf(service));
      },
      deleted: (service) => this.#controller.enqueue(keyOf(service)),
    });
    this.#namespaces.addHandler({
      updated: (namespace, old) => {
        if (jsonEqual(namespace.metadata.labels, old.metadata.labels)) return;
        for (const service of this.#services.cache.byIndex(byNamespace, keyOf(namespace))) {
          this.#controller.enqueue(keyOf(service), { priority: Priority.resync });
        }
      },
    });
  }

  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    this.#warmUp();
    const service = this.#services.cache.get(key);
    if (service === undefined) {
      this.#release(key);
      return undefined;
    }
    if (!this.#expectations.settled(key)) {
      this.#waiting.add(key);
      return { requeueAfter: lookAgain };
    }
    const plan = this.#plan(key, service);
    this.#spread();
    if (plan !== undefined) await this.#carryOut(key, service, plan, signal);
    return undefined;
  }

  #plan(key: ObjectKey, service: Service): ServicePlan | undefined {
    const own = this.#presentOf(service);
    const served = this.#serves(service);
    if (!served || service.metadata.deletionTimestamp !== undefined) {
      this.#release(key);
      return planReleased(service, own, served);
    }
    if (isForeign(service, own)) return undefined;
    const now = this.#context.clock.now();
    const outcome = this.#allocator.assign(this.#requestOf(service), own, now);
    const before = readyCondition(service)?.reason;
    if (before !== outcome.reason) this.#metrics.transition(outcome.reason);
    return planServed(service, outcome, own, now);
  }

  async #carryOut(key: ObjectKey, service: Service, plan: ServicePlan, signal: AbortSignal): Promise<void> {
    try {
      const written = await writeService(this.#context.clients.for(services), service, plan, signal);
      if (written !== undefined) this.#expectations.written(key, written);
    } catch (error) {
      if (isNotFound(error)) return;
      if (!isConflict(error)) this.#context.log.debug({ key, err: error }, 'status not written');
      throw error;
    }
    for (const { type, reason, message } of plan.events) {
      this.#context.events.event(service, type, reason, message);
      this.#context.log.info({ key, reason }, message);
    }
  }

  /** Books what every Service has before the first new address is given; once. */
  #warmUp(): void {
    if (this.#isWarm) return;
    this.#isWarm = true;
    this.#pools.load();
    const served = [...this.#services.cache.values()].filter(
      (service) => this.#serves(service) && service.metadata.deletionTimestamp === undefined,
    );
    const requests = served.map((service) => ({ service, request: this.#requestOf(service) }));
    requests.sort(
      (a, b) => a.request.createdAt - b.request.createdAt || (keyOf(a.service) < keyOf(b.service) ? -1 : 1),
    );
    for (const { service, request } of requests) {
      this.#allocator.adopt(request, this.#presentOf(service), unservedPorts(service));
    }
  }

  #serves(service: Service): boolean {
    return isServed(service, this.#settings) && this.#context.serves(service);
  }

  #presentOf(service: Service): string[] {
    return presentAddresses(
      service,
      (family, value) => this.#allocator.book.poolOf(family, value) !== undefined,
    );
  }

  #requestOf(service: Service): AddressRequest {
    const namespace = this.#namespaces.cache.get(service.metadata.namespace ?? '');
    return readRequest(service, namespace?.metadata.labels ?? {}, this.#settings);
  }

  #release(key: ObjectKey): void {
    this.#allocator.release(key, this.#context.clock.now());
    this.#spread();
  }

  /** Sends those Services to the queue whose addresses changed, and lets the pools count anew. */
  #spread(): void {
    for (const key of this.#allocator.takeChanged()) this.#controller.enqueue(key);
    this.#metrics.waiting(this.#allocator.waiting);
    this.#pools.count();
  }
}
