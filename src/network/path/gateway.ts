/** The way of a request to a Gateway: its listener, the Route and rule that take it, and the backends behind. */
import { compareAge, joinKey, keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type {
  Gateway,
  GatewayClass,
  GRPCRoute,
  HTTPRoute,
  ListenerSet,
  ReferenceGrant,
  TLSRoute,
} from '../../objects/types/gateway.ts';
import { backendEndpoints } from '../http/backends.ts';
import { plainHost, type RuleSource } from '../http/rules.ts';
import { gatewayOfSet, parentKeys } from '../gateway/routes.ts';
import { coversHostname } from '../gateway/hostnames.ts';
import { listenerFor, matchRequest, streamFor } from '../gateway/matching.ts';
import {
  type AnyRoute,
  gatewayController,
  type GatewayBackend,
  type GatewayObjects,
  type GatewayPlan,
  type GatewayRule,
  type PlannedListener,
  type StreamRule,
} from '../gateway/plan.ts';
import { planGateway } from '../gateway/planner.ts';
import { gatewayServiceName, gatewayState } from '../gateway/service.ts';
import type { ClusterView } from './cluster-view.ts';
import type { HttpPlan, HttpRequest, Stage } from './stages.ts';

/** The objects of Gateway API that decide where requests of HTTP go. */
export interface GatewayLists {
  readonly classes: readonly GatewayClass[];
  readonly gateways: readonly Gateway[];
  readonly listenerSets: readonly ListenerSet[];
  readonly httpRoutes: readonly HTTPRoute[];
  readonly grpcRoutes: readonly GRPCRoute[];
  readonly tlsRoutes: readonly TLSRoute[];
  readonly grants: readonly ReferenceGrant[];
}

/** What a plan needs of a certificate that is not read: Secrets and authorities are taken to be there. */
const unread = { certificate: '', key: '' };

/** A request that reaches a Gateway of ours. */
interface Reached {
  readonly gateway: Gateway;
  readonly service: Service | undefined;
  readonly listeners: readonly PlannedListener[];
}

/**
 * What the Gateway of a request does with it; undefined where none has its host. Of several that have it, one with a rule
 * for it comes first, then the older one.
 */
export function planGatewayRequest(
  view: ClusterView,
  lists: GatewayLists,
  request: HttpRequest,
): HttpPlan | undefined {
  const { scheme, path } = request;
  const host = plainHost(request.host);
  const asked = `${scheme}://${request.host}${path}`;
  let refused: HttpPlan | undefined;
  for (const reached of reachedBy(view, lists, request)) {
    const listener = listenerFor(reached.listeners, host);
    if (listener === undefined) continue;
    const way = { view, request, reached, by: `${asked}: listener ${listener.id}` };
    if (listener.protocol === 'TLS') {
      const stream = streamFor(listener, host);
      if (stream !== undefined) return planStream(way, stream);
      continue;
    }
    const decision = matchRequest(reached.listeners, {
      ...{ host, path, query: '', method: 'GET', isGrpc: false },
      ...{ tls: undefined, header: () => undefined },
    });
    if (decision.kind === 'match') return planRule(way, decision.match.rule);
    // A listener for all hosts has this one only by a Route.
    const isOwn =
      listener.hostname !== '' || listener.matches.some((one) => coversHostname(one.hostname, host));
    if (!isOwn) continue;
    const message = `${way.by}: the router answers ${decision.status} ${decision.reason}: none of its Routes has the path`;
    refused ??= {
      stages: [{ stage: 'router', verdict: 'deny', object: `Gateway ${keyOf(reached.gateway)}`, message }],
      ...{ router: undefined, backends: undefined },
    };
  }
  return refused;
}

/** The Gateways that listen for a request: on its port, by its scheme, at the host where that is an address. */
function reachedBy(view: ClusterView, lists: GatewayLists, { scheme, host, port }: HttpRequest): Reached[] {
  const { namespaces } = view.objects;
  const plans = new GatewayPlans(lists, {
    service: (key) => view.service(key),
    namespaceLabels: (name) =>
      namespaces.find(({ metadata }) => metadata.name === name)?.metadata.labels ?? {},
  });
  const addressed = view.serviceAt(host);
  return plans.gateways.flatMap((gateway) => {
    const service = view.service(serviceKeyOf(gateway));
    if (addressed !== undefined && (service === undefined || keyOf(service) !== addressed)) return [];
    const { ports } = plans.planOf(gateway);
    const protocol = scheme === 'https' ? 'TLS' : 'HTTP';
    const found = ports.find((one) => one.port === port && one.protocol === protocol);
    return found === undefined ? [] : { gateway, service, listeners: found.listeners };
  });
}

function serviceKeyOf(gateway: Gateway): ObjectKey {
  return joinKey(gateway.metadata.namespace ?? '', gatewayServiceName(gateway));
}

/** What plans of Gateways need of other objects. */
export interface GatewaySources {
  readonly service: (key: ObjectKey) => Service | undefined;
  readonly namespaceLabels: (namespace: string) => Readonly<Record<string, string>>;
}

/** The plans of the Gateways that a router of ours serves. */
export class GatewayPlans {
  /** The older ones first. */
  readonly gateways: readonly Gateway[];
  readonly #objects: GatewayObjects;
  readonly #sources: GatewaySources;

  constructor(lists: GatewayLists, sources: GatewaySources) {
    const ours = new Set(
      lists.classes.flatMap(({ metadata, spec }) =>
        spec.controllerName === gatewayController ? (metadata.name ?? '') : [],
      ),
    );
    this.gateways = lists.gateways.filter(({ spec }) => ours.has(spec.gatewayClassName)).toSorted(compareAge);
    this.#objects = readerOf(lists, sources);
    this.#sources = sources;
  }

  planOf(gateway: Gateway): GatewayPlan {
    const state = gatewayState(gateway, this.#sources.service(serviceKeyOf(gateway)));
    return planGateway(gateway, this.#objects, state);
  }
}

function readerOf(lists: GatewayLists, { service, namespaceLabels }: GatewaySources): GatewayObjects {
  const routes: readonly AnyRoute[] = [
    ...lists.httpRoutes.map((object) => ({ kind: 'HTTPRoute' as const, object })),
    ...lists.grpcRoutes.map((object) => ({ kind: 'GRPCRoute' as const, object })),
    ...lists.tlsRoutes.map((object) => ({ kind: 'TLSRoute' as const, object })),
  ];
  const byParent = new Map<string, AnyRoute[]>();
  for (const route of routes) {
    for (const parent of new Set(parentKeys(route.object))) {
      const found = byParent.get(parent);
      if (found === undefined) byParent.set(parent, [route]);
      else found.push(route);
    }
  }
  return {
    gatewayClass: (name) => lists.classes.find(({ metadata }) => metadata.name === name),
    listenerSets: (gateway) => lists.listenerSets.filter((set) => gatewayOfSet(set) === gateway),
    routes: (kind, parent) => byParent.get(`${kind} ${parent}`) ?? [],
    grants: (namespace) => lists.grants.filter(({ metadata }) => metadata.namespace === namespace),
    ...{ namespaceLabels, service },
    authority: () => '',
    certificate: () => unread,
    policies: () => [],
  };
}

/** A request on its way through a Gateway. */
interface GatewayWay {
  readonly view: ClusterView;
  readonly request: HttpRequest;
  readonly reached: Reached;
  /** What is asked, and the listener that has it: the beginning of messages. */
  readonly by: string;
}

function planRule(way: GatewayWay, { source, name, filters, backends }: GatewayRule): HttpPlan {
  const by = `${way.by}, rule ${name}`;
  const { unsupported, redirect } = filters;
  if (unsupported !== undefined) {
    const message = `${by} answers 500: ${unsupported}`;
    return end(way, source, { verdict: 'deny', message }, false);
  }
  if (redirect !== undefined) {
    const message = `${by} redirects with status ${redirect.status}`;
    return end(way, source, { verdict: 'allow', message }, true);
  }
  return planBackends({ ...way, by }, source, backends, (status) => `answers ${status}`);
}

/** TLS goes to a backend as it is, or without TLS. */
function planStream(way: GatewayWay, { source, backends }: StreamRule): HttpPlan {
  return planBackends(way, source, backends, () => 'resets the connection');
}

/** @param refusal what the router does where there is no backend, by the status for HTTP. */
function planBackends(
  way: GatewayWay,
  source: RuleSource,
  all: readonly GatewayBackend[],
  refusal: (status: 500 | 503) => string,
): HttpPlan {
  const { view, request, reached, by } = way;
  const { gateway, service } = reached;
  if (service === undefined) {
    const message = `${by} has it, but Gateway ${keyOf(gateway)} has no Service yet`;
    return end(way, source, { verdict: 'unknown', message }, false);
  }
  const found = all.filter(({ weight }) => weight > 0).map((backend) => reach(view, backend));
  const backends = found.flatMap(({ endpoints }) => endpoints);
  const names = [...new Set(found.map((one) => one.name))].join(', ');
  if (backends.length === 0) {
    const [first] = found;
    const does = refusal(first?.isValid === true ? 503 : 500);
    const message = `${by} ${does} ${first?.problem ?? 'NoBackends'}: it leads to ${names || 'no Service'}`;
    return end(way, source, { verdict: 'deny', message }, false);
  }
  const count = backends.length === 1 ? 'its endpoint' : `one of ${backends.length} endpoints`;
  const message = `${by} leads to ${names}, to ${count}`;
  return {
    stages: [{ stage: 'router', verdict: 'allow', object: objectOf(source), message }],
    ...{ router: { service, port: request.port }, backends },
  };
}

/** The router answers by itself, where it is reached. */
function end(
  { request, reached: { service } }: GatewayWay,
  source: RuleSource,
  stage: Pick<Stage, 'verdict' | 'message'>,
  isAnswered: boolean,
): HttpPlan {
  return {
    stages: [{ stage: 'router', object: objectOf(source), ...stage }],
    router: isAnswered && service !== undefined ? { service, port: request.port } : undefined,
    backends: undefined,
  };
}

function objectOf({ kind, namespace, name }: RuleSource): string {
  return `${kind} ${namespace}/${name}`;
}

/** The endpoints of a backendRef. */
function reach(view: ClusterView, { rule }: GatewayBackend) {
  const [backend] = rule?.backends ?? [];
  if (rule === undefined || backend === undefined)
    return { name: 'a backend that is not valid', isValid: false, problem: 'InvalidBackend', endpoints: [] };
  const key = joinKey(backend.namespace, backend.service);
  const found = backendEndpoints(backend, rule.source.kind, view.service(key), view.slicesOf(key));
  return { name: `Service ${key}`, isValid: true, ...found };
}
