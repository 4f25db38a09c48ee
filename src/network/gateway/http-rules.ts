import { compareText } from '../../objects/formats/go-text.ts';
import type {
  BackendObjectReference,
  GRPCRoute,
  GRPCRouteRule,
  HTTPBackendRef,
  HTTPHeaderFilter,
  HTTPPathModifier,
  HTTPRoute,
  HTTPRouteFilter,
  HTTPRouteRule,
  ValueMatch,
} from '../../objects/types/gateway.ts';
import { plainHost, type HttpRule, type RuleSource } from '../http/rules.ts';
import { expressionProblem } from './expressions.ts';
import { parseDuration } from '../../objects/formats/time.ts';
import type {
  AnyRoute,
  CorsFilter,
  GatewayBackend,
  GatewayMatch,
  GatewayRule,
  HeaderChange,
  MirrorFilter,
  PathChange,
  PlannedValueMatch,
  RuleFilters,
} from './plan.ts';

/** What HTTPRoutes and GRPCRoutes ask of a listener. Pure. */

/** An HTTPRoute or a GRPCRoute. */
export type HttpLikeRoute = Extract<AnyRoute, { readonly kind: 'HTTPRoute' | 'GRPCRoute' }>;

/** The rule of a reference's one Service; undefined where it is unknown, not permitted, or no Service. */
export type ResolveBackend = (ref: BackendObjectReference, use: 'backend' | 'mirror') => HttpRule | undefined;

/** Why a rule of a Route is not valid. */
export interface RuleProblem {
  readonly reason: 'UnsupportedValue' | 'IncompatibleFilters';
  readonly message: string;
}

/**
 * The matches of a Route, one for each of its hostnames and each match of each rule, in its order. A rule with a problem
 * answers 500, as far as its matches are known.
 *
 * @param problems of {@link ruleProblems}.
 */
export function compileRules(
  route: HttpLikeRoute,
  resolve: ResolveBackend,
  problems = ruleProblems(route),
): readonly GatewayMatch[] {
  const { metadata, spec } = route.object;
  const source: RuleSource = {
    kind: route.kind,
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    created: metadata.creationTimestamp ?? '',
  };
  const hostnames = spec.hostnames ?? [];
  const hosts = hostnames.length === 0 ? [''] : [...new Set(hostnames.map(plainHost))];
  const found: Omit<GatewayMatch, 'hostname'>[] =
    route.kind === 'HTTPRoute'
      ? httpRules(route.object).flatMap((rule, i) => {
          const compiled = ruleOf(source, rule, i, rule.timeouts, resolve, problems.get(i));
          return httpMatches(rule).flatMap((match) => httpMatch(match, compiled) ?? []);
        })
      : grpcRules(route.object).flatMap((rule, i) => {
          const compiled = ruleOf(source, rule, i, undefined, resolve, problems.get(i));
          return grpcMatches(rule).flatMap((match) => grpcMatch(match, compiled) ?? []);
        });
  return hosts.flatMap((hostname) => found.map((match) => ({ hostname, ...match })));
}

/** A Route without rules has one for all requests. */
function httpRules({ spec }: HTTPRoute): readonly HTTPRouteRule[] {
  return spec.rules ?? [{}];
}

function grpcRules({ spec }: GRPCRoute): readonly GRPCRouteRule[] {
  return spec.rules ?? [{}];
}

type HttpMatchSpec = NonNullable<HTTPRouteRule['matches']>[number];
type GrpcMatchSpec = NonNullable<GRPCRouteRule['matches']>[number];

function httpMatches({ matches = [] }: HTTPRouteRule): readonly HttpMatchSpec[] {
  return matches.length === 0 ? [{}] : matches;
}

function grpcMatches({ matches = [] }: GRPCRouteRule): readonly GrpcMatchSpec[] {
  return matches.length === 0 ? [{}] : matches;
}

function ruleOf(
  source: RuleSource,
  rule: HTTPRouteRule | GRPCRouteRule,
  index: number,
  timeouts: HTTPRouteRule['timeouts'],
  resolve: ResolveBackend,
  problem: RuleProblem | undefined,
): GatewayRule {
  return {
    source,
    name: rule.name ?? String(index),
    isGrpc: source.kind === 'GRPCRoute',
    backends: (rule.backendRefs ?? []).map((ref) => backendOf(ref, resolve)),
    filters: { ...filtersOf(rule.filters ?? [], resolve), unsupported: problem?.message },
    requestTimeoutMs: limitOf(timeouts?.request),
    backendTimeoutMs: limitOf(timeouts?.backendRequest),
  };
}

