import { isConflict, isNotFound } from '../../client/errors.ts';
import { byNamespace, indexByNamespace } from '../../client/informers/cache.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { TimeSlices } from '../../telemetry/time-slice.ts';
import { namespaces, services } from '../../client/resources.ts';
import { jsonEqual } from '../../objects/json.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Namespace, Service } from '../../objects/types/core.generated.ts';
import { compareResourceVersions } from '../../objects/meta.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import {
  type ControllerSpec,
  type EnqueueOptions,
  type KeyLoop,
  Priority,
  type ReconcileResult,
} from '../../runtime/key-loop.ts';
import { OwnWrites } from '../../runtime/own-writes.ts';
import {
  type ServedService,
  ConflictBackoff,
  isForeign,
  statusAddresses,
  type StatusAddress,
} from './status.ts';
import { type ForeignServices, LoadBalancerAllocator } from './allocator.ts';
import { AnnouncedReconciler } from '../announcement-status/reconciler.ts';
import { LoadBalancerMetrics } from './pool-controller.ts';
import {
  isLeftToOthers,
  needsManagedFields,
  planReleased,
  planServed,
  type ServiceStatusPlan,
  statusPatchOf,
} from './plan.ts';
import { PoolReconciler } from './pool-controller.ts';
import {
  type AddressRequest,
  defaultLoadBalancerClass,
  isServed,
  readRequest,
  type RequestSettings,
  wantedMark,
} from './request.ts';

/** Options of {@link loadBalancerController}; all have defaults. */
export type LoadBalancerOptions = Partial<RequestSettings>;

/** The cache may have the last writes of the leader before by then. */
const uncachedRetryMs = 1000;

const overwrittenMessage =
  'another writer takes the addresses out of the status of this Service: is there another load balancer that serves Services of the same class?';

/** Assigns addresses of AddressPools to Services of type LoadBalancer, and publishes them in their status. */
export function loadBalancerController(options: LoadBalancerOptions = {}): ControllerSpec {
  const settings: RequestSettings = {
    loadBalancerClass: options.loadBalancerClass ?? defaultLoadBalancerClass,
    isDefaultClass: options.isDefaultClass ?? true,
    compat: options.compat ?? true,
  };
  return {
    name: 'load-balancer-controller',
    eventSource: 'servicenet-load-balancer',
    queue: 'load_balancer',
    workers: 16,
    build(loop) {
      const reconciler = new LoadBalancerReconciler(loop, settings);
      return (key, signal) => reconciler.reconcile(key, signal);
    },
  };
}

class LoadBalancerReconciler {
  readonly #loop: KeyLoop;
  readonly #context: ControllerContext;
  readonly #settings: RequestSettings;
  // The caches.
  readonly #services: Informer<Service>;
  readonly #namespaces: Informer<Namespace>;
  // What no cache shows.
  readonly #allocator = new LoadBalancerAllocator();
  readonly #writes: OwnWrites<Service>;
  readonly #pools: PoolReconciler;
  readonly #metrics: LoadBalancerMetrics;
  readonly #conflicts = new ConflictBackoff();
  /** Services that are left to other load balancers, and those without an address of ours. */
  readonly #foreign = new Set<ObjectKey>();
  /** Services to reconcile although only we wrote them. */
  readonly #requeued = new Set<ObjectKey>();
  /** Resolves when the addresses of all Services are recorded. No address is assigned before. */
  #adopted: Promise<void> | undefined;

