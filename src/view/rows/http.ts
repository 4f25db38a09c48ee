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
import { joinKey, keyOf, type ObjectKey, splitKey, type ObjectName } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import type { HttpBackendRow, HttpRuleRow } from './rows.ts';
import type { Trouble } from './trouble.ts';
import { commonHostname } from '../../network/gateway/hostnames.ts';
import type {
  GatewayBackend,
  GatewayMatch,
  GatewayPlan,
  PlannedListener,
  RuleFilters,
} from '../../network/gateway/plan.ts';
import { type GatewayLists, GatewayPlans } from '../../network/path/gateway.ts';
import type { GatewayListener, ListenerSet } from '../../objects/types/gateway.ts';

/** Where the Services of backends are. */
interface BackendSources {
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
function backendRow(backend: Backend, kind: RuleSource['kind'], sources: BackendSources): HttpBackendRow {
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

/** What plans of Gateways are made from, beside the objects of Gateway API. */
interface GatewayRowSources extends BackendSources {
  readonly namespaceLabels: (namespace: string) => Readonly<Record<string, string>>;
}

/**
 * The rules of Routes on the listeners of our Gateways, Routes that a parent does not take, and Gateways, ListenerSets
 * and listeners that are not served. A rule that several listeners have for one host is one row.
 */
export function gatewayRuleRows(lists: GatewayLists, sources: GatewayRowSources): readonly HttpRuleRow[] {
  const plans = new GatewayPlans(lists, sources);
  const sets = new Map(lists.listenerSets.map((set) => [keyOf(set), set]));
  const rows = new Map<string, HttpRuleRow>();
  for (const gateway of plans.gateways) {
    const plan = plans.planOf(gateway);
    for (const row of [...routeRows(plan, sources), ...refusedRoutes(plan)]) {
      const known = rows.get(row.key);
      rows.set(row.key, known === undefined ? row : both(known, row));
    }
    const owners = [
      { kind: 'Gateway', object: gateway },
      ...plan.listenerSets.flatMap(({ key }) => {
        const object = sets.get(key);
        return object === undefined ? [] : [{ kind: 'ListenerSet', object }];
      }),
    ];
    for (const { kind, object } of owners) for (const row of unserved(kind, object)) rows.set(row.key, row);
  }
  return [...rows.values()];
}

/** On a listener without TLS and on one with it. */
function both(one: HttpRuleRow, other: HttpRuleRow): HttpRuleRow {
  const tls = one.tls ?? other.tls;
  const isOpen = one.tls === undefined || other.tls === undefined;
  return { ...one, ...(tls === undefined ? {} : { tls }), insecure: isOpen ? 'Allow' : 'None' };
}

function* routeRows(plan: GatewayPlan, sources: GatewayRowSources): Generator<HttpRuleRow, void, undefined> {
  const unresolved = new Map<string, Trouble>();
  for (const { kind, key, conditions } of plan.routes) {
    const trouble = troubleOf(conditions, 'ResolvedRefs');
    if (trouble !== undefined) unresolved.set(`${kind}/${key}`, trouble);
  }
  for (const listener of plan.ports.flatMap(({ listeners }) => listeners)) {
    for (const match of listener.matches) {
      const { path, rule } = match;
      const only = conditionsOf(match);
      const answer = answerOf(rule.filters);
      const key = [rule.name, path.type, path.value, ...only].join(' ');
      yield {
        ...rowOf(listener, match.hostname, rule.source, key, unresolved),
        ...{ path: path.value, match: path.type, only },
        backends: backendsOf(rule.backends, sources),
        ...(answer === undefined ? {} : { answer }),
      };
    }
    for (const stream of listener.protocol === 'TLS' ? listener.streams : []) {
      const { hostname, source, backends } = stream;
      yield {
        ...rowOf(listener, hostname, source, '', unresolved),
        backends: backendsOf(backends, sources),
      };
    }
  }
}

/** @param rule tells the rules and matches of a Route apart. */
function rowOf(
  listener: PlannedListener,
  hostname: string,
  { kind, namespace, name }: ObjectName,
  rule: string,
  unresolved: ReadonlyMap<string, Trouble>,
): HttpRuleRow {
  const host = commonHostname(listener.hostname, hostname) ?? hostname;
  const trouble = unresolved.get(`${kind}/${namespace}/${name}`);
  const termination = listener.tls?.mode === 'Passthrough' ? 'passthrough' : 'edge';
  return {
    key: `${kind}/${namespace}/${name}/${host} ${rule}`,
    ...{ host, path: '', match: 'Prefix', source: { kind, namespace, name } },
    ...(listener.tls === undefined ? {} : { tls: { termination } }),
    insecure: listener.tls === undefined ? 'Allow' : 'None',
    ...(trouble === undefined ? {} : { trouble }),
    backends: [],
  };
}

/** What else a request needs, beside its host and path. */
function conditionsOf({ method, headers, query }: GatewayMatch): readonly string[] {
  return [
    ...(method === undefined ? [] : [method]),
    ...headers.map(({ name, value, isExpression }) => `${name}${isExpression ? '~' : ':'} ${value}`),
    ...query.map(({ name, value, isExpression }) => `?${name}${isExpression ? '~' : '='}${value}`),
  ];
}

/** What the router answers by itself. */
function answerOf({ redirect, unsupported }: RuleFilters): string | undefined {
  if (unsupported !== undefined) return `500: ${unsupported}`;
  return redirect === undefined ? undefined : `redirect, ${redirect.status}`;
}

/** Those that lead to a Service; of others the Route has the trouble. */
function backendsOf(backends: readonly GatewayBackend[], sources: GatewayRowSources) {
  return backends.flatMap(({ rule, weight }) =>
    (rule?.backends ?? []).map((backend) => ({
      ...backendRow(backend, rule?.source.kind ?? 'HTTPRoute', sources),
      weight,
    })),
  );
}

function refusedRoutes({ routes, gateway }: GatewayPlan): readonly HttpRuleRow[] {
  return routes.flatMap(({ kind, key, parentRef, conditions }) => {
    const trouble = troubleOf(conditions, 'Accepted');
    const at = `${parentRef.kind ?? 'Gateway'} ${gateway} ${parentRef.sectionName ?? ''} ${parentRef.port ?? ''}`;
    return trouble === undefined ? [] : [notServed({ kind, ...splitKey(key) }, at, '', trouble)];
  });
}

/** What the router says of a Gateway or ListenerSet: the certificates are known to it alone. */
function unserved(
  kind: string,
  {
    metadata: { namespace = '', name = '' },
    spec,
    status = {},
  }: Pick<ListenerSet, 'metadata' | 'status'> & {
    readonly spec: { readonly listeners: readonly GatewayListener[] };
  },
): readonly HttpRuleRow[] {
  const about = { kind, namespace, name };
  const { conditions = [], listeners = [] } = status;
  const parts = [
    { at: '', host: '', conditions },
    ...listeners.map((listener) => ({
      at: listener.name,
      host: spec.listeners.find((one) => one.name === listener.name)?.hostname ?? '',
      conditions: listener.conditions,
    })),
  ];
  return parts.flatMap(({ at, host, conditions: told }) => {
    const trouble = troubleOf(told, 'Accepted', 'ResolvedRefs', 'Programmed');
    return trouble === undefined ? [] : [notServed(about, at, host, trouble)];
  });
}

function notServed(source: ObjectName, at: string, host: string, trouble: Trouble): HttpRuleRow {
  return {
    key: `${source.kind}/${source.namespace}/${source.name}/not served ${at}`,
    ...{ host, path: '', match: 'Prefix', source, insecure: 'Allow', trouble, backends: [] },
  };
}

/** The first of these conditions that is False. */
function troubleOf(
  conditions: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason: string;
    readonly message: string;
  }[],
  ...types: readonly string[]
): Trouble | undefined {
  const found = types
    .map((type) => conditions.find((one) => one.type === type && one.status === 'False'))
    .find((one) => one !== undefined);
  return found === undefined ? undefined : { reason: found.reason, message: found.message };
}
