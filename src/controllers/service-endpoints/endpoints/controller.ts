import { isConflict, isNotFound, isNamespaceTerminating } from '../../../client/errors.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import type { ResourceClient } from '../../../client/resource-client.ts';
import { endpoints as endpointsResource, services } from '../../../client/resources.ts';
import type { Endpoints, Service } from '../../../objects/types/core.generated.ts';
import { keyOf, type ObjectKey, splitKey } from '../../../objects/meta.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../../runtime/context.ts';
import { type EnqueueOptions, Priority, type ReconcileResult } from '../../../runtime/key-loop.ts';
import { Expectations } from '../../../runtime/own-writes.ts';
import { isLastWriter } from '../../../objects/meta.ts';
import { Reconciler } from '../../../runtime/key-loop.ts';
import { AllocationGrace } from '../timing.ts';
import { Membership } from '../backing-pods.ts';
import { managedSelector } from '../service.ts';
import { podInformer } from '../backing-pods.ts';
import { TriggerTimes } from '../timing.ts';
import { isManagedEndpoints, planEndpoints } from './plan.ts';
import { errorMessage } from '../../../objects/status.ts';

const leaderAnnotation = 'control-plane.alpha.kubernetes.io/leader';

/** Milliseconds after which to reconcile again when no event has shown an own write. */
const lookAgain = 1000;

/** Writes the Endpoints of Services with a selector (kube-controller-manager's `endpoints-controller`). */
export const endpointsController: ControllerDefinition = {
  name: 'endpoints-controller',
  start(context: ControllerContext): readonly Runnable[] {
    return [new EndpointsReconciler(context)];
  },
};

class EndpointsReconciler extends Reconciler {
  readonly #services: Informer<Service>;
  readonly #endpoints: Informer<Endpoints>;
  readonly #client: ResourceClient<Endpoints>;
  readonly #membership: Membership;
  readonly #times = new TriggerTimes();
  readonly #expectations: Expectations<Endpoints>;
  readonly #grace: AllocationGrace;
  /** Keys whose Service or Pods changed: their Endpoints are written even if another client wrote them last. */
  readonly #due = new Set<ObjectKey>();
  /** Keys whose reconcile found the cache behind. */
  readonly #waiting = new Set<ObjectKey>();
  /** Deleted Services that matched the selector of Services. */
  readonly #departed = new Set<ObjectKey>();
  /** The resourceVersion of the last own write, to tell it from writes of others. */
  readonly #written = new Map<ObjectKey, string>();

  constructor(context: ControllerContext) {
    super(context, 'endpoint', { workers: 10, backoff: { base: 5, max: 1_000_000 } });
    this.#services = this.informer(services);
    this.#endpoints = context.informers.informer(endpointsResource);
    this.#client = context.clients.for(endpointsResource);
    this.#grace = new AllocationGrace(() => context.clock.monotonic());
    this.#expectations = new Expectations(this.#endpoints, context.clock);
    const pods = podInformer(context);
    this.#membership = new Membership(this.#services, pods);
    const enqueue = (keys: Iterable<ObjectKey>): void => {
      for (const key of keys) this.#enqueue(key);
    };
    this.waitFor(pods);
    this.waitFor({ synced: (signal) => this.#lookForLeftovers(signal) });
    this.#services.addHandler({
      added: (service, initial) => {
        this.#enqueue(keyOf(service), initial ? { priority: Priority.resync } : {});
      },
      updated: (service) => this.#enqueue(keyOf(service)),
      deleted: (service) => {
        if (context.serves(service)) this.#departed.add(keyOf(service));
        this.#enqueue(keyOf(service));
      },
    });
    pods.addHandler({
      // At the start every Service is enqueued anyway.
      added: (pod, initial) => enqueue(initial ? [] : this.#membership.servicesOf(pod)),
      updated: (pod, old) => enqueue(this.#membership.servicesOfChange(pod, old)),
      deleted: (pod) => enqueue(this.#membership.servicesOf(pod)),
    });
    this.#endpoints.addHandler({
      added: (object, initial) => {
        if (!initial) this.#arrived(object);
      },
      updated: (object) => this.#arrived(object),
      deleted: (object) => this.#enqueue(keyOf(object)),
    });
  }

  /** Enqueues a key whose Endpoints must follow a change. */
  #enqueue(key: ObjectKey, options: EnqueueOptions = {}): void {
    this.#due.add(key);
    this.queue.enqueue(key, options);
  }

