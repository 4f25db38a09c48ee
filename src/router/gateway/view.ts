import type { Informer } from '../../client/informers/informer.ts';
import { type GatewayPlan, gatewayController, type PlannedPolicy } from '../../network/gateway/plan.ts';
import type { PlannedPort, PlannedRouteParent, RouteKind } from '../../network/gateway/plan.ts';
import { planGatewayInSteps } from '../../network/gateway/planner.ts';
import {
  gatewayServiceName,
  gatewayState,
  isServiceOf,
  portKey,
  routerPorts,
} from '../../network/gateway/service.ts';
import { joinKey, type KubeObject, type ObjectKey } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { Gateway } from '../../objects/types/gateway.ts';
import type { Runnable } from '../../runtime/context.ts';
import { KeyLoop, type LoopContext } from '../../runtime/key-loop.ts';
import { runInSlices } from '../../telemetry/time-slice.ts';
import { GatewayCaches } from './objects.ts';

/** A port of a Gateway, and where a router listens for it. */
export interface ServedPort {
  /** `shop/web TCP 80` */
  readonly id: string;
  readonly bindPort: number;
  readonly plan: PlannedPort;
}

interface KnownPlan {
  readonly plan: GatewayPlan;
  /** Its entries by kind and key of the Route. */
  readonly routes: ReadonlyMap<string, readonly PlannedRouteParent[]>;
}

/** Plans each Gateway of ours again when something that it was planned from changes. */
export class GatewayView implements Runnable {
  readonly caches: GatewayCaches;
  /** Is called after each planning; `plan` and `before` are undefined where the Gateway is not, or was not, ours. */
  onPlan: (key: ObjectKey, plan: GatewayPlan | undefined, before: GatewayPlan | undefined) => void = () =>
    undefined;
  readonly #plans = new Map<ObjectKey, KnownPlan>();
  /** Gateways by what their plans looked up. */
  readonly #users = new Map<string, Set<ObjectKey>>();
  /** What has changed since each planning that runs has begun: its lookups are known at its end alone. */
  readonly #changedMeanwhile = new Set<Set<string>>();
  readonly #loop: KeyLoop<LoopContext>;
  readonly #serve: (ports: readonly ServedPort[]) => Promise<unknown>;

  /** @param serve gets the ports of all Gateways after each planning. Never rejects. */
  constructor(context: LoopContext, serve: (ports: readonly ServedPort[]) => Promise<unknown>) {
    this.#serve = serve;
    this.caches = new GatewayCaches(context.informers);
    this.#loop = new KeyLoop(context, 'gateway_plans', { workers: 1 }, (loop) => {
      for (const source of this.caches.sources) loop.waitFor(source);
      return async (key) => {
        if (await this.#plan(key)) void this.#serve(this.#servedPorts());
        return undefined;
      };
    });
    this.caches.follow(
      (key) => this.#loop.enqueue(key),
      (lookup) => {
        for (const changed of this.#changedMeanwhile) changed.add(lookup);
        for (const key of this.#users.get(lookup) ?? []) this.#loop.enqueue(key);
      },
    );
  }

  get sources(): readonly Informer<KubeObject>[] {
    return this.caches.sources;
  }

  /** Resolves when the Gateways that are there are served, or the signal aborts. */
  async served(signal: AbortSignal): Promise<void> {
    const synced = await Promise.all(this.sources.map((source) => source.synced(signal)));
    if (!synced.every(Boolean)) return;
    for (const key of [...this.caches.gateways.cache.keys()]) await this.#plan(key);
    await this.#serve(this.#servedPorts());
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#loop.run(signal);
  }

  plan(key: ObjectKey): GatewayPlan | undefined {
    return this.#plans.get(key)?.plan;
  }

  /** The Service of a Gateway, or what else has its name. */
  serviceOf(gateway: Gateway): Service | undefined {
    return this.caches.service(joinKey(gateway.metadata.namespace ?? '', gatewayServiceName(gateway)));
  }

  /** What all Gateways say of a Route, in the order of its parentRefs. */
  routeParents(kind: RouteKind, key: ObjectKey): readonly PlannedRouteParent[] {
    const parentRefs = this.caches.route(kind, key)?.spec.parentRefs ?? [];
    return [...this.#plans.values()]
      .flatMap(({ routes }) => routes.get(`${kind} ${key}`) ?? [])
      .toSorted((a, b) => parentRefs.indexOf(a.parentRef) - parentRefs.indexOf(b.parentRef));
  }

  /** What each Gateway says of a policy. */
  policyAncestors(
    key: ObjectKey,
  ): readonly { readonly gateway: ObjectKey; readonly policy: PlannedPolicy }[] {
    return [...this.#plans.values()].flatMap(({ plan: { gateway, policies } }) =>
      policies.flatMap((policy) => (policy.key === key ? { gateway, policy } : [])),
    );
  }

  /** @returns whether the Gateway is or was ours. */
  async #plan(key: ObjectKey): Promise<boolean> {
    const gateway = this.caches.gateways.cache.get(key);
    const isOurs =
      gateway !== undefined &&
      this.caches.gatewayClass(gateway.spec.gatewayClassName)?.spec.controllerName === gatewayController;
    const changed = new Set<string>();
    this.#changedMeanwhile.add(changed);
    const steps = isOurs
      ? planGatewayInSteps(gateway, this.caches, gatewayState(gateway, this.serviceOf(gateway)))
      : undefined;
    const plan = steps === undefined ? undefined : await runInSlices(steps);
    this.#changedMeanwhile.delete(changed);
    if ([...changed].some((lookup) => plan?.lookups.has(lookup))) this.#loop.enqueue(key);
    const before = this.#plans.get(key)?.plan;
    for (const lookup of before?.lookups ?? []) {
      const users = this.#users.get(lookup);
      users?.delete(key);
      if (users?.size === 0) this.#users.delete(lookup);
    }
    for (const lookup of plan?.lookups ?? []) {
      const users = this.#users.get(lookup);
      if (users === undefined) this.#users.set(lookup, new Set([key]));
      else users.add(key);
    }
    if (plan === undefined) this.#plans.delete(key);
    else this.#plans.set(key, { plan, routes: Map.groupBy(plan.routes, (one) => `${one.kind} ${one.key}`) });
    this.onPlan(key, plan, before);
    return plan !== undefined || before !== undefined;
  }

  #servedPorts(): ServedPort[] {
    return [...this.#plans.values()].flatMap(({ plan: { gateway: key, ports } }) => {
      const gateway = this.caches.gateways.cache.get(key);
      const service = gateway === undefined ? undefined : this.serviceOf(gateway);
      if (gateway === undefined || service === undefined || !isServiceOf(service, gateway)) return [];
      const bound = routerPorts(service);
      return ports.flatMap((plan): ServedPort[] => {
        const bindPort = bound.get(portKey(plan));
        return bindPort === undefined ? [] : [{ id: `${key} ${portKey(plan)}`, bindPort, plan }];
      });
    });
  }

  /** Keys of the Gateways that this plans. */
  keys(): Iterable<ObjectKey> {
    return this.#plans.keys();
  }
}