/** `0s` is no limit. */
function limitOf(duration: string | undefined): number | undefined {
  const milliseconds = duration === undefined ? 0 : (parseDuration(duration) ?? 0);
  return milliseconds === 0 ? undefined : milliseconds;
}

function backendOf(ref: HTTPBackendRef, resolve: ResolveBackend): GatewayBackend {
  const modifier = (ref.filters ?? []).find(({ type }) => type === 'RequestHeaderModifier');
  return {
    weight: ref.weight ?? 1,
    rule: resolve(ref, 'backend'),
    requestHeaders: headerChange(modifier?.requestHeaderModifier),
  };
}

function httpMatch(match: HttpMatchSpec, rule: GatewayRule): Omit<GatewayMatch, 'hostname'> | undefined {
  const { type = 'PathPrefix', value = '/' } = match.path ?? {};
  const path = pathOf(type, value);
  const headers = valueMatches(match.headers ?? [], true);
  const query = valueMatches(match.queryParams ?? [], false);
  if (path === undefined || headers === undefined || query === undefined) return undefined;
  return { path, headers, query, method: match.method, rule };
}

function pathOf(type: string, value: string): GatewayMatch['path'] | undefined {
  if (type === 'Exact') return { type, value };
  if (type === 'PathPrefix') {
    return { type: 'Prefix', value: value.endsWith('/') ? value.slice(0, -1) : value };
  }
  if (type !== 'RegularExpression' || expressionProblem(value) !== undefined) return undefined;
  return { type, value };
}

/** A service of gRPC is the first element of the path, a method the second. */
function grpcMatch(match: GrpcMatchSpec, rule: GatewayRule): Omit<GatewayMatch, 'hostname'> | undefined {
  const { type = 'Exact', service = '', method = '' } = match.method ?? {};
  const headers = valueMatches(match.headers ?? [], true);
  const path = grpcPath(type, service, method);
  if (headers === undefined || path === undefined) return undefined;
  return { path, headers, query: [], method: undefined, rule };
}

const anyElement = '[^/]+';

function grpcPath(type: string, service: string, method: string): GatewayMatch['path'] | undefined {
  if (service === '' && method === '') return { type: 'Prefix', value: '' };
  if (type === 'RegularExpression') {
    const value = `/${group(service)}/${group(method)}`;
    return expressionProblem(value) === undefined ? { type, value } : undefined;
  }
  if (type !== 'Exact') return undefined;
  if (method === '') return { type: 'Prefix', value: `/${service}` };
  if (service !== '') return { type, value: `/${service}/${method}` };
  // Names of methods have no characters that mean something else in an expression.
  return { type: 'RegularExpression', value: `/${anyElement}/${method}` };
}

function group(expression: string): string {
  return expression === '' ? anyElement : `(?:${expression})`;
}

/** The first of equal names counts. Undefined for a kind of match that is not known. */
function valueMatches(
  matches: readonly ValueMatch[],
  isHeader: boolean,
): readonly PlannedValueMatch[] | undefined {
  const known = new Map<string, PlannedValueMatch>();
  for (const { type = 'Exact', name, value } of matches) {
    const isExpression = type === 'RegularExpression';
    if (type !== 'Exact' && (!isExpression || expressionProblem(value) !== undefined)) return undefined;
    const key = isHeader ? name.toLowerCase() : name;
    if (!known.has(key)) known.set(key, { name: key, value, isExpression });
  }
  return [...known.values()];
}

/** Filters of rules that are known, and the field of each. */
const knownFilters = new Map<string, keyof HTTPRouteFilter>([
  ['RequestHeaderModifier', 'requestHeaderModifier'],
  ['ResponseHeaderModifier', 'responseHeaderModifier'],
  ['RequestRedirect', 'requestRedirect'],
  ['URLRewrite', 'urlRewrite'],
  ['RequestMirror', 'requestMirror'],
  ['CORS', 'cors'],
]);

