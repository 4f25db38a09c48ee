import { compareText } from '../../objects/formats/go-text.ts';
import { pushAll, resultOf } from '../../objects/lists.ts';
import { compareAge, keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Gateway, ListenerSet } from '../../objects/types/gateway.ts';
import type { KeyPair } from '../http/rules.ts';
import {
  type Problem,
  isFalse,
  isTrue,
  trueUnless,
  type AnyRoute,
  type GatewayMatch,
  type GatewayObjects,
  type GatewayPlan,
  type GatewayState,
  type PlannedListener,
  type PlannedListenerStatus,
  type PlannedPort,
  type PlannedRouteParent,
  gatewayGroup,
  type PlannedCondition,
  type PlannedListenerSet,
} from './plan.ts';
import { compareHostnames } from './hostnames.ts';
import { sortMatches } from './http-rules.ts';
import { type Listener, planListeners, portPart, readNamespaces } from './listeners.ts';
import { Policies } from './policies.ts';
import { References } from './references.ts';
import { type Attached, parentId, type RouteParent, RoutePlanner, sortStreams } from './routes.ts';
import { parseAddress } from '../../objects/address.ts';

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

/** The conditions of a Gateway, its ListenerSets and their listeners. */

/** What is wrong with a Gateway as a whole. */
export interface GatewayProblems {
  /** Why it is not accepted: nothing of it is served. */
  readonly rejected: Problem | undefined;
  /** Why it has no address yet, or not those that it asks for. */
  readonly address: Problem | undefined;
  /** Of the certificate that it shows to backends. */
  readonly client: Problem | undefined;
}

/** Why a Gateway is not accepted. @param own its own listeners. */
function gatewayProblem({ spec }: Gateway, own: readonly Listener[]): Problem | undefined {
  const parameters = spec.infrastructure?.parametersRef;
  if (parameters !== undefined) {
    const message = `infrastructure.parametersRef: ${parameters.kind ?? ''} ${parameters.name} is not supported`;
    return { reason: 'InvalidParameters', message };
  }
  const address = spec.addresses?.find(({ type = 'IPAddress' }) => type !== 'IPAddress');
  if (address !== undefined) {
    const message = `Addresses of type ${address.type ?? ''} are not supported`;
    return { reason: 'UnsupportedAddress', message };
  }
  if (own.some(({ rejected }) => rejected === undefined)) return undefined;
  return { reason: 'ListenersNotValid', message: 'No listener is accepted' };
}

/** Why a Gateway cannot be reached at an address, or not at all that it asks for. */
export function addressProblem({ spec }: Gateway, state: GatewayState): Problem | undefined {
  const unusable = (message: string): Problem => ({ reason: 'AddressNotUsable', message });
  const wanted = (spec.addresses ?? []).flatMap(({ value = '' }) => (value === '' ? [] : [value]));
  const broken = wanted.find((value) => parseAddress(value) === undefined);
  if (broken !== undefined) return unusable(`${broken} is no IP address`);
  if (state.addressProblem !== undefined && wanted.length > 0) return unusable(state.addressProblem);
  if (state.addresses.length === 0) {
    const message = state.addressProblem ?? 'The Service of the Gateway has no address yet';
    return { reason: 'AddressNotAssigned', message };
  }
  const missing = wanted.find((value) => !state.addresses.some((one) => isSameAddress(one.value, value)));
  return missing === undefined ? undefined : unusable(`The Service of the Gateway did not get ${missing}`);
}

function isSameAddress(a: string, b: string): boolean {
  const [one, other] = [parseAddress(a), parseAddress(b)];
  return one !== undefined && one.family === other?.family && one.value === other.value;
}

/** @param all the listeners of its ListenerSets, too. */
function gatewayConditions(
  gateway: Gateway,
  { rejected, address, client }: GatewayProblems,
  own: readonly Listener[],
  all: readonly Listener[],
): readonly PlannedCondition[] {
  const isPartial = own.some((listener) => listener.rejected !== undefined);
  const nothing = rejected ?? (all.some(({ isServed }) => isServed) ? undefined : noListener);
  const unresolved = own.find((listener) => listener.unresolved !== undefined);
  const references =
    client ??
    (unresolved === undefined
      ? undefined
      : {
          reason: 'ListenersNotResolved',
          message: `Listener ${unresolved.spec.name} has references that lead to nothing`,
        });
  const conditions = [
    rejected === undefined && isPartial
      ? isTrue('Accepted', 'Some listeners are not accepted', 'ListenersNotValid')
      : trueUnless('Accepted', rejected, 'The Gateway is accepted'),
    trueUnless(
      'Programmed',
      nothing === undefined ? address : { reason: 'Invalid', message: nothing.message },
      'The Gateway is served',
    ),
    trueUnless('ResolvedRefs', references, 'All references are resolved'),
  ];
  if (!hasInsecureFallback(gateway)) return conditions;
  const message = 'Clients of HTTPS are served without a valid certificate, too';
  return [...conditions, isTrue('InsecureFrontendValidationMode', message, 'ConfigurationChanged')];
}

