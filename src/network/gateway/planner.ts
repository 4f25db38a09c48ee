import { compareText } from '../../objects/go-text.ts';
import { pushAll, resultOf } from '../../objects/lists.ts';
import { compareAge, keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Gateway, ListenerSet } from '../../objects/types/gateway.ts';
import type { KeyPair } from '../http/rules.ts';
import type { Problem } from './conditions.ts';
import { compareHostnames } from './hostnames.ts';
import { sortMatches } from './http-rules.ts';
import { type Listener, planListeners, portPart, readNamespaces } from './listeners.ts';
import type {
  AnyRoute,
  GatewayMatch,
  GatewayObjects,
  GatewayPlan,
  GatewayState,
  PlannedListener,
  PlannedListenerStatus,
  PlannedPort,
  PlannedRouteParent,
} from './plan.ts';
import { Policies } from './policies.ts';
import { References } from './references.ts';
import { type Attached, parentId, type RouteParent, RoutePlanner, sortStreams } from './routes.ts';
import {
  addressProblem,
  gatewayConditions,
  gatewayProblem,
  type GatewayProblems,
  plannedListenerSet,
  plannedListenerStatus,
  refusedListenerSet,
} from './gateway-conditions.ts';

/**
 * What a Gateway of a class of ours is to do, and what is said about it, its ListenerSets, its Routes and their policies.
 * Pure. The status of Routes and the number of those attached come from one computation.
 */
export function planGateway(gateway: Gateway, objects: GatewayObjects, state: GatewayState): GatewayPlan {
  return resultOf(planGatewayInSteps(gateway, objects, state));
}

/**
 * As {@link planGateway}, in steps of a few milliseconds at most: Routes may have a million matches. Who lets other work
 * in between plans again if an object that was looked up has changed since.
 */
export function* planGatewayInSteps(
  gateway: Gateway,
  objects: GatewayObjects,
  state: GatewayState,
): Generator<undefined, GatewayPlan, undefined> {
  const key = keyOf(gateway);
  const references = new References(objects);
  const { allowed, refused, refusal } = listenerSetsOf(gateway, objects, references);
  const { own, sets } = planListeners(gateway, allowed, references);
  const all = [...own, ...sets.flatMap(({ listeners }) => listeners)];
  const client = clientCertificate(gateway, references);
  const policies = new Policies(references, client.pair);

  const { namespace = '', name = '' } = gateway.metadata;
  const parents = new Map<string, RouteParent>();
  parents.set(parentId('Gateway', namespace, name), { listeners: own, refused: undefined });
  for (const { set, listeners } of sets) parents.set(setId(set), { listeners, refused: undefined });
  const noParent = { reason: 'NoMatchingParent', message: refusal.message };
  for (const set of refused) parents.set(setId(set), { listeners: [], refused: noParent });
  const planner = new RoutePlanner(parents, references, policies);
  const routes: PlannedRouteParent[] = [];
  for (const route of routesOf(objects, key, [...allowed, ...refused])) {
    pushAll(routes, planner.add(route));
    yield;
  }

  const problems: GatewayProblems = {
    rejected: gatewayProblem(gateway, own),
    address: addressProblem(gateway, state),
    client: client.problem,
  };
  const statusOf = (listener: Listener): PlannedListenerStatus =>
    plannedListenerStatus(listener, planner.attached(listener).routes, problems);
  const listenerSets = [
    ...sets.map(({ set, listeners }) =>
      plannedListenerSet(set, listeners, listeners.map(statusOf), problems),
    ),
    ...refused.map((set) => refusedListenerSet(set, refusal)),
  ];
  return {
    gateway: key,
    generation: gateway.metadata.generation ?? 0,
    ports: problems.rejected === undefined ? yield* portsOf(all, planner) : [],
    conditions: gatewayConditions(gateway, problems, own, all),
    listeners: own.map(statusOf),
    attachedListenerSets: listenerSets.filter(({ conditions }) =>
      conditions.some(({ type, status }) => type === 'Accepted' && status === 'True'),
    ).length,
    listenerSets,
    routes,
    policies: policies.planned(),
    lookups: references.lookups,
  };
}

