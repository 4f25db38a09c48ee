import type { Route, RouteHTTPHeader, RouteTargetReference } from '../../objects/types/route.generated.ts';
import {
  type Backend,
  type HeaderAction,
  type HttpRule,
  plainHost,
  type Termination,
  wildcardOf,
} from './rule.ts';

/** The weight of a Service without one inside the router; the API server writes 100. */
const missingWeight = 1;

/** Whether a Route is for every host of one label before the domain of its host. */
export function isWildcardRoute({ spec }: Pick<Route, 'spec'>): boolean {
  return spec.wildcardPolicy === 'Subdomain';
}

/** How the TLS of a Route ends; undefined for one without. The API server's default is `edge`. */
export function terminationOf({ spec }: Pick<Route, 'spec'>): Termination | undefined {
  if (spec.tls === undefined) return undefined;
  const termination = spec.tls.termination.toLowerCase();
  return termination === 'passthrough' || termination === 'reencrypt' ? termination : 'edge';
}

/**
 * The rule of a Route: http serves Routes without TLS, and those with TLS that allow it; Redirect sends to https, and
 * others are not served there (`template.go` of the router of OpenShift).
 *
 * @param host that the router gave it or the Route has.
 */
export function routeRule(route: Pick<Route, 'metadata' | 'spec'>, host: string): HttpRule {
  const { metadata, spec } = route;
  const namespace = metadata.namespace ?? '';
  const termination = terminationOf(route);
  const policy = spec.tls?.insecureEdgeTerminationPolicy ?? '';
  const backendOf = ({ name, weight }: RouteTargetReference): Backend => ({
    ...{ namespace, service: name },
    port: spec.port?.targetPort,
    weight: weight ?? missingWeight,
  });
  const plain = plainHost(host);
  return {
    source: {
      ...{ kind: 'Route', namespace, name: metadata.name ?? '', uid: metadata.uid ?? '' },
      created: metadata.creationTimestamp ?? '',
    },
    host: isWildcardRoute(route) ? (wildcardOf(plain) ?? plain) : plain,
    path: spec.path === undefined || spec.path === '/' ? '' : spec.path,
    match: 'Prefix',
    backends: [spec.to, ...(spec.alternateBackends ?? [])].map(backendOf),
    termination,
    secure: termination !== undefined,
    insecure: termination === undefined ? 'Allow' : insecureOf(termination, policy),
    redirectStatus: 302,
    requestHeaders: (spec.httpHeaders?.actions?.request ?? []).map(headerAction),
    responseHeaders: (spec.httpHeaders?.actions?.response ?? []).map(headerAction),
    destinationCA: spec.tls?.destinationCACertificate,
  };
}

function insecureOf(termination: Termination, policy: string): HttpRule['insecure'] {
  if (policy === 'Redirect') return 'Redirect';
  return policy === 'Allow' && termination !== 'passthrough' ? 'Allow' : 'None';
}

/** A value is a HAProxy format: `%%` is a percent sign. */
function headerAction({ name, action }: RouteHTTPHeader): HeaderAction {
  const set = action.type === 'Set' ? action.set?.value : undefined;
  return { name: name.toLowerCase(), ...(set === undefined ? {} : { value: set.replaceAll('%%', '%') }) };
}