  /**
   * Runs when the work begins, after an election: removes Endpoints that lost their Service while no controller ran
   * (`checkLeftoverEndpoints`), except for locks of elections.
   */
  async #lookForLeftovers(signal: AbortSignal): Promise<boolean> {
    const synced = await this.#endpoints.synced(signal);
    for (const object of this.#endpoints.cache.values()) {
      if (Object.hasOwn(object.metadata.annotations ?? {}, leaderAnnotation)) continue;
      this.#enqueue(keyOf(object), { priority: Priority.resync });
    }
    return synced;
  }

  protected override async reconcile(
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const service = this.#services.cache.get(key);
    if (service !== undefined) {
      this.#departed.delete(key);
      const left = this.#grace.left(key, service);
      if (left > 0) return { requeueAfter: left };
      if (!this.#expectations.settled(key)) {
        this.#waiting.add(key);
        return { requeueAfter: lookAgain };
      }
      this.#waiting.delete(key);
    }
    const due = this.#due.delete(key);
    try {
      if (service === undefined) await this.#remove(key, due, signal);
      else await this.#bring(key, service, due, signal);
    } catch (error) {
      if (due) this.#due.add(key);
      throw error;
    }
    return undefined;
  }

  /** Writes the difference, unless no change is due and another client wrote the present Endpoints. */
  async #bring(key: ObjectKey, service: Service, due: boolean, signal: AbortSignal): Promise<void> {
    const selector = managedSelector(service);
    if (selector === undefined || !this.context.serves(service)) return;
    const existing = this.#endpoints.cache.get(key);
    const pods = this.#membership.podsOf(service, selector);
    const triggerTime = this.#times.observe(key, service, pods);
    const plan = planEndpoints({ service, pods, existing, triggerTime });
    if (plan.write === 'none' || !(due || (await this.#isOurs(key, signal)))) return;
    await this.#write(key, plan.write, plan.endpoints, signal);
  }

  /** True when the last write was ours. As with Kubernetes' controller, edits by others stay until the next change. */
  async #isOurs(key: ObjectKey, signal: AbortSignal): Promise<boolean> {
    const { namespace, name } = splitKey(key);
    try {
      const { metadata } = await this.#client.get(namespace, name, { signal });
      return isLastWriter(metadata);
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  async #write(
    key: ObjectKey,
    verb: 'create' | 'update',
    endpoints: Endpoints,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const written =
        verb === 'create'
          ? await this.#client.create(endpoints, { signal })
          : await this.#client.replace(endpoints, { signal });
      this.#expectations.written(key, written);
      this.#written.set(key, written.metadata.resourceVersion ?? '');
      this.context.log.info({ key, verb, subsets: endpoints.subsets?.length ?? 0 }, 'endpoints written');
    } catch (error) {
      // Creates would fail until the namespace is gone, and then there is nothing left to do.
      if (isNamespaceTerminating(error)) return;
      // A conflict is expected when the cache is behind. The event that updates the cache ends the wait.
      if (isConflict(error)) {
        this.#waiting.add(key);
        throw error;
      }
      const { namespace, name } = splitKey(key);
      const why = errorMessage(error);
      if (verb === 'create') {
        const message = `Failed to create endpoint for service ${namespace}/${name}: ${why}`;
        this.context.events.event(endpoints, 'Warning', 'FailedToCreateEndpoint', message);
      } else {
        const message = `Failed to update endpoint ${namespace}/${name}: ${why}`;
        this.context.events.event(endpoints, 'Warning', 'FailedToUpdateEndpoint', message);
      }
      throw error;
    }
  }

  async #remove(key: ObjectKey, due: boolean, signal: AbortSignal): Promise<void> {
    this.#times.forget(key);
    this.#grace.forget(key);
    this.#written.delete(key);
    const existing = this.#endpoints.cache.get(key) ?? (await this.#unheard(key, signal));
    // Endpoints have the labels of their Service, by which the selector of Services is checked when the Service is
    // gone.
    const ours = existing === undefined || this.#departed.has(key) || this.context.serves(existing);
    const stands = existing !== undefined || !this.#expectations.settled(key);
    if (ours && stands && (due || (await this.#isOurs(key, signal)))) {
      const uid = existing?.metadata.uid;
      const { namespace, name } = splitKey(key);
      try {
        await this.#client.delete(namespace, name, {
          signal,
          ...(uid === undefined ? {} : { preconditions: { uid } }),
        });
        this.context.log.info({ key }, 'endpoints of a Service that is gone deleted');
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
    this.#waiting.delete(key);
    this.#departed.delete(key);
  }

  /**
   * Endpoints of a deleted Service that the cache does not have: another client may have written them a moment before,
   * and no event would enqueue the key again. Kubernetes' controller deletes without reading.
   */
  async #unheard(key: ObjectKey, signal: AbortSignal): Promise<Endpoints | undefined> {
    if (!this.#departed.has(key)) return undefined;
    const { namespace, name } = splitKey(key);
    try {
      const present = await this.#client.get(namespace, name, { signal });
      // They may belong to a new Service of that name, which the cache does not show yet.
      return (await this.#isThere(key, signal)) ? undefined : present;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #isThere(key: ObjectKey, signal: AbortSignal): Promise<boolean> {
    const { namespace, name } = splitKey(key);
    try {
      await this.context.clients.for(services).get(namespace, name, { signal });
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  /**
   * An event of the cache. A reconcile may wait for it, or it may be an unknown write of ours: one whose answer was
   * lost, or a late write of the leader before, even after its Service was deleted. Deferred: events of own writes may
   * arrive before their answers.
   */
  #arrived(object: Endpoints): void {
    const key = keyOf(object);
    if (this.#waiting.delete(key)) this.queue.enqueue(key);
    else if (isManagedEndpoints(object) && this.#written.get(key) !== object.metadata.resourceVersion) {
      this.queue.enqueue(key, { after: lookAgain, priority: Priority.resync });
    }
  }
}
