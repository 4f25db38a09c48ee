import { isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import {
  endpointSlices,
  services,
  customResourceDefinitions,
  gatewayClasses,
} from '../../client/resources.ts';
import {
  type GatewayPlan,
  type PlannedPolicy,
  type PlannedRouteParent,
  type RouteKind,
  gatewayController,
  gatewayGroup,
} from '../../network/gateway/plan.ts';
import {
  type AppliedService,
  gatewayNameLabel,
  gatewayService,
  gatewayState,
  isServiceOf,
  ownerOf,
  routerPorts,
  slicePorts,
} from '../../network/gateway/service.ts';
import {
  gatewayStatus,
  listenerSetStatus,
  policyStatus,
  routeStatus,
  bundleVersionAnnotation,
  gatewayClassStatus,
} from '../../network/gateway/status.ts';
import { type IPFamily, parseAddress } from '../../objects/address.ts';
import { isReady, serviceNameLabel, slicesWithoutPods } from '../../objects/endpoints.ts';
import { jsonEqual } from '../../objects/json.ts';
import { joinKey, keyOf, type KubeObject, type ObjectKey } from '../../objects/meta.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import type { Gateway } from '../../objects/types/gateway.ts';
import type { ControllerContext, Runnable } from '../../runtime/context.ts';
import { KeyLoop } from '../../runtime/key-loop.ts';
import type { GatewayView } from './view.ts';

const byService = 'service of gateways';
/** The field manager of Services and slices that are made for Gateways. */
const fieldManager = 'servicenet-gateway';

/**
 * Makes the Service and the EndpointSlices of each Gateway, and writes the status of Gateways, ListenerSets, Routes and
 * policies. Of several routers of one name the leader does it.
 */
export class GatewayWriter implements Runnable {
  readonly #context: ControllerContext;
  readonly #view: GatewayView;
  readonly #slices: Informer<EndpointSlice>;
  readonly #routerService: ObjectKey | undefined;
  readonly #gateways: KeyLoop;
  /** Keys are `HTTPRoute ns/name`. */
  readonly #routes: KeyLoop;
  readonly #policies: KeyLoop;
  /** Target ports by Gateway, for those whose Service the cache does not show yet. */
  readonly #given = new Map<ObjectKey, readonly number[]>();

  /** @param routerService the Service of the routers, whose endpoints are where Gateways lead to. */
  constructor(context: ControllerContext, view: GatewayView, routerService: ObjectKey | undefined) {
    this.#context = context;
    this.#view = view;
    this.#routerService = routerService;
    this.#slices = context.informers.informer(endpointSlices);
    this.#slices.addIndex(byService, ({ metadata }) => [
      joinKey(metadata.namespace ?? '', metadata.labels?.[serviceNameLabel] ?? ''),
    ]);
    this.#gateways = new KeyLoop(context, 'gateways', {}, (loop) => {
      for (const source of [this.#slices, ...view.sources]) loop.waitFor(source);
      return (key, signal) => this.#writeGateway(key, signal);
    });
    this.#routes = this.#gateways.beside('gateway_routes', {}, (loop) => {
      for (const source of view.sources) loop.waitFor(source);
      return (key, signal) => this.#writeRoute(key, signal);
    });
    this.#policies = this.#gateways.beside('gateway_policies', {}, (loop) => {
      for (const source of view.sources) loop.waitFor(source);
      return (key, signal) => this.#writePolicy(key, signal);
    });
    view.onPlan = (key, plan, before) => this.#planned(key, plan, before);
    for (const key of view.keys()) this.#planned(key, view.plan(key), undefined);
  }

  async run(signal: AbortSignal): Promise<void> {
    const stop = this.#slices.addHandler({
      added: (slice) => this.#sliceChanged(slice),
      updated: (slice) => this.#sliceChanged(slice),
      deleted: (slice) => this.#sliceChanged(slice),
    });
    await this.#gateways.run(signal);
    stop();
    this.#view.onPlan = () => undefined;
  }

  #planned(key: ObjectKey, plan: GatewayPlan | undefined, before: GatewayPlan | undefined): void {
    this.#gateways.enqueue(key);
    if (plan === undefined) this.#given.delete(key);
    for (const { kind, key: route } of changedOf(plan?.routes, before?.routes, routeId)) {
      this.#routes.enqueue(`${kind} ${route}`);
    }
    for (const { key: policy } of changedOf(plan?.policies, before?.policies, (one) => one.key)) {
      this.#policies.enqueue(policy);
    }
  }

  /** The routers' own endpoints are those of all Gateways; a Gateway's slice that somebody changed is put right. */
  #sliceChanged({ metadata }: EndpointSlice): void {
    const { namespace = '', labels = {} } = metadata;
    const gateway = labels[gatewayNameLabel];
    if (gateway !== undefined) this.#gateways.enqueue(joinKey(namespace, gateway));
    else if (joinKey(namespace, labels[serviceNameLabel] ?? '') === this.#routerService) {
      for (const key of this.#view.keys()) this.#gateways.enqueue(key);
    }
  }

  async #writeGateway(key: ObjectKey, signal: AbortSignal): Promise<undefined> {
    const gateway = this.#view.caches.gateways.cache.get(key);
    const plan = this.#view.plan(key);
    if (gateway === undefined || plan === undefined || gateway.metadata.deletionTimestamp !== undefined)
      return;
    await this.#writeService(gateway, plan, signal);
    const nowMs = this.#context.clock.now();
    const state = gatewayState(gateway, this.#view.serviceOf(gateway));
    await this.#patch(
      this.#view.caches.gateways,
      gateway,
      gatewayStatus(gateway, plan, state, nowMs),
      signal,
    );
    for (const planned of plan.listenerSets) {
      const set = this.#view.caches.sets.cache.get(planned.key);
      if (set === undefined) continue;
      await this.#patch(this.#view.caches.sets, set, listenerSetStatus(set, planned, nowMs), signal);
    }
  }

  async #writeService(gateway: Gateway, plan: GatewayPlan, signal: AbortSignal): Promise<void> {
    const present = this.#view.serviceOf(gateway);
    // Its name is taken: the status says so.
    if (present !== undefined && !isServiceOf(present, gateway)) return;
    const key = keyOf(gateway);
    const wanted = gatewayService(gateway, plan.ports, present, this.#takenBeside(key, present));
    if (wanted === undefined) return;
    this.#given.set(
      key,
      slicePorts(wanted).map(({ port = 0 }) => port),
    );
    const options = { fieldManager, force: true, signal };
    if (present === undefined || !isApplied(wanted, present)) {
      await this.#context.clients.for(services).applyPatch(wanted, options);
    }
    for (const slice of this.#wantedSlices(gateway, wanted)) {
      const found = this.#slices.cache.get(keyOf(slice));
      const isRight =
        found !== undefined &&
        jsonEqual([found.endpoints ?? [], found.ports ?? []], [slice.endpoints ?? [], slice.ports ?? []]);
      if (!isRight) await this.#context.clients.for(endpointSlices).applyPatch(slice, options);
    }
  }

  /** Target ports of all other Gateways. */
  #takenBeside(own: ObjectKey, present: AppliedService | undefined): ReadonlySet<number> {
    const shown = [...this.#view.caches.services.cache.values()]
      .filter((service) => gatewayNameLabel in (service.metadata.labels ?? {}) && service !== present)
      .flatMap((service) => [...routerPorts(service).values()]);
    const given = [...this.#given].flatMap(([key, ports]) => (key === own ? [] : ports));
    return new Set([...shown, ...given]);
  }

  #wantedSlices(gateway: Gateway, service: AppliedService): EndpointSlice[] {
    const addresses = this.#routerAddresses();
    const families = new Set(
      addresses.flatMap((address): IPFamily[] => {
        const family = parseAddress(address)?.family;
        return family === undefined ? [] : [family];
      }),
    );
    const { metadata } = service;
    return slicesWithoutPods(metadata, fieldManager, [...families], addresses, slicePorts(service)).map(
      (slice) => ({ ...slice, metadata: { ...slice.metadata, ownerReferences: [ownerOf(gateway)] } }),
    );
  }

  /** Where routers answer that are ready. */
  #routerAddresses(): string[] {
    const own =
      this.#routerService === undefined ? [] : this.#slices.cache.byIndex(byService, this.#routerService);
    const ready = own.flatMap(({ endpoints }) => endpoints ?? []).filter(isReady);
    return [...new Set(ready.flatMap(({ addresses: [address] }) => address ?? []))].toSorted();
  }

  async #writeRoute(id: ObjectKey, signal: AbortSignal): Promise<undefined> {
    const [kind, key = ''] = id.split(' ');
    const route = routeKinds.find((one) => one === kind);
    if (route === undefined) return;
    const informer = this.#view.caches.routeInformer(route);
    const object = informer.cache.get(key);
    if (object === undefined) return;
    const parents = this.#view.routeParents(route, key);
    await this.#patch(informer, object, routeStatus(object, parents, this.#context.clock.now()), signal);
  }

  async #writePolicy(key: ObjectKey, signal: AbortSignal): Promise<undefined> {
    const informer = this.#view.caches.targetPolicies;
    const policy = informer.cache.get(key);
    if (policy === undefined) return;
    const ancestors = this.#view.policyAncestors(key);
    await this.#patch(informer, policy, policyStatus(policy, ancestors, this.#context.clock.now()), signal);
  }

  /** Writes a status that is another one. @throws 409 of the server where the cache is behind: the key is tried again. */
  async #patch<T extends KubeObject & { readonly status?: object }>(
    { resource }: Informer<T>,
    object: T,
    status: object,
    signal: AbortSignal,
  ): Promise<void> {
    if (jsonEqual(object.status ?? {}, status)) return;
    const { namespace = '', name = '', resourceVersion } = object.metadata;
    const removed = Object.fromEntries(
      Object.keys(object.status ?? {})
        .filter((member) => !(member in status))
        .map((member) => [member, null]),
    );
    const patch = { metadata: { resourceVersion }, status: { ...removed, ...status } };
    try {
      await this.#context.clients
        .for(resource)
        .mergePatch(namespace, name, patch, { subresource: 'status', signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

const routeKinds: readonly RouteKind[] = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'];

function routeId({ kind, key }: PlannedRouteParent): string {
  return `${kind} ${key}`;
}

/** One entry for each object of which something else is said than before. */
function changedOf<T extends PlannedRouteParent | PlannedPolicy>(
  now: readonly T[] = [],
  before: readonly T[] = [],
  idOf: (one: T) => string,
): T[] {
  const said = Map.groupBy(now, idOf);
  const saidBefore = Map.groupBy(before, idOf);
  const gone = [...saidBefore].flatMap(([id, [first]]) => (said.has(id) || first === undefined ? [] : first));
  const others = [...said].flatMap(([id, all]) => {
    const [first] = all;
    return first === undefined || jsonEqual(all, saidBefore.get(id) ?? []) ? [] : first;
  });
  return [...gone, ...others];
}

/** Whether a Service has what is applied. */
function isApplied(wanted: AppliedService, { metadata, spec }: AppliedService): boolean {
  const has = (present: Readonly<Record<string, string>> = {}, all: Readonly<Record<string, string>> = {}) =>
    Object.entries(all).every(([name, value]) => present[name] === value);
  const portsOf = (ports: AppliedService['spec']['ports']): unknown[] =>
    (ports ?? []).map(({ name, protocol, port, targetPort }) => [name, protocol, port, targetPort]);
  return (
    has(metadata.labels, wanted.metadata.labels) &&
    has(metadata.annotations, wanted.metadata.annotations) &&
    spec.type === wanted.spec.type &&
    jsonEqual(portsOf(spec.ports), portsOf(wanted.spec.ports))
  );
}

/** The definition by whose version a class is supported: those of one installation have the same. */
const definition = `gateways.${gatewayGroup}`;

/** Says of each GatewayClass of ours whether it is served, and what we claim of the API. */
export function gatewayClassLoop(context: ControllerContext): KeyLoop {
  return new KeyLoop(context, 'gateway_classes', { workers: 1 }, (loop) => {
    const classes = loop.cache(gatewayClasses);
    loop.on(classes, ({ object }) => [object.metadata.name ?? '']);
    return async (name, signal) => {
      const found = classes.cache.get(name);
      if (found?.spec.controllerName !== gatewayController) return undefined;
      const { clients, clock } = loop.context;
      const { metadata } = await clients.for(customResourceDefinitions).get('', definition, { signal });
      const version = metadata.annotations?.[bundleVersionAnnotation];
      const status = gatewayClassStatus(found, version, clock.now());
      if (jsonEqual(found.status ?? {}, status)) return undefined;
      const { resourceVersion } = found.metadata;
      try {
        await clients
          .for(gatewayClasses)
          .mergePatch('', name, { metadata: { resourceVersion }, status }, { subresource: 'status', signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      return undefined;
    };
  });
}
