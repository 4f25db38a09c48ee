import type { GRPCRoute, HTTPRoute, HTTPRouteRule } from '../../../../src/objects/types/gateway.ts';
import {
  compileRules,
  type ResolveBackend,
  sortMatches,
} from '../../../../src/network/gateway/http-rules.ts';
import type { PlannedListener } from '../../../../src/network/gateway/plan.ts';
import type { HttpRule } from '../../../../src/network/http/rules.ts';

/** Routes and listeners of tests. */

export function httpRoute(
  rules: HTTPRouteRule[],
  more: Partial<HTTPRoute['spec']> = {},
  name = 'web',
): HTTPRoute {
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name, namespace: 'shop', uid: name, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { rules, ...more },
  };
}

export function grpcRoute(rules: GRPCRoute['spec']['rules'], name = 'calls'): GRPCRoute {
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'GRPCRoute',
    metadata: { name, namespace: 'shop', uid: name, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: rules === undefined ? {} : { rules },
  };
}

/** A rule with one Service. */
export function serviceRule(service: string, kind: HttpRule['source']['kind'] = 'HTTPRoute'): HttpRule {
  return {
    source: { kind, namespace: 'shop', name: 'web', uid: 'web', created: '' },
    ...{ host: '', path: '', match: 'Prefix', termination: undefined, secure: true, insecure: 'Allow' },
    backends: [{ namespace: 'shop', service, port: 80, weight: 1 }],
    ...{ redirectStatus: 302, requestHeaders: [], responseHeaders: [] },
    ...{ destinationCA: undefined, settings: undefined },
  };
}

/** All references are to Services, but those whose name begins with `bad`. */
export const resolve: ResolveBackend = ({ name }) => (name.startsWith('bad') ? undefined : serviceRule(name));

/** A listener of HTTP. */
export function listener(
  hostname: string,
  routes: readonly (HTTPRoute | GRPCRoute)[],
  more: Partial<PlannedListener> = {},
): PlannedListener {
  const matches = routes.flatMap((object) =>
    isHttp(object)
      ? compileRules({ kind: 'HTTPRoute', object }, resolve)
      : compileRules({ kind: 'GRPCRoute', object }, resolve),
  );
  return {
    ...{ id: `Gateway shop/web ${hostname}`, hostname, protocol: 'HTTP', tls: undefined },
    ...{ matches: sortMatches(matches), streams: [], ...more },
  };
}

function isHttp(route: HTTPRoute | GRPCRoute): route is HTTPRoute {
  return route.kind === 'HTTPRoute';
}
