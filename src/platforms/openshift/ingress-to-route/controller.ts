import { isNotFound } from '../../../client/errors.ts';
import {
  ingressClasses as ingressClassesResource,
  ingresses as ingressesResource,
  routes as routesResource,
  secrets as secretsResource,
  services as servicesResource,
} from '../../../client/resources.ts';
import { onEach } from '../../../client/informers/cache.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import { joinKey, keyOf, type ObjectKey, splitKey } from '../../../objects/meta.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { StatusError } from '../../../objects/status.ts';
import type { Secret, Service } from '../../../objects/types/core.generated.ts';
import type { Ingress, IngressClass } from '../../../objects/types/networking.generated.ts';
import type { Route } from '../../../objects/types/route.generated.ts';
import type { ControllerContext, ControllerDefinition } from '../../../runtime/context.ts';
import type { ReconcileResult } from '../../../runtime/key-loop.ts';
import { Expectations } from '../../../runtime/own-writes.ts';
import { Reconciler } from '../../../runtime/key-loop.ts';
import { lookAgain, StatusWriter } from '../../../runtime/own-writes.ts';
import { ingressOf, isManaged, labelsAnnotation, planRoutes, type RoutePlan } from './plan.ts';

/** Makes Routes of Ingresses, as OpenShift does: for platforms whose server has Routes. */
export const ingressToRouteDefinition: ControllerDefinition = {
  name: 'ingress-to-route-controller',
  start: (context) => [new IngressToRoute(context)],
};

const byNamespace = 'namespace';
const byIngress = 'ingress';

class IngressToRoute extends Reconciler {
  readonly #ingresses: Informer<Ingress>;
  readonly #classes: Informer<IngressClass>;
  readonly #routes: Informer<Route>;
  readonly #services: Informer<Service>;
  readonly #secrets: Informer<Secret>;
  readonly #written: Expectations<Route>;
  readonly #status: StatusWriter<Ingress>;
  /** The messages of an Ingress' last Events: each is sent once while it holds. */
  readonly #sentEvents = new Map<ObjectKey, readonly string[]>();

  constructor(context: ControllerContext) {
    super(context, 'ingress_to_route');
    this.#ingresses = this.informer(ingressesResource);
    this.#classes = this.informer(ingressClassesResource);
    this.#routes = this.informer(routesResource);
    this.#services = this.informer(servicesResource);
    this.#secrets = this.informer(secretsResource);
    this.#ingresses.addIndex(byNamespace, ({ metadata }) => [metadata.namespace ?? '']);
    this.#routes.addIndex(byIngress, (route) => {
      const name = ingressOf(route);
      return name === undefined ? [] : [joinKey(route.metadata.namespace ?? '', name)];
    });
    this.#written = new Expectations(this.#routes, context.clock);
    this.#status = new StatusWriter(context, this.#ingresses);
    this.enqueueChanges(this.#ingresses);
    this.#routes.addHandler(
      onEach((route) => {
        const name = ingressOf(route);
        if (name !== undefined) this.queue.enqueue(joinKey(route.metadata.namespace ?? '', name));
      }),
    );
    const ofNamespace = ({ metadata }: KubeObject): void => {
      for (const ingress of this.#ingresses.cache.byIndex(byNamespace, metadata.namespace ?? '')) {
        this.queue.enqueue(keyOf(ingress));
      }
    };
    this.#services.addHandler(onEach(ofNamespace));
    this.#secrets.addHandler(onEach(ofNamespace));
    this.#classes.addHandler(
      onEach(() => {
        for (const key of this.#ingresses.cache.keys()) this.queue.enqueue(key);
      }),
    );
  }

  protected async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const ingress = this.#ingresses.cache.get(key);
    // The Routes of one that has gone are the garbage collector's.
    const isGone = ingress === undefined || ingress.metadata.deletionTimestamp !== undefined;
    if (isGone || !isManaged(ingress, (name) => this.#classes.cache.get(name))) {
      this.#sentEvents.delete(key);
      return undefined;
    }
    if (!this.#written.settled(key) || !this.#status.settled(key)) return { requeueAfter: lookAgain };
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
    const client = this.context.clients.for(routesResource);
    for (const route of creates) this.#written.written(key, await client.create(route, { signal }));
    for (const route of updates) this.#written.written(key, await client.replace(route, { signal }));
    for (const route of deletes) {
      const { namespace = '', name = '', uid = '' } = route.metadata;
      try {
        await client.delete(namespace, name, { signal, preconditions: { uid } });
      } catch (error) {
        if (!isNotFound(error)) throw error;
        continue;
      }
      this.#written.deleted(key, route);
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
      if (!before.includes(message)) this.context.events.event(ingress, type, reason, message);
    }
  }
}

interface IngressEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
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
