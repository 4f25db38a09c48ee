import type { Informer } from '../../client/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { endpoints as endpointsResource, services } from '../../client/resources.ts';
import type { Endpoints } from '../../objects/endpoints.ts';
import { keyOf, type ObjectKey, splitKey } from '../../objects/key.ts';
import type { Service } from '../../objects/service.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../runtime/context.ts';
import { Controller, Priority, type ReconcileResult } from '../runtime/controller.ts';
import { isNamespaceTerminating, isNotFound } from '../service-pods/api-errors.ts';
import { Membership } from '../service-pods/membership.ts';
import { managedSelector } from '../service-pods/pod.ts';
import { podInformer } from '../service-pods/pod-cache.ts';
import { TriggerTimes } from '../service-pods/trigger-time.ts';
import { planEndpoints } from './plan.ts';

const leaderAnnotation = 'control-plane.alpha.kubernetes.io/leader';

/** How long the cache may lag behind an own write before the write counts as undone by somebody, in milliseconds. */
const patience = 60_000;

/** Writes the Endpoints of Services with a selector (kube-controller-manager's `endpoints-controller`). */
export const endpointsController: ControllerDefinition = {
  name: 'endpoints-controller',
  start(context: ControllerContext): readonly Runnable[] {
    return [new EndpointsWiring(context).controller];
  },
};

/** An own write that the cache has not shown yet: the version that it replaced, none for a create. */
interface PendingWrite {
  replaced: string | undefined;
  /** Monotonic milliseconds. */
  at: number;
  /** A reconcile came too early and waits for the cache. */
  awaited: boolean;
}

class EndpointsWiring {
  readonly controller: Controller;
  readonly #context: ControllerContext;
  readonly #services: Informer<Service>;
  readonly #endpoints: Informer<Endpoints>;
  readonly #client: ResourceClient<Endpoints>;
  readonly #membership: Membership;
  readonly #times = new TriggerTimes();
  readonly #pending = new Map<ObjectKey, PendingWrite>();

  constructor(context: ControllerContext) {
    this.#context = context;
    this.#services = context.informers.informer(services);
    this.#endpoints = context.informers.informer(endpointsResource);
    this.#client = context.clients.for(endpointsResource);
    const pods = podInformer(context);
    this.#membership = new Membership(this.#services, pods);
    this.controller = new Controller({
      name: 'endpoint',
      context,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      workers: 10,
      waitFor: [this.#services, pods, this.#endpoints],
      backoff: { base: 5, max: 1_000_000 },
    });
    const enqueue = (keys: Iterable<ObjectKey>): void => {
      for (const key of keys) this.controller.enqueue(key);
    };
    this.#services.addHandler({
      added: (service, initial) => {
        this.controller.enqueue(keyOf(service), initial ? { priority: Priority.resync } : {});
      },
      updated: (service) => this.controller.enqueue(keyOf(service)),
      deleted: (service) => this.controller.enqueue(keyOf(service)),
    });
    pods.addHandler({
      // At the start every Service is looked at anyway.
      added: (pod, initial) => enqueue(initial ? [] : this.#membership.servicesOf(pod)),
      updated: (pod, old) => enqueue(this.#membership.servicesOfChange(pod, old)),
      deleted: (pod) => enqueue(this.#membership.servicesOf(pod)),
    });
    this.#endpoints.addHandler({
      added: (object, initial) => {
        // Endpoints that were left without a Service while nobody looked are removed; locks of elections are not.
        if (initial && !Object.hasOwn(object.metadata.annotations ?? {}, leaderAnnotation)) {
          this.controller.enqueue(keyOf(object), { priority: Priority.resync });
        }
        this.#arrived(object);
      },
      updated: (object) => this.#arrived(object),
      deleted: (object) => {
        this.#pending.delete(keyOf(object));
        this.controller.enqueue(keyOf(object));
      },
    });
  }

  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const service = this.#services.cache.get(key);
    if (service === undefined) return this.#remove(key, signal);
    const selector = managedSelector(service);
    if (selector === undefined) return undefined;

    const existing = this.#endpoints.cache.get(key);
    const pending = this.#pending.get(key);
    if (pending !== undefined && existing?.metadata.resourceVersion === pending.replaced) {
      const left = patience - (this.#context.clock.monotonic() - pending.at);
      if (left > 0) {
        // The arrival of the write in the cache brings the key back; the time is for writes that never arrive.
        pending.awaited = true;
        return { requeueAfter: left };
      }
    }
    this.#pending.delete(key);

    const pods = this.#membership.podsOf(service, selector);
    const triggerTime = this.#times.observe(key, service, pods);
    const plan = planEndpoints({ service, pods, existing, triggerTime });
    if (plan.write === 'none') return undefined;
    await this.#write(key, plan.write, plan.endpoints, signal);
    return undefined;
  }

  async #write(
    key: ObjectKey,
    verb: 'create' | 'update',
    endpoints: Endpoints,
    signal: AbortSignal,
  ): Promise<void> {
    const replaced = endpoints.metadata.resourceVersion;
    try {
      const written =
        verb === 'create'
          ? await this.#client.create(endpoints, { signal })
          : await this.#client.replace(endpoints, { signal });
      if (written.metadata.resourceVersion !== replaced) {
        this.#pending.set(key, { replaced, at: this.#context.clock.monotonic(), awaited: false });
        this.#context.log.info({ key, verb, subsets: endpoints.subsets?.length ?? 0 }, 'endpoints written');
      }
    } catch (error) {
      // Creates go on failing until the namespace is gone, and then there is nothing left to do.
      if (isNamespaceTerminating(error)) return;
      const { namespace, name } = splitKey(key);
      const why = error instanceof Error ? error.message : String(error);
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

  async #remove(key: ObjectKey, signal: AbortSignal): Promise<undefined> {
    this.#times.forget(key);
    const existing = this.#endpoints.cache.get(key);
    if (existing !== undefined || this.#pending.has(key)) {
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
    this.#pending.delete(key);
    return undefined;
  }

  /** The cache has an object: an own write that it was waiting for may be in it. */
  #arrived(object: Endpoints): void {
    const key = keyOf(object);
    const pending = this.#pending.get(key);
    if (pending === undefined || object.metadata.resourceVersion === pending.replaced) return;
    this.#pending.delete(key);
    if (pending.awaited) this.controller.enqueue(key);
  }
}
