import { type Condition, joinKey, splitKey, transitionTime } from '../../objects/meta.ts';
import type {
  BackendTLSPolicy,
  Gateway,
  GatewayStatus,
  ListenerSet,
  ListenerStatus,
  PolicyAncestorStatus,
  RouteParentStatus,
  RouteStatus,
  GatewayClass,
} from '../../objects/types/gateway.ts';
import {
  gatewayController,
  gatewayGroup,
  type GatewayPlan,
  type GatewayState,
  type PlannedCondition,
  type PlannedListenerSet,
  type PlannedListenerStatus,
  type PlannedPolicy,
  type PlannedRouteParent,
  isFalse,
  isTrue,
  trueUnless,
} from './plan.ts';

/** Plans as the status of their objects: with times and generations, beside what other controllers wrote. */

/** Conditions of Gateways, Routes and policies that are ours alone: one that is no longer planned is taken away. */
const own = new Set([
  ...['Accepted', 'Programmed', 'ResolvedRefs', 'Conflicted', 'OverlappingTLSConfig', 'PartiallyInvalid'],
  ...['InsecureFrontendValidationMode', 'SupportedVersion'],
]);

/**
 * The conditions of an object.
 *
 * @param before as they are. Those of other types stay; the time of one whose status does not change, too.
 * @param nowMs milliseconds since 1970.
 */
export function conditionsOf(
  planned: readonly PlannedCondition[],
  before: readonly Condition[] | undefined,
  generation: number,
  nowMs: number,
): Condition[] {
  const wanted = planned.map((condition): Condition => {
    const lastTransitionTime = transitionTime(before, condition, nowMs);
    return { ...condition, observedGeneration: generation, lastTransitionTime };
  });
  const types = new Set(wanted.map(({ type }) => type));
  return [...wanted, ...(before ?? []).filter(({ type }) => !types.has(type) && !own.has(type))];
}

function listenersOf(
  planned: readonly PlannedListenerStatus[],
  before: readonly ListenerStatus[] | undefined,
  generation: number,
  nowMs: number,
): ListenerStatus[] {
  return planned.map(({ name, supportedKinds = [], attachedRoutes, conditions }) => {
    const old = before?.find((listener) => listener.name === name)?.conditions;
    return {
      ...{ name, supportedKinds: [...supportedKinds], attachedRoutes },
      conditions: conditionsOf(conditions, old, generation, nowMs),
    };
  });
}

export function gatewayStatus(
  { status }: Gateway,
  { generation, conditions, listeners, attachedListenerSets }: GatewayPlan,
  { addresses }: GatewayState,
  nowMs: number,
): GatewayStatus {
  return {
    ...(addresses.length === 0 ? {} : { addresses: addresses.map((address) => ({ ...address })) }),
    conditions: conditionsOf(conditions, status?.conditions, generation, nowMs),
    listeners: listenersOf(listeners, status?.listeners, generation, nowMs),
    ...(attachedListenerSets === 0 ? {} : { attachedListenerSets }),
  };
}

export function listenerSetStatus(
  { status }: ListenerSet,
  { generation, conditions, listeners }: PlannedListenerSet,
  nowMs: number,
): NonNullable<ListenerSet['status']> {
  return {
    conditions: conditionsOf(conditions, status?.conditions, generation, nowMs),
    listeners: listenersOf(listeners, status?.listeners, generation, nowMs),
  };
}

/** The entries of other controllers stay as they are. */
export function routeStatus(
  { status }: { readonly status?: RouteStatus },
  parents: readonly PlannedRouteParent[],
  nowMs: number,
): RouteStatus {
  const before = status?.parents ?? [];
  const wanted = parents.map(({ generation, parentRef, conditions }): RouteParentStatus => {
    const old = before.find(
      (entry) => entry.controllerName === gatewayController && isSameParent(entry.parentRef, parentRef),
    );
    return {
      ...{ parentRef, controllerName: gatewayController },
      conditions: conditionsOf(conditions, old?.conditions, generation, nowMs),
    };
  });
  return {
    parents: [...before.filter(({ controllerName }) => controllerName !== gatewayController), ...wanted],
  };
}

/** At most 16, as the API has it: of more Gateways the first ones are told. */
const maxAncestors = 16;

