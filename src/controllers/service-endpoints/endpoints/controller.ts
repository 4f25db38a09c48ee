import { isConflict, isNotFound, isNamespaceTerminating } from '../../../client/errors.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import type { ResourceClient } from '../../../client/resource-client.ts';
import { endpoints as endpointsResource, pods, services } from '../../../client/resources.ts';
import {
  compareResourceVersions,
  isLastWriter,
  keyOf,
  type ObjectKey,
  splitKey,
} from '../../../objects/meta.ts';
import { errorMessage } from '../../../objects/status.ts';
import type { Endpoints, Service } from '../../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../../runtime/context.ts';
import {
  type ControllerSpec,
  type KeyLoop,
  Priority,
  type ReconcileResult,
} from '../../../runtime/key-loop.ts';
import { OwnWrites } from '../../../runtime/own-writes.ts';
import { SelectorIndex, trimPod } from '../backing-pods.ts';
import { managedSelector } from '../service.ts';
import { AllocationGrace, TriggerTimes } from '../timing.ts';
import { isManagedEndpoints, planEndpoints } from './plan.ts';

const leaderAnnotation = 'control-plane.alpha.kubernetes.io/leader';

/** The event of an own write may come before its answer, which shows whose write it was. */
const unknownWriteDelayMs = 1000;

/** Writes the Endpoints of Services with a selector (kube-controller-manager's `endpoints-controller`). */
export const endpointsController: ControllerSpec = {
  name: 'endpoints-controller',
  eventSource: 'endpoint-controller',
  queue: 'endpoint',
  workers: 10,
  build(loop) {
    const reconciler = new EndpointsReconciler(loop);
    return (key, signal) => reconciler.reconcile(key, signal);
  },
};

class EndpointsReconciler {
  readonly #loop: KeyLoop;
  readonly #context: ControllerContext;
  readonly #client: ResourceClient<Endpoints>;
  // The caches.
  readonly #services: Informer<Service>;
  readonly #endpoints: Informer<Endpoints>;
  // What no cache shows.
  readonly #selectorIndex: SelectorIndex;
  readonly #writes: OwnWrites<Endpoints>;
  readonly #grace: AllocationGrace;
  readonly #triggerTimes = new TriggerTimes();
  /** Keys whose Service or Pods changed: their Endpoints are written even if another client wrote them last. */
  readonly #due = new Set<ObjectKey>();
  /** Keys whose last write was a conflict: the event of the other write ends the wait. */
  readonly #conflicted = new Set<ObjectKey>();
  /** Deleted Services that matched the selector of Services. */
  readonly #deletedServices = new Set<ObjectKey>();
  /** The revision of the last list of Services. */
  #servicesListedAt = '';

  constructor(loop: KeyLoop) {
    const { context } = loop;
    this.#loop = loop;
    this.#context = context;
    this.#client = context.clients.for(endpointsResource);

    this.#services = loop.cache(services);
    this.#endpoints = loop.cache(endpointsResource);
    const podCache = loop.cache(pods, { transform: trimPod });

    this.#selectorIndex = new SelectorIndex(this.#services, podCache);
    this.#writes = new OwnWrites(loop, this.#endpoints);
    this.#grace = new AllocationGrace(() => context.clock.monotonic());

    loop.waitFor({ synced: (signal) => this.#lookForLeftovers(signal) });
    this.#services.addHandler({ listed: (revision) => this.#servicesListed(revision) });
    loop.on(this.#services, ({ kind, object: service }) => {
      if (kind === 'deleted' && context.serves(service)) this.#deletedServices.add(keyOf(service));
      return this.#markDue([keyOf(service)]);
    });
    loop.on(podCache, (change) => {
      if (change.kind === 'updated') {
        return this.#markDue(this.#selectorIndex.servicesOfChange(change.object, change.old));
      }
      // At the start every Service is enqueued anyway.
      const isInitial = change.kind === 'added' && change.initial;
      return isInitial ? [] : this.#markDue(this.#selectorIndex.servicesOf(change.object));
    });
    loop.on(this.#endpoints, (change) => {
      if (change.kind === 'deleted') return this.#markDue([keyOf(change.object)]);
      if (change.kind === 'added') this.#checkIfOld(change.object);
      if (change.kind === 'updated' || !change.initial) this.#arrived(change.object);
      return [];
    });
  }

