import type { Informer, Informers } from '../../client/informers/informer.ts';
import {
  type GatewayPlan,
  gatewayController,
  type PlannedPolicy,
  type PlannedPort,
  type PlannedRouteParent,
  type RouteKind,
  type AnyRoute,
  type GatewayObjects,
} from '../../network/gateway/plan.ts';
import { planGatewayInSteps } from '../../network/gateway/planner.ts';
import {
  gatewayServiceName,
  gatewayState,
  isServiceOf,
  portKey,
  routerPorts,
} from '../../network/gateway/service.ts';
import { joinKey, type KubeObject, type ObjectKey, keyOf } from '../../objects/meta.ts';
import type { Service, ConfigMap, Namespace, Secret } from '../../objects/types/core.generated.ts';
import type {
  Gateway,
  BackendTLSPolicy,
  CommonRouteSpec,
  GatewayClass,
  ListenerSet,
  ReferenceGrant,
  RouteStatus,
} from '../../objects/types/gateway.ts';
import type { Runnable } from '../../runtime/context.ts';
import { KeyLoop, type LoopContext } from '../../runtime/key-loop.ts';
import { runInSlices } from '../../telemetry/time-slice.ts';
import {
  backendTLSPolicies,
  configMaps,
  gatewayClasses,
  gateways,
  grpcRoutes,
  httpRoutes,
  listenerSets,
  namespaces,
  referenceGrants,
  secrets,
  services,
  tcpRoutes,
  tlsRoutes,
  udpRoutes,
} from '../../client/resources.ts';
import { gatewayOfSet, parentKeys } from '../../network/gateway/routes.ts';
import type { KeyPair } from '../../network/http/rules.ts';
import { bundleProblem, keyPairProblem } from '../certificates.ts';
import { certificateOnly, decodedPair } from '../router-view.ts';

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

/** What is the same for Routes of all kinds. */
type RouteObject = KubeObject & { readonly spec: CommonRouteSpec; readonly status?: RouteStatus };

const byParent = 'gateway parent';
const byNamespace = 'namespace';
const byTarget = 'target service';

/** The caches of what Gateways are planned from. */
export class GatewayCaches implements GatewayObjects {
  readonly gateways: Informer<Gateway>;
  readonly classes: Informer<GatewayClass>;
  readonly sets: Informer<ListenerSet>;
  readonly services: Informer<Service>;
  readonly targetPolicies: Informer<BackendTLSPolicy>;
  readonly #routes: { readonly [K in RouteKind]: Informer<RouteObject & (AnyRoute & { kind: K })['object']> };
  readonly #grants: Informer<ReferenceGrant>;
  readonly #namespaces: Informer<Namespace>;
  readonly #configMaps: Informer<ConfigMap>;
  readonly #secrets: Informer<Secret>;
  /** What was found about the certificates of Secrets: to check one takes a millisecond. */
  readonly #pairs = new WeakMap<Secret, KeyPair | { readonly problem: string }>();
  readonly #authorities = new WeakMap<ConfigMap, string | { readonly problem: string }>();