function filtersOf(
  filters: readonly HTTPRouteFilter[],
  resolve: ResolveBackend,
): Omit<RuleFilters, 'unsupported'> {
  const of = (type: string): HTTPRouteFilter | undefined => filters.find((filter) => filter.type === type);
  const redirect = of('RequestRedirect')?.requestRedirect;
  const rewrite = of('URLRewrite')?.urlRewrite;
  return {
    requestHeaders: headerChange(of('RequestHeaderModifier')?.requestHeaderModifier),
    responseHeaders: headerChange(of('ResponseHeaderModifier')?.responseHeaderModifier),
    redirect: redirect && {
      scheme: redirect.scheme,
      hostname: redirect.hostname,
      port: redirect.port,
      path: pathChange(redirect.path),
      status: redirect.statusCode ?? 302,
    },
    rewrite: rewrite && { hostname: rewrite.hostname, path: pathChange(rewrite.path) },
    mirrors: filters.flatMap((filter) => mirrorOf(filter, resolve)),
    cors: corsOf(of('CORS')),
  };
}

function headerChange(filter: HTTPHeaderFilter | undefined): HeaderChange | undefined {
  if (filter === undefined) return undefined;
  const lower = ({ name, value }: { name: string; value: string }): { name: string; value: string } => ({
    name: name.toLowerCase(),
    value,
  });
  return {
    set: (filter.set ?? []).map(lower),
    add: (filter.add ?? []).map(lower),
    remove: (filter.remove ?? []).map((name) => name.toLowerCase()),
  };
}

function pathChange(modifier: HTTPPathModifier | undefined): PathChange | undefined {
  if (modifier?.type === 'ReplaceFullPath') {
    return { type: 'ReplaceFullPath', value: modifier.replaceFullPath ?? '' };
  }
  if (modifier?.type === 'ReplacePrefixMatch') {
    return { type: 'ReplacePrefixMatch', value: modifier.replacePrefixMatch ?? '' };
  }
  return undefined;
}

function mirrorOf({ type, requestMirror }: HTTPRouteFilter, resolve: ResolveBackend): MirrorFilter[] {
  if (type !== 'RequestMirror' || requestMirror === undefined) return [];
  const { backendRef, percent, fraction } = requestMirror;
  const rule = resolve(backendRef, 'mirror');
  if (fraction !== undefined) {
    return [{ rule, numerator: fraction.numerator, denominator: fraction.denominator ?? 100 }];
  }
  return [{ rule, numerator: percent ?? 100, denominator: 100 }];
}

function corsOf(filter: HTTPRouteFilter | undefined): CorsFilter | undefined {
  if (filter === undefined) return undefined;
  const { cors = {} } = filter;
  return {
    origins: cors.allowOrigins ?? [],
    methods: cors.allowMethods ?? [],
    headers: cors.allowHeaders ?? [],
    exposed: cors.exposeHeaders ?? [],
    credentials: cors.allowCredentials ?? false,
    maxAgeSeconds: cors.maxAge ?? 5,
  };
}

/** Headers that say how a request or an answer is sent, or which backend it is for: no filter changes them. */
const unchangeable = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'proxy-connection'],
  ...['te', 'trailer', 'upgrade', 'expect'],
]);

/** Fields of rules that are read. Those of the experimental channel are not, and must not be passed over. */
const ruleFields = new Set(['name', 'matches', 'filters', 'backendRefs', 'timeouts']);

/** Why rules of a Route ask what is not done here, by their index. */
export function ruleProblems(route: HttpLikeRoute): ReadonlyMap<number, RuleProblem> {
  const rules: readonly (HTTPRouteRule | GRPCRouteRule)[] =
    route.kind === 'HTTPRoute' ? httpRules(route.object) : grpcRules(route.object);
  const problems = new Map<number, RuleProblem>();
  for (const [i, rule] of rules.entries()) {
    const field = Object.keys(rule).find((one) => !ruleFields.has(one));
    const message =
      (field === undefined ? undefined : `${field} is not supported`) ??
      matchProblem(route, i) ??
      filterProblem(rule.filters ?? [], route.kind) ??
      first(rule.backendRefs ?? [], backendFilterProblem);
    const types = new Set((rule.filters ?? []).map(({ type }) => type));
    if (message !== undefined) {
      problems.set(i, { reason: 'UnsupportedValue', message: `rules[${i}]: ${message}` });
    } else if (types.has('RequestRedirect') && types.has('URLRewrite')) {
      const both = `rules[${i}]: RequestRedirect and URLRewrite exclude each other`;
      problems.set(i, { reason: 'IncompatibleFilters', message: both });
    }
  }
  return problems;
}

