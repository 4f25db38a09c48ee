import type { EventReason } from '../../../objects/reasons.ts';
import { isNotFound } from '../../../client/errors.ts';
import {
  ingressClasses as ingressClassesResource,
  ingresses as ingressesResource,
  routes as routesResource,
  secrets as secretsResource,
  services as servicesResource,
} from '../../../client/resources.ts';
import { byNamespace, indexByNamespace } from '../../../client/informers/cache.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import { joinKey, keyOf, type KubeObject, type ObjectKey, splitKey } from '../../../objects/meta.ts';
import { StatusError } from '../../../objects/status.ts';
import type { Secret, Service } from '../../../objects/types/core.generated.ts';
import type { Ingress, IngressClass } from '../../../objects/types/networking.generated.ts';
import type { Route } from '../../../objects/types/route.generated.ts';
import type { ControllerContext } from '../../../runtime/context.ts';
import {
  type Change,
  type ControllerSpec,
  type KeyLoop,
  ownKey,
  type ReconcileResult,
} from '../../../runtime/key-loop.ts';
import { OwnWrites } from '../../../runtime/own-writes.ts';
import { StatusWriter } from '../../../runtime/status-writer.ts';
import { ingressOf, isManaged, labelsAnnotation, planRoutes, type RoutePlan } from './plan.ts';

/** Makes Routes of Ingresses, as OpenShift does: for platforms whose server has Routes. */
export const ingressToRouteController: ControllerSpec = {
  name: 'ingress-to-route-controller',
  eventSource: 'ingress-to-route-controller',
  queue: 'ingress_to_route',
  build(loop) {
    const reconciler = new IngressToRouteReconciler(loop);
    return (key, signal) => reconciler.reconcile(key, signal);
  },
};

const byIngress = 'ingress';

class IngressToRouteReconciler {
  readonly #context: ControllerContext;
  readonly #ingresses: Informer<Ingress>;
  readonly #classes: Informer<IngressClass>;
  readonly #routes: Informer<Route>;
  readonly #services: Informer<Service>;
  readonly #secrets: Informer<Secret>;
  readonly #routeWrites: OwnWrites<Route>;
  readonly #status: StatusWriter<Ingress>;
  /** The messages of an Ingress' last Events: each is sent once while it holds. */
  readonly #sentEvents = new Map<ObjectKey, readonly string[]>();

  constructor(loop: KeyLoop) {
    this.#context = loop.context;

    this.#ingresses = loop.cache(ingressesResource, { indexes: { [byNamespace]: indexByNamespace } });
    this.#classes = loop.cache(ingressClassesResource);
    this.#routes = loop.cache(routesResource, { indexes: { [byIngress]: keysOfIngress } });
    this.#services = loop.cache(servicesResource);
    this.#secrets = loop.cache(secretsResource);

    this.#routeWrites = new OwnWrites(loop, this.#routes);
    this.#status = new StatusWriter(loop, this.#ingresses);

    loop.on(this.#ingresses, (change) => (change.kind === 'deleted' ? [] : ownKey(change)));
    loop.on(this.#routes, ({ object }) => keysOfIngress(object));
    const ofNamespace = ({ object: { metadata } }: Change<KubeObject>): ObjectKey[] =>
      [...this.#ingresses.cache.byIndex(byNamespace, metadata.namespace ?? '')].map(keyOf);
    loop.on(this.#services, ofNamespace);
    loop.on(this.#secrets, ofNamespace);
    loop.on(this.#classes, () => this.#ingresses.cache.keys());
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const ingress = this.#ingresses.cache.get(key);
    // The Routes of one that has gone are the garbage collector's.
    const isGone = ingress === undefined || ingress.metadata.deletionTimestamp !== undefined;
    if (isGone || !isManaged(ingress, (name) => this.#classes.cache.get(name))) {
      this.#sentEvents.delete(key);
      return undefined;
    }
    const waitMs = Math.max(this.#routeWrites.pendingMs(key), this.#status.pendingMs(key));
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const { namespace } = splitKey(key);
    const owned = this.#routes.cache
      .byIndex(byIngress, key)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const plan = planRoutes(ingress, owned, {
      service: (name) => this.#services.cache.get(joinKey(namespace, name)),
      secrets: (name) => this.#secrets.cache.get(joinKey(namespace, name)),
    });
    try {
      await this.#write(key, plan, signal);
    } catch (error) {
      if (error instanceof StatusError && error.code === 422) {
        this.#sendEvents(ingress, [
          ...annotationEvents(plan),
          {
            type: 'Warning',
            reason: 'FailedIngressToRouteConversion',
            message: `a Route was refused: ${error.message}`,
          },
        ]);
      }
      throw error;
    }
    await this.#status.write(ingress, { ...ingress.status, loadBalancer: balancer(plan) }, signal);
    this.#sendEvents(ingress, [...annotationEvents(plan), ...ruleEvents(plan)]);
    return undefined;
  }

  async #write(key: ObjectKey, { creates, updates, deletes }: RoutePlan, signal: AbortSignal): Promise<void> {
    const client = this.#context.clients.for(routesResource);
    for (const route of creates) this.#routeWrites.written(key, await client.create(route, { signal }));
    for (const route of updates) this.#routeWrites.written(key, await client.replace(route, { signal }));
    for (const route of deletes) {
      const { namespace = '', name = '', uid = '' } = route.metadata;
      this.#routeWrites.deleting(key, route);
      try {
        await client.delete(namespace, name, { signal, preconditions: { uid } });
      } catch (error) {
        this.#routeWrites.notDeleted(route);
        if (!isNotFound(error)) throw error;
      }
    }
  }

  #sendEvents(ingress: Ingress, events: readonly IngressEvent[]): void {
    const key = keyOf(ingress);
    const before = this.#sentEvents.get(key) ?? [];
    if (events.length === 0) this.#sentEvents.delete(key);
    else
      this.#sentEvents.set(
        key,
        events.map(({ message }) => message),
      );
    for (const { type, reason, message } of events) {
      if (!before.includes(message)) this.#context.events.event(ingress, type, reason, message);
    }
  }
}

/** The key of the Ingress that a Route was made of. */
function keysOfIngress(route: Route): ObjectKey[] {
  const name = ingressOf(route);
  return name === undefined ? [] : [joinKey(route.metadata.namespace ?? '', name)];
}

interface IngressEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: EventReason;
  readonly message: string;
}

/** The problems of annotations, in the words of route-controller-manager. */
function annotationEvents({ invalidReconcileLabels }: RoutePlan): IngressEvent[] {
  if (invalidReconcileLabels === undefined) return [];
  const message = `Invalid value on annotation "${labelsAnnotation}"`;
  return [{ type: 'Normal', reason: 'InvalidAnnotationValue', message }];
}

function ruleEvents({ incomplete, otherPorts }: RoutePlan): IngressEvent[] {
  const messages = [
    ...(incomplete.length === 0 ? [] : [`Some rules have no Route: ${incomplete.join('; ')}`]),
    ...(otherPorts.length === 0
      ? []
      : [`Some Routes had another target port, which was corrected: ${otherPorts.join('; ')}`]),
  ];
  return messages.map((message) => ({ type: 'Normal', reason: 'IncompleteIngressToRouteRules', message }));
}

function balancer({ loadBalancer }: RoutePlan): NonNullable<Ingress['status']['loadBalancer']> {
  return loadBalancer.length === 0 ? {} : { ingress: [...loadBalancer] };
}