export function policyStatus(
  { status }: Pick<BackendTLSPolicy, 'status'>,
  ancestors: readonly { readonly gateway: string; readonly policy: PlannedPolicy }[],
  nowMs: number,
): NonNullable<BackendTLSPolicy['status']> {
  const before = status?.ancestors ?? [];
  const wanted = ancestors.map(({ gateway, policy }): PolicyAncestorStatus => {
    const { namespace, name } = splitKey(gateway);
    const ancestorRef = { group: gatewayGroup, kind: 'Gateway', namespace, name };
    const old = before.find(
      (entry) => entry.controllerName === gatewayController && isSameParent(entry.ancestorRef, ancestorRef),
    );
    return {
      ...{ ancestorRef, controllerName: gatewayController },
      conditions: conditionsOf(policy.conditions, old?.conditions, policy.generation, nowMs),
    };
  });
  const foreign = before.filter(({ controllerName }) => controllerName !== gatewayController);
  return { ancestors: [...foreign, ...wanted].slice(0, maxAncestors) };
}

function isSameParent(a: RouteParentStatus['parentRef'], b: RouteParentStatus['parentRef']): boolean {
  const text = ({ group = gatewayGroup, kind = 'Gateway', ...rest }: typeof a): string =>
    `${group} ${kind} ${joinKey(rest.namespace ?? '', rest.name)} ${rest.sectionName ?? ''} ${rest.port ?? ''}`;
  return text(a) === text(b);
}

/** The status of a GatewayClass of ours, and which parts of Gateway API we claim. */

/** On each definition of the API: the version that it is of. */
export const bundleVersionAnnotation = 'gateway.networking.k8s.io/bundle-version';

/** The version whose conformance suite we run. */
const supportedVersion = 'v1.6';

/** Names of features of Gateway API 1.6; each has tests in its conformance suite. */
export const supportedFeatures: readonly string[] = [
  'BackendTLSPolicy',
  'BackendTLSPolicySANValidation',
  'GRPCRoute',
  'GRPCRouteNamedRouteRule',
  'Gateway',
  'GatewayAddressEmpty',
  'GatewayBackendClientCertificate',
  'GatewayFrontendClientCertificateValidation',
  'GatewayFrontendClientCertificateValidationInsecureFallback',
  'GatewayHTTPListenerIsolation',
  'GatewayHTTPSListenerDetectMisdirectedRequests',
  'GatewayInfrastructure',
  'GatewayPort8080',
  'GatewayStaticAddresses',
  'HTTPRoute',
  'HTTPRoute303RedirectStatusCode',
  'HTTPRoute307RedirectStatusCode',
  'HTTPRoute308RedirectStatusCode',
  'HTTPRouteBackendProtocolH2C',
  'HTTPRouteBackendProtocolWebSocket',
  'HTTPRouteBackendRequestHeaderModification',
  'HTTPRouteBackendTimeout',
  'HTTPRouteCORS',
  'HTTPRouteDestinationPortMatching',
  'HTTPRouteHostRewrite',
  'HTTPRouteMethodMatching',
  'HTTPRouteNamedRouteRule',
  'HTTPRouteParentRefPort',
  'HTTPRoutePathRedirect',
  'HTTPRoutePathRewrite',
  'HTTPRoutePortRedirect',
  'HTTPRouteQueryParamMatching',
  'HTTPRouteRequestMirror',
  'HTTPRouteRequestMultipleMirrors',
  'HTTPRouteRequestPercentageMirror',
  'HTTPRouteRequestTimeout',
  'HTTPRouteResponseHeaderModification',
  'HTTPRouteSchemeRedirect',
  'ListenerSet',
  'ReferenceGrant',
  'TCPRoute',
  'TLSRoute',
  'TLSRouteModeMixed',
  'TLSRouteModeTerminate',
  'UDPRoute',
];

/**
 * The status of a GatewayClass of ours.
 *
 * @param version of the definitions of the API; undefined for those that do not say it. One that is not supported is
 *   served as far as it is like the supported one.
 * @param nowMs milliseconds since 1970.
 */
export function gatewayClassStatus(
  { metadata, spec, status }: GatewayClass,
  version: string | undefined,
  nowMs: number,
): NonNullable<GatewayClass['status']> {
  const parameters = { reason: 'InvalidParameters', message: 'parametersRef is not supported' };
  const message = `The definitions of Gateway API are of ${version ?? 'no known version'}; supported is ${supportedVersion}`;
  const planned = [
    trueUnless(
      'Accepted',
      spec.parametersRef === undefined ? undefined : parameters,
      'Gateways of this class are served',
    ),
    version?.startsWith(`${supportedVersion}.`) === true
      ? isTrue('SupportedVersion', message)
      : isFalse('SupportedVersion', { reason: 'UnsupportedVersion', message }),
  ];
  return {
    conditions: conditionsOf(planned, status?.conditions, metadata.generation ?? 0, nowMs),
    supportedFeatures: supportedFeatures.map((name) => ({ name })),
  };
}
