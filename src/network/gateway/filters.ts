import { plainHost } from '../http/rules.ts';
import type {
  CorsFilter,
  GatewayBackend,
  GatewayMatch,
  HeaderChange,
  PathChange,
  RedirectFilter,
} from './plan.ts';

/** What filters of Routes make of requests and answers. Pure. */

/** What a redirect is made of. */
export interface RedirectedRequest {
  readonly scheme: 'http' | 'https';
  /** As the client wrote it, with its port. */
  readonly host: string;
  /** With the query. */
  readonly target: string;
  /** The port of the listener, not the one that the router or a Service listens on. */
  readonly listenerPort: number;
}

const ownPort: ReadonlyMap<string, number> = new Map([
  ['http', 80],
  ['https', 443],
]);

/** Where a client is sent to. The port of another scheme is that scheme's own; a scheme's own is left out. */
export function redirectLocation(
  filter: RedirectFilter,
  request: RedirectedRequest,
  path: GatewayMatch['path'],
): string {
  const scheme = filter.scheme ?? request.scheme;
  const port =
    filter.port ??
    (filter.scheme === undefined ? undefined : ownPort.get(filter.scheme)) ??
    request.listenerPort;
  const authority = ownPort.get(scheme) === port ? '' : `:${port}`;
  const host = filter.hostname ?? plainHost(request.host);
  return `${scheme}://${host}${authority}${changedTarget(filter.path, request.target, path)}`;
}

/**
 * A path and query with the path changed. The rest behind a prefix keeps its slashes; one between the replacement and the
 * rest is never doubled.
 *
 * @param target path and query of the request.
 * @param matched the path of its match.
 */
export function changedTarget(
  change: PathChange | undefined,
  target: string,
  matched: GatewayMatch['path'],
): string {
  if (change === undefined) return target;
  const question = target.indexOf('?');
  const [path, query] = question === -1 ? [target, ''] : [target.slice(0, question), target.slice(question)];
  if (change.type === 'ReplaceFullPath') return `${written(withSlash(change.value))}${query}`;
  const prefix = matched.type === 'Prefix' ? matched.value : '';
  const rest = path.slice(prefix.length);
  const replacement = change.value.endsWith('/') ? change.value.slice(0, -1) : change.value;
  return `${withSlash(`${written(replacement)}${rest}`)}${query}`;
}

function withSlash(path: string): string {
  return path.startsWith('/') ? path : `/${path}`;
}

/** What is not written in a request line or a header is escaped. */
function written(path: string): string {
  return path.replaceAll(/[^\x21-\x7e]+/g, (part) => encodeURIComponent(part.toWellFormed()));
}

/**
 * Headers of a request, changed: names and values in turn. What is added comes behind the values that are there, with a
 * comma between.
 */
export function changedHeaders(
  headers: readonly string[],
  changes: readonly (HeaderChange | undefined)[],
): readonly string[] {
  let all = headers;
  for (const change of changes) if (change !== undefined) all = changedBy(all, change);
  return all;
}

function changedBy(headers: readonly string[], { set, add, remove }: HeaderChange): readonly string[] {
  const gone = new Set([...remove, ...set.map(({ name }) => name)]);
  const kept: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (!gone.has(name.toLowerCase())) kept.push(name, headers[i + 1] ?? '');
  }
  for (const { name, value } of set) kept.push(name, value);
  for (const { name, value } of add) {
    const last = lastOf(kept, name);
    if (last === undefined) kept.push(name, value);
    else kept[last] = `${kept[last] ?? ''},${value}`;
  }
  return kept;
}

/** The place of the last value of a header. */
function lastOf(headers: readonly string[], name: string): number | undefined {
  for (let i = headers.length - 2; i >= 0; i -= 2) if (headers[i]?.toLowerCase() === name) return i + 1;
  return undefined;
}

/** Headers of an answer by names in lower case. */
export type AnswerHeaders = Readonly<Record<string, string | string[]>>;

/** Headers of an answer, changed; cookies that are added are headers of their own. */
export function changedAnswerHeaders(
  headers: AnswerHeaders,
  { set, add, remove }: HeaderChange,
): AnswerHeaders {
  const all = new Map<string, string | string[]>(Object.entries(headers));
  for (const name of remove) all.delete(name);
  for (const { name, value } of set) all.set(name, value);
  for (const { name, value } of add) {
    const before = all.get(name);
    if (before === undefined) all.set(name, value);
    else if (name === 'set-cookie') all.set(name, [before, value].flat());
    else all.set(name, `${[before].flat().join(',')},${value}`);
  }
  return Object.fromEntries(all);
}