const noListener: Problem = { reason: 'Invalid', message: 'No listener can be served' };

function hasInsecureFallback({ spec }: Gateway): boolean {
  const { default: usual, perPort = [] } = spec.tls?.frontend ?? {};
  return [usual, ...perPort.map(({ tls }) => tls)].some(
    (one) => one?.validation?.mode === 'AllowInsecureFallback',
  );
}

/** The status of a listener. */
function plannedListenerStatus(
  listener: Listener,
  attachedRoutes: number,
  { rejected: gateway, address }: GatewayProblems,
): PlannedListenerStatus {
  const { spec, kinds, rejected, isConflicted, unresolved, isServed, isOverlapping } = listener;
  const conditions = [
    trueUnless('Accepted', rejected, 'The listener is accepted'),
    trueUnless('ResolvedRefs', unresolved, 'All references are resolved'),
    trueUnless('Programmed', unprogrammed(listener, gateway, address), 'The listener is served'),
    isConflicted && rejected !== undefined
      ? isTrue('Conflicted', rejected.message, rejected.reason)
      : isFalse('Conflicted', { reason: 'NoConflicts', message: 'No other listener is in its way' }),
  ];
  if (isServed && isOverlapping) {
    const message = 'The hostname of another listener of the port covers this one, or is covered by it';
    conditions.push(isTrue('OverlappingTLSConfig', message, 'OverlappingHostnames'));
  }
  return {
    name: spec.name,
    supportedKinds: kinds.map((kind) => ({ group: gatewayGroup, kind })),
    attachedRoutes,
    conditions,
  };
}

function unprogrammed(
  { rejected, isConflicted, unresolved, isServed }: Listener,
  gateway: Problem | undefined,
  address: Problem | undefined,
): Problem | undefined {
  if (rejected !== undefined && isConflicted) return rejected;
  if (rejected !== undefined) return { reason: 'Invalid', message: rejected.message };
  if (!isServed) return { reason: 'Invalid', message: unresolved?.message ?? 'It serves no kind of Routes' };
  if (gateway !== undefined)
    return { reason: 'Invalid', message: `The Gateway is not accepted: ${gateway.message}` };
  return address === undefined ? undefined : { reason: 'Pending', message: address.message };
}

/** The status of a ListenerSet that the Gateway allows. */
function plannedListenerSet(
  set: ListenerSet,
  listeners: readonly Listener[],
  statuses: readonly PlannedListenerStatus[],
  { rejected, address }: GatewayProblems,
): PlannedListenerSet {
  const served = listeners.filter(({ isServed }) => isServed).length;
  const parent = (reason: string, problem: Problem): Problem => ({
    reason,
    message: `The Gateway: ${problem.message}`,
  });
  const invalid: Problem | undefined =
    served === 0 ? { reason: 'ListenersNotValid', message: 'No listener can be served' } : undefined;
  const accepted = rejected === undefined ? invalid : parent('ParentNotAccepted', rejected);
  const waiting = rejected ?? address;
  const isPartial = accepted === undefined && served < listeners.length;
  return {
    key: keyOf(set),
    generation: set.metadata.generation ?? 0,
    conditions: [
      isPartial
        ? isTrue('Accepted', 'Some listeners cannot be served', 'ListenersNotValid')
        : trueUnless('Accepted', accepted, 'The ListenerSet is accepted'),
      trueUnless(
        'Programmed',
        invalid ?? (waiting === undefined ? undefined : parent('ParentNotProgrammed', waiting)),
        'The ListenerSet is served',
      ),
    ],
    listeners: statuses,
  };
}

/** The status of a ListenerSet that the Gateway does not allow. */
function refusedListenerSet(set: ListenerSet, refused: Problem): PlannedListenerSet {
  const conditions = [isFalse('Accepted', refused), isFalse('Programmed', refused)];
  const listeners = set.spec.listeners.map(({ name }) => ({
    ...{ name, supportedKinds: [], attachedRoutes: 0, conditions },
  }));
  return { key: keyOf(set), generation: set.metadata.generation ?? 0, conditions, listeners };
}