function setId({ metadata: { namespace = '', name = '' } }: ListenerSet): string {
  return parentId('ListenerSet', namespace, name);
}

/** The ListenerSets that name the Gateway: those that it allows come in the order of their age, then of their names. */
function listenerSetsOf(
  gateway: Gateway,
  objects: GatewayObjects,
  references: References,
): {
  readonly allowed: readonly ListenerSet[];
  readonly refused: readonly ListenerSet[];
  readonly refusal: Problem;
} {
  const own = gateway.metadata.namespace ?? '';
  const { allows } = readNamespaces(gateway.spec.allowedListeners?.namespaces, 'None', own, references);
  const allowed: ListenerSet[] = [];
  const refused: ListenerSet[] = [];
  for (const set of objects.listenerSets(keyOf(gateway)).toSorted(compareAge)) {
    (allows(set.metadata.namespace ?? '') ? allowed : refused).push(set);
  }
  const message = `allowedListeners of Gateway ${keyOf(gateway)} does not allow the namespace`;
  return { allowed, refused, refusal: { reason: 'NotAllowed', message } };
}

/** The Routes that name the Gateway or one of its ListenerSets, each once. */
function routesOf(
  objects: GatewayObjects,
  gateway: ObjectKey,
  sets: readonly ListenerSet[],
): readonly AnyRoute[] {
  if (sets.length === 0) return objects.routes('Gateway', gateway);
  const known = new Map<string, AnyRoute>();
  const add = (routes: readonly AnyRoute[]): void => {
    for (const route of routes) known.set(`${route.kind} ${keyOf(route.object)}`, route);
  };
  add(objects.routes('Gateway', gateway));
  for (const set of sets) add(objects.routes('ListenerSet', keyOf(set)));
  return [...known.values()];
}

/** The certificate that a Gateway shows to backends. */
function clientCertificate(
  { metadata: { namespace = '' }, spec }: Gateway,
  references: References,
): { readonly pair: KeyPair | undefined; readonly problem: Problem | undefined } {
  const reference = spec.tls?.backend?.clientCertificateRef;
  if (reference === undefined) return { pair: undefined, problem: undefined };
  const reasons = { kind: 'InvalidClientCertificateRef', object: 'InvalidClientCertificateRef' };
  const found = references.certificate({ kind: 'Gateway', namespace }, reference, reasons);
  return 'pair' in found ? { pair: found.pair, problem: undefined } : { pair: undefined, problem: found };
}

/** The ports with the listeners that are served. */
function* portsOf(
  listeners: readonly Listener[],
  planner: RoutePlanner,
): Generator<undefined, readonly PlannedPort[], undefined> {
  const ports = new Map<
    string,
    { port: number; protocol: PlannedPort['protocol']; listeners: PlannedListener[] }
  >();
  for (const listener of listeners) {
    if (!listener.isServed || listener.protocol === undefined) continue;
    const { port } = listener.spec;
    const protocol = portPart(listener.protocol);
    const id = `${protocol} ${port}`;
    const known = ports.get(id) ?? { port, protocol, listeners: [] };
    known.listeners.push(yield* plannedListener(listener, listener.protocol, planner.attached(listener)));
    ports.set(id, known);
  }
  const found = [...ports.values()];
  for (const { listeners: list } of found) list.sort((a, b) => compareHostnames(a.hostname, b.hostname));
  return found.sort((a, b) => a.port - b.port || compareText(a.protocol, b.protocol));
}

function* plannedListener(
  { id, hostname, tls }: Listener,
  protocol: PlannedListener['protocol'],
  { matches, streams }: Readonly<Attached>,
): Generator<undefined, PlannedListener, undefined> {
  const sorted = sortStreams(streams);
  const byHost: GatewayMatch[] = [];
  for (const host of [...matches.keys()].sort(compareHostnames)) {
    pushAll(byHost, sortMatches(matches.get(host) ?? []));
    yield;
  }
  return {
    ...{ id, hostname, protocol, tls },
    matches: byHost,
    // Several Routes may have a port without hostnames; one has its traffic.
    streams: protocol === 'TLS' ? sorted : sorted.slice(0, 1),
  };
}