  constructor(informers: Informers) {
    this.gateways = informers.informer(gateways);
    this.classes = informers.informer(gatewayClasses);
    this.sets = informers.informer(listenerSets);
    this.services = informers.informer(services);
    this.targetPolicies = informers.informer(backendTLSPolicies);
    this.#grants = informers.informer(referenceGrants);
    this.#namespaces = informers.informer(namespaces);
    this.#configMaps = informers.informer(configMaps, { transform: authoritiesOnly });
    this.#secrets = informers.informer(secrets, { transform: certificateOnly });
    this.#routes = {
      HTTPRoute: informers.informer(httpRoutes),
      GRPCRoute: informers.informer(grpcRoutes),
      TLSRoute: informers.informer(tlsRoutes),
      TCPRoute: informers.informer(tcpRoutes),
      UDPRoute: informers.informer(udpRoutes),
    };
    for (const informer of Object.values(this.#routes)) informer.addIndex(byParent, parentKeys);
    this.sets.addIndex(byParent, (set) => [gatewayOfSet(set)]);
    this.#grants.addIndex(byNamespace, ({ metadata }) => [metadata.namespace ?? '']);
    this.targetPolicies.addIndex(byTarget, ({ metadata, spec }) =>
      spec.targetRefs.map(({ name }) => joinKey(metadata.namespace ?? '', name)),
    );
  }

  /** All of them, to wait until they have synced. */
  get sources(): readonly Informer<KubeObject>[] {
    return [
      ...[this.gateways, this.classes, this.sets, this.services, this.targetPolicies],
      ...[this.#grants, this.#namespaces, this.#configMaps, this.#secrets, ...Object.values(this.#routes)],
    ];
  }

  /**
   * Calls back with what has changed: keys of Gateways that have to be planned anew, and the names of other objects, as
   * {@link GatewayObjects} are looked up.
   */
  follow(planAnew: (gateway: ObjectKey) => void, changed: (lookup: string) => void): void {
    follow(this.gateways, (gateway) => planAnew(keyOf(gateway)));
    follow(this.classes, (gatewayClass) => {
      for (const gateway of this.gateways.cache.values()) {
        if (gateway.spec.gatewayClassName === gatewayClass.metadata.name) planAnew(keyOf(gateway));
      }
    });
    follow(this.sets, (set) => planAnew(gatewayOfSet(set)));
    for (const informer of Object.values(this.#routes)) {
      follow<RouteObject>(informer, (route) => {
        for (const parent of parentKeys(route)) for (const key of this.#gatewaysOf(parent)) planAnew(key);
      });
    }
    follow(this.services, (service) => {
      changed(`Service ${keyOf(service)}`);
      for (const owner of service.metadata.ownerReferences ?? []) {
        if (owner.kind === 'Gateway') planAnew(joinKey(service.metadata.namespace ?? '', owner.name));
      }
    });
    follow(this.#secrets, (secret) => changed(`Secret ${keyOf(secret)}`));
    follow(this.#configMaps, (configMap) => changed(`ConfigMap ${keyOf(configMap)}`));
    follow(this.#namespaces, (namespace) => changed(`Namespace ${keyOf(namespace)}`));
    follow(this.#grants, ({ metadata }) => changed(`ReferenceGrant ${metadata.namespace ?? ''}`));
    follow(this.targetPolicies, ({ metadata, spec }) => {
      for (const { name } of spec.targetRefs)
        changed(`BackendTLSPolicy ${joinKey(metadata.namespace ?? '', name)}`);
    });
  }

  /** A Route's own object, as the cache has it. */
  route(kind: RouteKind, key: ObjectKey): RouteObject | undefined {
    return this.#routes[kind].cache.get(key);
  }

  routeInformer(kind: RouteKind): Informer<RouteObject> {
    return this.#routes[kind];
  }

  gatewayClass(name: string): GatewayClass | undefined {
    return this.classes.cache.get(name);
  }

  listenerSets(gateway: ObjectKey): readonly ListenerSet[] {
    return this.sets.cache.byIndex(byParent, gateway);
  }

  routes(kind: 'Gateway' | 'ListenerSet', parent: ObjectKey): readonly AnyRoute[] {
    const { HTTPRoute, GRPCRoute, TLSRoute, TCPRoute, UDPRoute } = this.#routes;
    const value = `${kind} ${parent}`;
    return [
      ...HTTPRoute.cache.byIndex(byParent, value).map((object) => ({ kind: 'HTTPRoute', object }) as const),
      ...GRPCRoute.cache.byIndex(byParent, value).map((object) => ({ kind: 'GRPCRoute', object }) as const),
      ...TLSRoute.cache.byIndex(byParent, value).map((object) => ({ kind: 'TLSRoute', object }) as const),
      ...TCPRoute.cache.byIndex(byParent, value).map((object) => ({ kind: 'TCPRoute', object }) as const),
      ...UDPRoute.cache.byIndex(byParent, value).map((object) => ({ kind: 'UDPRoute', object }) as const),
    ];
  }

  grants(namespace: string): readonly ReferenceGrant[] {
    return this.#grants.cache.byIndex(byNamespace, namespace);
  }

  namespaceLabels(namespace: string): Readonly<Record<string, string>> | undefined {
    const found = this.#namespaces.cache.get(namespace);
    return found === undefined ? undefined : (found.metadata.labels ?? {});
  }

  service(key: ObjectKey): Service | undefined {
    return this.services.cache.get(key);
  }

  certificate(key: ObjectKey): KeyPair | { readonly problem: string } | undefined {
    const secret = this.#secrets.cache.get(key);
    if (secret === undefined) return undefined;
    let found = this.#pairs.get(secret);
    if (found === undefined) {
      const pair = decodedPair(secret);
      const problem = pair === undefined ? 'it has no tls.crt and tls.key' : keyPairProblem(pair);
      found = pair === undefined || problem !== undefined ? { problem: problem ?? '' } : pair;
      this.#pairs.set(secret, found);
    }
    return found;
  }

  authority(key: ObjectKey): string | { readonly problem: string } | undefined {
    const configMap = this.#configMaps.cache.get(key);
    if (configMap === undefined) return undefined;
    let found = this.#authorities.get(configMap);
    if (found === undefined) {
      const pem = configMap.data?.['ca.crt'];
      const problem = pem === undefined ? 'it has no ca.crt' : bundleProblem(pem);
      found = pem === undefined || problem !== undefined ? { problem: problem ?? '' } : pem;
      this.#authorities.set(configMap, found);
    }
    return found;
  }

  policies(service: ObjectKey): readonly BackendTLSPolicy[] {
    return this.targetPolicies.cache.byIndex(byTarget, service);
  }

  /** The Gateway of a parent: itself, or that of a ListenerSet. */
  #gatewaysOf(parent: string): ObjectKey[] {
    const [kind, key = ''] = parent.split(' ');
    if (kind === 'Gateway') return [key];
    const set = this.sets.cache.get(key);
    return set === undefined ? [] : [gatewayOfSet(set)];
  }
}

/** An object that has changed, as it is and as it was: what it no longer names has to know, too. */
function follow<T extends KubeObject>(informer: Informer<T>, changed: (object: T) => void): void {
  informer.addHandler({
    added: (object) => changed(object),
    updated: (object, old) => {
      changed(old);
      changed(object);
    },
    deleted: (object) => changed(object),
  });
}

/** Other values are not needed, and not kept in memory. */
function authoritiesOnly(configMap: ConfigMap): ConfigMap {
  const { 'ca.crt': authorities } = configMap.data ?? {};
  configMap.data = authorities === undefined ? {} : { 'ca.crt': authorities };
  delete configMap.binaryData;
  return configMap;
}
