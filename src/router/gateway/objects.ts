import type { Informer, Informers } from '../../client/informers/informer.ts';
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
import { gatewayOfSet, parentKeys } from '../../network/gateway/attachment.ts';
import { type AnyRoute, type GatewayObjects, type RouteKind } from '../../network/gateway/plan.ts';
import type { KeyPair } from '../../network/http/rules.ts';
import { joinKey, keyOf, type KubeObject, type ObjectKey } from '../../objects/meta.ts';
import type { ConfigMap, Namespace, Secret, Service } from '../../objects/types/core.generated.ts';
import type {
  BackendTLSPolicy,
  CommonRouteSpec,
  Gateway,
  GatewayClass,
  ListenerSet,
  ReferenceGrant,
  RouteStatus,
} from '../../objects/types/gateway.ts';
import { bundleProblem, keyPairProblem } from '../certificates.ts';
import { certificateOnly, decodedPair } from '../router-view.ts';

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

  /** All of them, for whoever waits until they have synced. */
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
