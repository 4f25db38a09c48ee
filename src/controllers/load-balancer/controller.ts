import { isConflict, isNotFound } from '../../client/errors.ts';
import { byNamespace, indexByNamespace } from '../../client/indexes.ts';
import type { Informer } from '../../client/informer.ts';
import { TimeSlices } from '../../client/slices.ts';
import { namespaces, services } from '../../client/resources.ts';
import { jsonEqual } from '../../objects/json.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { Namespace, Service } from '../../objects/core.generated.ts';
import { compareResourceVersions } from '../../objects/resource-version.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../runtime/context.ts';
import { Controller, Priority, type ReconcileResult } from '../../runtime/controller.ts';
import { Expectations } from '../../runtime/expectations.ts';
import type { Claim } from './adoption.ts';
import { LoadBalancerAllocator } from './allocator.ts';
import { Contests } from './contests.ts';
import { LoadBalancerMetrics } from './metrics.ts';
import { hasUnexplainedFinalizer, planReleased, planServed, type ServicePlan } from './plan.ts';
import { PoolKeeper } from './pool-keeper.ts';
import { isForeign, presentAddresses, type PresentAddress } from './present.ts';
import { overwrittenEvent } from './reasons.ts';
import { isServed, readRequest, type AddressRequest, type RequestSettings } from './request.ts';
import { writeService } from './service-writer.ts';

/** Options of {@link loadBalancerController}; all have defaults. */
export type LoadBalancerOptions = Partial<RequestSettings>;

/** The `loadBalancerClass` of Services that ask for this controller by name. */
const defaultLoadBalancerClass = 'servicenet.dev/load-balancer';

/** When to look again for an own write that the cache has not shown, if no event does so before, in milliseconds. */
const lookAgain = 1000;

const overwrittenMessage =
  'somebody else takes the addresses out of the status of this Service: is there another load balancer that serves Services of the same class?';

/** Gives Services of type LoadBalancer addresses from AddressPools, and says so in their status. */
export function loadBalancerController(options: LoadBalancerOptions = {}): ControllerDefinition {
  const settings: RequestSettings = {
    loadBalancerClass: options.loadBalancerClass ?? defaultLoadBalancerClass,
    isDefaultClass: options.isDefaultClass ?? true,
    compat: options.compat ?? true,
  };
  return {
    name: 'load-balancer-controller',
    start: (context) => new LoadBalancerReconciler(context, settings).runnables,
  };
}