/** What a browser says of a request to another origin. */
export interface CorsRequest {
  readonly method: string;
  readonly origin: string | undefined;
  /** `Access-Control-Request-Method` and `-Headers`. */
  readonly wantedMethod: string | undefined;
  readonly wantedHeaders: string | undefined;
}

/** Whether a browser asks for leave; such a request is answered by the router. */
export function isPreflight({ method, origin, wantedMethod }: CorsRequest): boolean {
  return method === 'OPTIONS' && origin !== undefined && wantedMethod !== undefined;
}

/** The headers that a browser reads; none for an origin that is not allowed. */
export function preflightHeaders(filter: CorsFilter, request: CorsRequest): Readonly<Record<string, string>> {
  const origin = originHeaders(filter, request.origin);
  if (Object.keys(origin).length === 0) return {};
  const headers: Record<string, string> = { ...origin };
  const methods = listed(filter, filter.methods, request.wantedMethod);
  if (methods !== '') headers['access-control-allow-methods'] = methods;
  const allowed = listed(filter, filter.headers, request.wantedHeaders);
  if (allowed !== '') headers['access-control-allow-headers'] = allowed;
  headers['access-control-max-age'] = String(filter.maxAgeSeconds);
  return headers;
}

/** The headers for an answer that is not one to a preflight. */
export function originHeaders(
  filter: CorsFilter,
  origin: string | undefined,
): Readonly<Record<string, string>> {
  if (origin === undefined || !filter.origins.some((allowed) => isOriginOf(allowed, origin))) return {};
  const isAny = filter.origins.includes('*') && !filter.credentials;
  const exposed = listed(filter, filter.exposed, undefined);
  return {
    'access-control-allow-origin': isAny ? '*' : origin,
    ...(isAny ? {} : { vary: 'Origin' }),
    ...(filter.credentials ? { 'access-control-allow-credentials': 'true' } : {}),
    ...(exposed === '' ? {} : { 'access-control-expose-headers': exposed }),
  };
}

/** With credentials `*` is no wildcard for browsers: they get what they asked for. */
function listed({ credentials }: CorsFilter, names: readonly string[], wanted = ''): string {
  if (!names.includes('*')) return names.join(', ');
  return credentials ? wanted : '*';
}

const originParts = /^([a-z][a-z\d+.-]*):\/\/([^/:[\]]+|\[[\da-f:.]+\])(?::(\d{1,5}))?$/;

/** Whether an origin is one that is allowed; `*` in its host stands for any part, dots included. */
function isOriginOf(allowed: string, origin: string): boolean {
  if (allowed === '*') return true;
  const [wanted, asked] = [originParts.exec(allowed.toLowerCase()), originParts.exec(origin.toLowerCase())];
  if (wanted === null || asked === null) return false;
  const [, scheme = '', host = '', port = ownPort.get(scheme)] = wanted;
  const [, askedScheme = '', askedHost = '', askedPort = ownPort.get(askedScheme)] = asked;
  if (scheme !== askedScheme || Number(port) !== Number(askedPort)) return false;
  const star = host.indexOf('*');
  if (star === -1) return host === askedHost;
  const [before, after] = [host.slice(0, star), host.slice(star + 1)];
  return (
    askedHost.length > before.length + after.length &&
    askedHost.startsWith(before) &&
    askedHost.endsWith(after)
  );
}

/** Headers of a backend's answer with those for browsers, which count in the place of the backend's own. */
export function corsAnswerHeaders(
  headers: AnswerHeaders,
  filter: CorsFilter,
  origin: string | undefined,
): AnswerHeaders {
  const kept = Object.entries(headers).filter(([name]) => !name.startsWith('access-control-'));
  const { vary, ...ours } = originHeaders(filter, origin);
  const all: Record<string, string | string[]> = { ...Object.fromEntries(kept), ...ours };
  if (vary !== undefined) all['vary'] = [all['vary'] ?? [], vary].flat().join(', ');
  return all;
}

/**
 * A backend of a rule at random, by weight; undefined where none has any.
 *
 * @param random at least 0 and less than 1.
 */
export function chosenBackend(
  backends: readonly GatewayBackend[],
  random: number,
): GatewayBackend | undefined {
  let sum = 0;
  for (const { weight } of backends) sum += weight;
  let rest = random * sum;
  for (const backend of backends) {
    rest -= backend.weight;
    if (rest < 0) return backend;
  }
  return undefined;
}
