import { backendEndpoints } from '../../network/http/backends.ts';
import {
  type Backend,
  type HttpRule,
  ingressRules,
  routeRule,
  type RuleSource,
} from '../../network/http/rules.ts';
import { type HttpObjects, servedHttp } from '../../network/path/http.ts';
import { isReady, isTerminating } from '../../objects/endpoints.ts';
import { joinKey, keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import type { HttpBackendRow, HttpRuleRow } from './rows.ts';
import type { Trouble } from './trouble.ts';

/** Where the Services of backends are. */
export interface BackendSources {
  readonly service: (key: ObjectKey) => Service | undefined;
  readonly slicesOf: (key: ObjectKey) => readonly EndpointSlice[];
}

/** The rules of Ingresses and Routes, by host and path, and which of them a router of ours serves. */
export function httpRuleRows(objects: HttpObjects, sources: BackendSources): readonly HttpRuleRow[] {
  const { ingresses: served, table } = servedHttp(objects);
  const ofIngresses = objects.ingresses.flatMap((ingress) => {
    const key = keyOf(ingress);
    const { rules, defaults } = ingressRules(ingress);
    const refused = table.refusedHosts(key);
    const secretOf = (host: string): string | undefined =>
      (ingress.spec.tls ?? []).find(({ hosts }) => hosts?.includes(host))?.secretName;
    return [...rules, ...defaults].map((rule, index) => {
      const trouble = served.includes(ingress) ? refused.get(rule.host) : otherClass;
      return ruleRow(rule, index, sources, trouble, secretOf(rule.host));
    });
  });
  const ofRoutes = objects.routes.map((route) => {
    const admission = table.admissionOf(keyOf(route));
    const host = admission?.host ?? '';
    const rule = routeRule(route, host === '' ? (route.spec.host ?? '') : host);
    return ruleRow(rule, 0, sources, admission?.refusal, undefined);
  });
  const byHost = (a: HttpRuleRow, b: HttpRuleRow): number =>
    a.host === b.host ? (a.path < b.path ? -1 : 1) : a.host < b.host ? -1 : 1;
  return [...ofIngresses, ...ofRoutes].toSorted(byHost);
}

const otherClass: Trouble = {
  reason: 'OtherIngressClass',
  message: "it is not of the router's class, servicenet",
};

function ruleRow(
  rule: HttpRule,
  index: number,
  sources: BackendSources,
  refused: Trouble | undefined,
  secret: string | undefined,
): HttpRuleRow {
  const { kind, namespace, name } = rule.source;
  const backends = rule.backends.map((backend) => backendRow(backend, kind, sources));
  const isTls = rule.termination !== undefined || secret !== undefined;
  return {
    key: `${kind}/${namespace}/${name}/${index}`,
    ...{ host: rule.host, path: rule.path, match: rule.match, insecure: rule.insecure },
    source: { kind, namespace, name },
    ...(isTls
      ? { tls: { termination: rule.termination ?? 'edge', ...(secret === undefined ? {} : { secret }) } }
      : {}),
    ...(refused === undefined ? {} : { trouble: { reason: refused.reason, message: refused.message } }),
    backends,
  };
}

/** @param kind of the object that names it. */
export function backendRow(
  backend: Backend,
  kind: RuleSource['kind'],
  sources: BackendSources,
): HttpBackendRow {
  const service = joinKey(backend.namespace, backend.service);
  const slices = sources.slicesOf(service);
  const found = backendEndpoints(backend, kind, sources.service(service), slices);
  const trouble =
    found.problem === undefined ? {} : { trouble: { reason: found.problem, message: why[found.problem] } };
  const { port = '', weight } = backend;
  return { service, port: String(port), weight, ...countOf(slices), ...trouble };
}

/** The words with which the router answers 503. */
const why = {
  NoService: 'there is no such Service',
  NoPort: 'the Service has no such port',
  NoEndpoints: 'the Service has no ready endpoint',
  ExternalName: 'a Service of type ExternalName is not led to',
} as const;

/** Of both families a Pod is counted once. */
function countOf(slices: readonly EndpointSlice[]): { readonly ready: number; readonly total: number } {
  const family = slices.some(({ addressType }) => addressType === 'IPv4') ? 'IPv4' : 'IPv6';
  const endpoints = slices
    .filter(({ addressType }) => addressType === family)
    .flatMap((slice) => slice.endpoints ?? [])
    .filter((endpoint) => !isTerminating(endpoint));
  return { ready: endpoints.filter(isReady).length, total: endpoints.length };
}