function first<T>(items: readonly T[], problem: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = problem(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

function matchProblem(route: HttpLikeRoute, index: number): string | undefined {
  if (route.kind === 'HTTPRoute') {
    return first(route.object.spec.rules?.[index]?.matches ?? [], ({ path, headers, queryParams }) => {
      const { type = 'PathPrefix', value = '/' } = path ?? {};
      if (type !== 'Exact' && type !== 'PathPrefix') {
        const problem = typeProblem(type, value);
        if (problem !== undefined) return problem;
      }
      return first([...(headers ?? []), ...(queryParams ?? [])], valueProblem);
    });
  }
  return first(route.object.spec.rules?.[index]?.matches ?? [], ({ method, headers }) => {
    const { type = 'Exact', service = '', method: name = '' } = method ?? {};
    const problem = type === 'Exact' ? undefined : typeProblem(type, `/${group(service)}/${group(name)}`);
    return problem ?? first(headers ?? [], valueProblem);
  });
}

function valueProblem({ type = 'Exact', value }: ValueMatch): string | undefined {
  return type === 'Exact' ? undefined : typeProblem(type, value);
}

function typeProblem(type: string, value: string): string | undefined {
  return type === 'RegularExpression' ? expressionProblem(value) : `matches of type ${type} are not known`;
}

/** Filters that rules of GRPCRoutes may have. */
const ofGrpc = new Set(['RequestHeaderModifier', 'ResponseHeaderModifier', 'RequestMirror']);

function filterProblem(filters: readonly HTTPRouteFilter[], kind: RuleSource['kind']): string | undefined {
  return first(filters, (filter) => {
    const field = knownFilters.get(filter.type);
    if (field === undefined || (kind === 'GRPCRoute' && !ofGrpc.has(filter.type))) {
      return `filters of type ${filter.type} are not supported`;
    }
    if (filter[field] === undefined) return `the filter ${filter.type} has no ${field}`;
    const path = filter.requestRedirect?.path ?? filter.urlRewrite?.path;
    if (path !== undefined && pathChange(path) === undefined) {
      return `the path of ${filter.type} is of the unknown type ${path.type}`;
    }
    return headerProblem(filter.requestHeaderModifier) ?? headerProblem(filter.responseHeaderModifier);
  });
}

function backendFilterProblem({ filters = [] }: HTTPBackendRef): string | undefined {
  return first(filters, ({ type, requestHeaderModifier }) =>
    type === 'RequestHeaderModifier'
      ? headerProblem(requestHeaderModifier)
      : `filters of type ${type} are not supported in backendRefs`,
  );
}

function headerProblem(filter: HTTPHeaderFilter | undefined): string | undefined {
  const written = [...(filter?.set ?? []), ...(filter?.add ?? [])];
  const names = [...written.map(({ name }) => name), ...(filter?.remove ?? [])];
  const fixed = names.find((name) => unchangeable.has(name.toLowerCase()));
  if (fixed !== undefined) return `filters cannot change the header ${fixed}`;
  const broken = written.find(({ value }) => !/^[\t\x20-\x7e\x80-\xff]*$/.test(value));
  return broken === undefined ? undefined : `the value for the header ${broken.name} cannot be sent`;
}

/**
 * Matches in the order in which they are tried: by hostname, path, method, the number of headers and of parameters, age,
 * `namespace/name`; otherwise they keep their order.
 */
export function sortMatches(matches: readonly GatewayMatch[]): readonly GatewayMatch[] {
  return [...matches].sort(compareMatches);
}

function compareMatches(a: GatewayMatch, b: GatewayMatch): number {
  const [one, other] = [a.rule.source, b.rule.source];
  return (
    hostRank(a.hostname) - hostRank(b.hostname) ||
    b.hostname.length - a.hostname.length ||
    pathRank(a) - pathRank(b) ||
    b.path.value.length - a.path.value.length ||
    Number(a.method === undefined) - Number(b.method === undefined) ||
    b.headers.length - a.headers.length ||
    b.query.length - a.query.length ||
    compareText(one.created, other.created) ||
    compareText(one.namespace, other.namespace) ||
    compareText(one.name, other.name)
  );
}

function hostRank(hostname: string): number {
  if (hostname === '') return 2;
  return hostname.startsWith('*') ? 1 : 0;
}

/** A method of gRPC in any service is an expression, and less specific than any service. */
function pathRank({ path: { type, value }, rule }: GatewayMatch): number {
  if (type === 'Exact') return 0;
  if (type === 'RegularExpression') return rule.isGrpc ? 3 : 1;
  return value === '' ? 4 : 2;
}