  /** The Endpoints of these keys must follow a change. */
  #markDue(keys: Iterable<ObjectKey>): Iterable<ObjectKey> {
    for (const key of keys) this.#due.add(key);
    return keys;
  }

  /**
   * Runs when the work begins, after an election: removes Endpoints that lost their Service before the caches had it
   * (`checkLeftoverEndpoints`), except for locks of elections.
   */
  async #lookForLeftovers(signal: AbortSignal): Promise<boolean> {
    const synced = await Promise.all([this.#services, this.#endpoints].map((cache) => cache.synced(signal)));
    for (const object of this.#endpoints.cache.values()) this.#checkService(object);
    return synced.every(Boolean);
  }

  /** A Service may have come and gone while the watch was lost. Endpoints of before that may come later, too. */
  #servicesListed(revision: string): void {
    this.#servicesListedAt = revision;
    for (const object of this.#endpoints.cache.values()) this.#checkIfOld(object);
  }

  #checkIfOld(object: Endpoints): void {
    const { resourceVersion = '' } = object.metadata;
    if (compareResourceVersions(resourceVersion, this.#servicesListedAt) <= 0) this.#checkService(object);
  }

  #checkService(object: Endpoints): void {
    const key = keyOf(object);
    if (this.#services.cache.has(key) || Object.hasOwn(object.metadata.annotations ?? {}, leaderAnnotation))
      return;
    this.#due.add(key);
    this.#loop.enqueue(key, { priority: Priority.resync });
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const service = this.#services.cache.get(key);
    if (service !== undefined) {
      this.#deletedServices.delete(key);
      const waitMs = Math.max(this.#grace.left(key, service), this.#writes.pendingMs(key));
      if (waitMs > 0) return { requeueAfterMs: waitMs };
    }
    this.#conflicted.delete(key);
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
    if (selector === undefined || !this.#context.serves(service)) return;
    const existing = this.#endpoints.cache.get(key);
    const pods = this.#selectorIndex.podsOf(service, selector);
    const triggerTime = this.#triggerTimes.observe(key, service, pods);
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
      this.#writes.written(key, written);
      this.#context.log.info({ key, verb, subsets: endpoints.subsets?.length ?? 0 }, 'endpoints written');
    } catch (error) {
      // Creates would fail until the namespace is gone, and then there is nothing left to do.
      if (isNamespaceTerminating(error)) return;
      // A conflict is expected when the cache is behind.
      if (isConflict(error)) {
        this.#conflicted.add(key);
        throw error;
      }
      const { namespace, name } = splitKey(key);
      const why = errorMessage(error);
      if (verb === 'create') {
        const message = `Failed to create endpoint for service ${namespace}/${name}: ${why}`;
        this.#context.events.event(endpoints, 'Warning', 'FailedToCreateEndpoint', message);
      } else {
        const message = `Failed to update endpoint ${namespace}/${name}: ${why}`;
        this.#context.events.event(endpoints, 'Warning', 'FailedToUpdateEndpoint', message);
      }
      throw error;
    }
  }

  async #remove(key: ObjectKey, due: boolean, signal: AbortSignal): Promise<void> {
    this.#triggerTimes.forget(key);
    this.#grace.forget(key);
    const existing = this.#endpoints.cache.get(key) ?? (await this.#unheard(key, signal));
    // Endpoints have the labels of their Service, by which the selector of Services is checked when the Service is
    // gone.
    const ours = existing === undefined || this.#deletedServices.has(key) || this.#context.serves(existing);
    const stands = existing !== undefined || this.#writes.pendingMs(key) > 0;
    const toDelete = ours && stands && (due || (await this.#isOurs(key, signal)));
    // The cache may not show their Service yet, unless it has shown how the Service was deleted.
    if (toDelete && (this.#deletedServices.has(key) || !(await this.#isThere(key, signal)))) {
      const uid = existing?.metadata.uid;
      const { namespace, name } = splitKey(key);
      try {
        await this.#client.delete(namespace, name, {
          signal,
          ...(uid === undefined ? {} : { preconditions: { uid } }),
        });
        this.#context.log.info({ key }, 'endpoints of a Service that is gone deleted');
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
    this.#deletedServices.delete(key);
  }

  /**
   * Endpoints of a deleted Service that the cache does not have: another client may have written them a moment before,
   * and no event would enqueue the key again. Kubernetes' controller deletes without reading.
   */
  async #unheard(key: ObjectKey, signal: AbortSignal): Promise<Endpoints | undefined> {
    if (!this.#deletedServices.has(key)) return undefined;
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
      await this.#context.clients.for(services).get(namespace, name, { signal });
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  /**
   * An event of the cache. It may show an unknown write of ours: one whose answer was lost, or a late write of the
   * leader before, even after its Service was deleted.
   */
  #arrived(object: Endpoints): void {
    const key = keyOf(object);
    if (this.#conflicted.delete(key)) this.#loop.enqueue(key);
    else if (isManagedEndpoints(object) && !this.#writes.isEcho(object)) {
      this.#loop.enqueue(key, { afterMs: unknownWriteDelayMs, priority: Priority.resync });
    }
  }
}