class LoadBalancerReconciler {
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
  /** The version that the last write of a Service made, until its event comes: what came of it needs no second look. */
  readonly #answers = new Map<ObjectKey, string>();
  readonly #contests = new Contests();
  /** Services to look at for another reason than a change of themselves. */
  readonly #due = new Set<ObjectKey>();
  /** Resolves when every Service has been heard: only then may addresses be given. */
  #warm: Promise<void> | undefined;

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
      warmUp: (signal) => this.#warmUp(signal),
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
        if (!this.#isAnswer(service)) this.#controller.enqueue(keyOf(service));
      },
      deleted: (service) => {
        this.#answers.delete(keyOf(service));
        this.#controller.enqueue(keyOf(service));
      },
    });
    this.#namespaces.addHandler({
      updated: (namespace, old) => {
        if (jsonEqual(namespace.metadata.labels, old.metadata.labels)) return;
        for (const service of this.#services.cache.byIndex(byNamespace, keyOf(namespace))) {
          this.#lookAgain(keyOf(service), Priority.resync);
        }
      },
    });
  }

  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    await this.#warmUp(signal);
    if (!this.#expectations.settled(key)) return { requeueAfter: lookAgain };
    const cached = this.#services.cache.get(key);
    // The event of the own write came before its answer. It is one look that is saved by that, and not the next write
    // that fails and is done again.
    const isAnswer = cached !== undefined && this.#isAnswer(cached);
    if (isAnswer && !this.#due.has(key)) return undefined;
    const service = cached === undefined ? undefined : await this.#withManagers(cached, signal);
    this.#due.delete(key);
    if (service === undefined) {
      this.#release(key);
      return undefined;
    }
    const rest = this.#restOf(key, service);
    if (rest > 0) return { requeueAfter: rest };
    const plan = this.#plan(key, service);
    const left = this.#allocator.leftBy(key);
    this.#spread();
    if (plan !== undefined) await this.#carryOut(key, service, plan, signal);
    // Not before: until it is written, the status of a Service shows what others would be given.
    this.#letGo(key, left);
    return undefined;
  }

  /** The Service itself where its managedFields matter; undefined when it is gone. */
  async #withManagers(service: Service, signal: AbortSignal): Promise<Service | undefined> {
    if (!hasUnexplainedFinalizer(service)) return service;
    const { namespace = '', name = '' } = service.metadata;
    try {
      return await this.#context.clients.for(services).get(namespace, name, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Milliseconds before a Service may be written whose addresses somebody else takes out of its status. */
  #restOf(key: ObjectKey, service: Service): number {
    if (this.#leaves(service)) return 0;
    const { rest, times } = this.#contests.judge(key, service, this.#context.clock.now());
    if (rest === 0 && times > 1) {
      this.#context.events.event(service, 'Warning', overwrittenEvent, overwrittenMessage);
      this.#context.log.warn({ key, reason: overwrittenEvent, times }, overwrittenMessage);
    }
    return rest;
  }

  #plan(key: ObjectKey, service: Service): ServicePlan | undefined {
    const own = this.#presentOf(service);
    if (this.#leaves(service)) {
      this.#allocator.leave(key);
      return planReleased(service, own, this.#serves(service));
    }
    // Somebody may have written over the status of a Service that has our address.
    if (isForeign(service, own) && this.#allocator.book.addressesOf(key).size === 0) {
      this.#release(key);
      return undefined;
    }
    const now = this.#context.clock.now();
    const outcome = this.#allocator.assign(this.#requestOf(service), own);
    return planServed(service, outcome, own, now);
  }

  async #carryOut(key: ObjectKey, service: Service, plan: ServicePlan, signal: AbortSignal): Promise<void> {
    try {
      const written = await writeService(this.#context.clients.for(services), service, plan, signal);
      if (written !== undefined) {
        this.#expectations.written(key, written);
        this.#answers.set(key, written.metadata.resourceVersion ?? '');
      }
    } catch (error) {
      if (isNotFound(error)) return;
      if (!isConflict(error)) this.#context.log.debug({ key, err: error }, 'status not written');
      throw error;
    }
    if (plan.transition !== undefined) this.#metrics.transition(plan.transition);
    for (const { type, reason, message } of plan.events) {
      this.#context.events.event(service, type, reason, message);
      this.#context.log.info({ key, reason }, message);
    }
  }

  /** AllocationState what every Service has before the first new address is given; once. */
  #warmUp(signal: AbortSignal): Promise<void> {
    this.#warm ??= this.#adoptAll(signal).catch((error: unknown) => {
      this.#warm = undefined;
      throw error;
    });
    return this.#warm;
  }

  async #adoptAll(signal: AbortSignal): Promise<void> {
    const unseen =
      this.#context.elected === true ? await this.#readUnseen(signal) : new Map<ObjectKey, Service>();
    this.#pools.load();
    const all = new Map([...this.#services.cache.values()].map((service) => [keyOf(service), service]));
    for (const [key, service] of unseen) if (isOlder(all.get(key), service)) all.set(key, service);
    const claims: Claim[] = [];
    const leaving: Claim[] = [];
    const slices = new TimeSlices();
    for (const service of all.values()) {
      if (slices.due) await slices.pause();
      const claim = { request: this.#requestOf(service), present: this.#presentOf(service) };
      (this.#leaves(service) ? leaving : claims).push(claim);
    }
    const adoption = this.#allocator.adopt(claims, leaving);
    while (adoption.next().done !== true) if (slices.due) await slices.pause();
    this.#pools.loadRests();
  }

  /**
   * What the cache does not show yet. A standby's cache is up to date but for the last moment, and in that moment the
   * former leader may have given addresses: without them the same ones would be given again.
   */
  async #readUnseen(signal: AbortSignal): Promise<Map<ObjectKey, Service>> {
    const unseen = new Map<ObjectKey, Service>();
    for await (const page of this.#context.clients.for(services).pages({ signal })) {
      for (const service of page.items) {
        const key = keyOf(service);
        if (!isOlder(this.#services.cache.get(key), service)) continue;
        unseen.set(key, service);
        this.#expectations.written(key, service);
        // It may be gone before the cache ever hears of it; then nobody else would give its address back.
        this.#controller.enqueue(key, { after: lookAgain });
      }
    }
    return unseen;
  }

  #serves(service: Service): boolean {
    return isServed(service, this.#settings) && this.#context.serves(service);
  }

  /** It is going, or is not ours (any more). */
  #leaves(service: Service): boolean {
    return !this.#serves(service) || service.metadata.deletionTimestamp !== undefined;
  }

  #presentOf(service: Service): PresentAddress[] {
    return presentAddresses(service, this.#allocator.isPooled);
  }

  #requestOf(service: Service): AddressRequest {
    const namespace = this.#namespaces.cache.get(service.metadata.namespace ?? '');
    return readRequest(service, namespace?.metadata.labels ?? {}, this.#settings);
  }

  #release(key: ObjectKey): void {
    this.#contests.forget(key);
    this.#allocator.release(key, this.#context.clock.now());
    this.#spread();
  }

  #letGo(key: ObjectKey, addresses: readonly string[]): void {
    if (addresses.length === 0) return;
    this.#allocator.letGo(key, addresses, this.#context.clock.now());
    this.#spread();
  }

  /** True, once, for a Service as the last own write left it. */
  #isAnswer(service: Service): boolean {
    const key = keyOf(service);
    if (!this.#answers.has(key)) return false;
    const { resourceVersion = '' } = service.metadata;
    const order = compareResourceVersions(resourceVersion, this.#answers.get(key) ?? '');
    if (order >= 0) this.#answers.delete(key);
    return order === 0;
  }

  #lookAgain(key: ObjectKey, priority: number = Priority.change): void {
    this.#due.add(key);
    this.#controller.enqueue(key, { priority });
  }

  /** Sends those Services to the queue whose addresses changed, and lets the pools count anew. */
  #spread(): void {
    for (const key of this.#allocator.takeChanged()) this.#lookAgain(key);
    this.#metrics.waiting(this.#allocator.waiting);
    this.#pools.count();
  }
}

/** True when what the cache has is not there, or an older version. */
function isOlder(cached: Service | undefined, service: Service): boolean {
  if (cached === undefined) return true;
  const { resourceVersion = '' } = service.metadata;
  return compareResourceVersions(cached.metadata.resourceVersion ?? '', resourceVersion) < 0;
}