  constructor(loop: KeyLoop, settings: RequestSettings) {
    const { context } = loop;
    this.#loop = loop;
    this.#context = context;
    this.#settings = settings;

    this.#services = loop.cache(services, { indexes: { [byNamespace]: indexByNamespace } });
    this.#namespaces = loop.cache(namespaces);

    this.#metrics = new LoadBalancerMetrics(context.metrics);
    this.#writes = new OwnWrites(loop, this.#services);
    const announced = new AnnouncedReconciler(loop, {
      isServed: (service) => !this.#isReleased(service),
      poolsChanged: () => this.#pools.updateStatus(),
      hostAddressesChanged: () => this.#pools.updateLayout(),
    });
    this.#pools = new PoolReconciler(loop, this.#allocator, this.#metrics, {
      changed: () => this.#requeueChanged(),
      foreign: () => this.#foreignServices(),
      waitFor: [this.#services, this.#namespaces],
      adopt: (signal) => this.#adopt(signal),
      announced: (pool) => announced.ofPool(pool),
      hostAddresses: () => announced.hostAddresses,
    });
    for (const source of this.#pools.sources) loop.waitFor(source);

    loop.on(this.#services, ({ kind, object: service }) =>
      kind === 'updated' && this.#writes.isEcho(service) ? [] : [keyOf(service)],
    );
    loop.on(this.#namespaces, (change) => {
      const { object: namespace } = change;
      if (change.kind !== 'updated') return [];
      if (jsonEqual(namespace.metadata.labels, change.old.metadata.labels)) return [];
      for (const service of this.#services.cache.byIndex(byNamespace, keyOf(namespace))) {
        this.#requeue(keyOf(service), { priority: Priority.resync });
      }
      return [];
    });
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    await this.#adopt(signal);
    const waitMs = this.#writes.pendingMs(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const cached = this.#services.cache.get(key);
    // An event can arrive before the response to the write that caused it.
    const isEcho = cached !== undefined && this.#writes.isEcho(cached);
    if (isEcho && !this.#requeued.has(key)) return undefined;
    const service = cached === undefined ? undefined : await this.#withManagedFields(cached, signal);
    if (service === undefined) {
      this.#requeued.delete(key);
      this.#remove(key);
      return undefined;
    }
    const delayMs = this.#conflictDelay(key, service);
    if (delayMs > 0) return { requeueAfterMs: delayMs };
    this.#requeued.delete(key);
    const plan = this.#plan(key, service);
    const held = new Set(this.#allocator.held(key));
    const unreleased = this.#allocator.unreleased(key).filter((address) => !held.has(address));
    this.#requeueChanged();
    if (plan !== undefined) await this.#write(key, service, plan, signal);
    // Only after the write: until then the status shows addresses that another Service would get.
    this.#release(key, unreleased);
    return undefined;
  }

  /** Reads the Service from the server if its managedFields are needed; undefined when it is gone. */
  async #withManagedFields(service: Service, signal: AbortSignal): Promise<Service | undefined> {
    if (!needsManagedFields(service)) return service;
    const { namespace = '', name = '' } = service.metadata;
    try {
      return await this.#context.clients.for(services).get(namespace, name, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Milliseconds before a Service may be written, see {@link ConflictBackoff}. */
  #conflictDelay(key: ObjectKey, service: Service): number {
    if (this.#isReleased(service)) return 0;
    const { delayMs, times } = this.#conflicts.delayOf(key, service, this.#context.clock.now());
    if (delayMs === 0 && times > 1) {
      this.#context.events.event(service, 'Warning', 'Overwritten', overwrittenMessage);
      this.#context.log.warn({ key, reason: 'Overwritten', times }, overwrittenMessage);
    }
    return delayMs;
  }

  #plan(key: ObjectKey, service: Service): ServiceStatusPlan | undefined {
    const own = this.#statusAddresses(service);
    this.#foreign.delete(key);
    if (this.#isReleased(service)) {
      if (isLeftToOthers(service, this.#settings)) {
        this.#foreign.add(key);
        this.#allocator.hold({ request: this.#requestOf(service), inStatus: own });
        return undefined;
      }
      this.#allocator.unassign(key);
      return planReleased(service, own, this.#isServed(service));
    }
    // A Service with an address of ours is not foreign, even if another client has overwritten its status.
    if (isForeign(service, own) && this.#allocator.allocations.addressesOf(key).size === 0) {
      this.#remove(key);
      this.#foreign.add(key);
      return undefined;
    }
    const now = this.#context.clock.now();
    const outcome = this.#allocator.allocate(this.#requestOf(service), own);
    // A pool may come that contains what another load balancer has written.
    if (own.length === 0 && outcome.addresses.length === 0) this.#foreign.add(key);
    const plan = planServed(service, outcome, own, now);
    const mark = wantedMark(service, this.#settings);
    return mark === undefined ? plan : { ...plan, mark };
  }

  async #write(
    key: ObjectKey,
    service: Service,
    plan: ServiceStatusPlan,
    signal: AbortSignal,
  ): Promise<void> {
    const patch = statusPatchOf(service, plan);
    try {
      if (patch !== undefined) {
        const { namespace = '', name = '' } = service.metadata;
        const options = { signal, subresource: 'status' };
        const written = await this.#context.clients.for(services).mergePatch(namespace, name, patch, options);
        this.#writes.written(key, written);
      }
    } catch (error) {
      if (isNotFound(error)) return;
      this.#requeued.add(key);
      if (!isConflict(error)) this.#context.log.debug({ key, err: error }, 'status not written');
      throw error;
    }
    if (plan.transition !== undefined) this.#metrics.transition(plan.transition);
    for (const { type, reason, message } of plan.events) {
      this.#context.events.event(service, type, reason, message);
      this.#context.log.info({ key, reason }, message);
    }
  }

  #adopt(signal: AbortSignal): Promise<void> {
    this.#adopted ??= this.#adoptAll(signal).catch((error: unknown) => {
      this.#adopted = undefined;
      throw error;
    });
    return this.#adopted;
  }

