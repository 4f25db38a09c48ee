import { commonHostname } from '../../network/gateway/hostnames.ts';
import type {
  GatewayBackend,
  GatewayMatch,
  GatewayPlan,
  PlannedListener,
  RuleFilters,
} from '../../network/gateway/plan.ts';
import { type GatewayLists, GatewayPlans } from '../../network/path/gateway.ts';
import { keyOf, splitKey, type ObjectName } from '../../objects/meta.ts';
import type { GatewayListener, ListenerSet } from '../../objects/types/gateway.ts';
import { type BackendSources, backendRow } from './http.ts';
import type { HttpRuleRow } from './rows.ts';
import type { Trouble } from './trouble.ts';

/** What plans of Gateways are made from, beside the objects of Gateway API. */
export interface GatewayRowSources extends BackendSources {
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
