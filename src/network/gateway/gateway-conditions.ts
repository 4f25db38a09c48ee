import { parseAddress } from '../../objects/address.ts';
import { keyOf } from '../../objects/meta.ts';
import type { Gateway, ListenerSet } from '../../objects/types/gateway.ts';
import { isFalse, isTrue, type Problem, trueUnless } from './conditions.ts';
import type { Listener } from './listeners.ts';
import {
  gatewayGroup,
  type GatewayState,
  type PlannedCondition,
  type PlannedListenerSet,
  type PlannedListenerStatus,
} from './plan.ts';

/** What a Gateway, its ListenerSets and their listeners are told. */

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
export function gatewayProblem({ spec }: Gateway, own: readonly Listener[]): Problem | undefined {
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
export function gatewayConditions(
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
export function plannedListenerStatus(
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
export function plannedListenerSet(
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
export function refusedListenerSet(set: ListenerSet, refused: Problem): PlannedListenerSet {
  const conditions = [isFalse('Accepted', refused), isFalse('Programmed', refused)];
  const listeners = set.spec.listeners.map(({ name }) => ({
    ...{ name, supportedKinds: [], attachedRoutes: 0, conditions },
  }));
  return { key: keyOf(set), generation: set.metadata.generation ?? 0, conditions, listeners };
}