  async #adoptAll(signal: AbortSignal): Promise<void> {
    const uncached =
      this.#context.elected === true ? await this.#readUncached(signal) : new Map<ObjectKey, Service>();
    this.#pools.load();
    const all = new Map([...this.#services.cache.values()].map((service) => [keyOf(service), service]));
    for (const [key, service] of uncached) if (isOlder(all.get(key), service)) all.set(key, service);
    const served: ServedService[] = [];
    const released: ServedService[] = [];
    const slices = new TimeSlices();
    for (const service of all.values()) {
      if (slices.due) await slices.yield();
      const known = { request: this.#requestOf(service), inStatus: this.#statusAddresses(service) };
      if (this.#isReleased(service)) released.push(known);
      else if (!isForeign(service, known.inStatus)) served.push(known);
    }
    const adoption = this.#allocator.adopt(served, released);
    while (adoption.next().done !== true) if (slices.due) await slices.yield();
    this.#pools.loadQuarantine();
    // Oldest first, whatever the order in which the queue gives them: `pools plan` says the same.
    for (const { request, inStatus } of this.#allocator.startOrder(served)) {
      if (slices.due) await slices.yield();
      this.#allocator.allocate(request, inStatus);
    }
  }

  /**
   * Services that are newer than the cache. A new leader's cache may lack the last writes of the former leader, and their
   * addresses would be assigned twice.
   */
  async #readUncached(signal: AbortSignal): Promise<Map<ObjectKey, Service>> {
    const uncached = new Map<ObjectKey, Service>();
    for await (const page of this.#context.clients.for(services).pages({ signal })) {
      for (const service of page.items) {
        const key = keyOf(service);
        if (!isOlder(this.#services.cache.get(key), service)) continue;
        uncached.set(key, service);
        this.#writes.written(key, service);
        // If it is deleted before the cache has it, no event comes.
        this.#requeue(key, { afterMs: uncachedRetryMs });
      }
    }
    return uncached;
  }

  #isServed(service: Service): boolean {
    return isServed(service, this.#settings) && this.#context.serves(service);
  }

  /** Deleted or not served. */
  #isReleased(service: Service): boolean {
    return !this.#isServed(service) || service.metadata.deletionTimestamp !== undefined;
  }

  #statusAddresses(service: Service): StatusAddress[] {
    return statusAddresses(service, this.#allocator.isPooled);
  }

  #requestOf(service: Service): AddressRequest {
    const namespace = this.#namespaces.cache.get(service.metadata.namespace ?? '');
    return readRequest(service, namespace?.metadata.labels ?? {}, this.#settings);
  }

  #foreignServices(): ForeignServices {
    const adopted: ServedService[] = [];
    const held: ServedService[] = [];
    for (const key of this.#foreign) {
      const service = this.#services.cache.get(key);
      if (service === undefined) continue;
      const known = { request: this.#requestOf(service), inStatus: this.#statusAddresses(service) };
      if (this.#isReleased(service)) held.push(known);
      else if (!isForeign(service, known.inStatus)) adopted.push(known);
    }
    return { adopted, held };
  }

  #remove(key: ObjectKey): void {
    this.#foreign.delete(key);
    this.#conflicts.forget(key);
    this.#allocator.remove(key, this.#context.clock.now());
    this.#requeueChanged();
  }

  #release(key: ObjectKey, addresses: readonly string[]): void {
    if (addresses.length === 0) return;
    this.#allocator.release(key, addresses, this.#context.clock.now());
    this.#requeueChanged();
  }

  #requeue(key: ObjectKey, options?: EnqueueOptions): void {
    this.#requeued.add(key);
    this.#loop.enqueue(key, options);
  }

  /** Requeues the Services whose addresses changed, and updates the status of the pools. */
  #requeueChanged(): void {
    for (const key of this.#allocator.takeChanged()) this.#requeue(key);
    this.#metrics.waiting(this.#allocator.waiting);
    this.#pools.updateStatus();
  }
}

/** True when the cache has no version of the Service, or an older one. */
function isOlder(cached: Service | undefined, service: Service): boolean {
  if (cached === undefined) return true;
  const { resourceVersion = '' } = service.metadata;
  return compareResourceVersions(cached.metadata.resourceVersion ?? '', resourceVersion) < 0;
}
