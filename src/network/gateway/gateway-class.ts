import type { GatewayClass } from '../../objects/types/gateway.ts';
import { isFalse, isTrue, trueUnless } from './plan.ts';
import { conditionsOf } from './status.ts';

/** What a GatewayClass of ours is told, and which parts of Gateway API we claim. */

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
