import { ExpressionBudget } from './expressions.ts';
import { hostCandidates } from './hostnames.ts';
import type { GatewayMatch, PlannedListener, PlannedValueMatch, StreamRule } from './plan.ts';

/** Which listener and which rule a request of a port is for. Pure. */

/** What a request is matched by. */
export interface MatchedRequest {
  /** The header Host as `plainHost` returns it. */
  readonly host: string;
  /** Without the query. */
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  readonly method: string;
  /** Whether it is a call of gRPC: other requests are not for GRPCRoutes. */
  readonly isGrpc: boolean;
  /** The listener of the server name of TLS; undefined: there is no TLS. */
  readonly tls: { readonly listener: PlannedListener | undefined } | undefined;
  /** The values of a header, joined by commas; undefined: there is none. @param name in lower case. */
  header(name: string): string | undefined;
}

/** Where a request goes; else the status of its refusal. `reason` is the word of logs and metrics. */
export type GatewayDecision =
  | { readonly kind: 'match'; readonly listener: PlannedListener; readonly match: GatewayMatch }
  | {
      readonly kind: 'refuse';
      readonly listener: PlannedListener | undefined;
      readonly status: 404 | 421;
      readonly reason: 'NoHost' | 'NoPath' | 'Misdirected';
    };

/**
 * The listener of a host: the one with this very hostname, else that of the longest wildcard over it, else the one for
 * all hosts.
 *
 * @param listeners of one port; the most specific hostname first.
 */
export function listenerFor(
  listeners: readonly PlannedListener[],
  host: string,
): PlannedListener | undefined {
  return mostSpecific(indexOf(listeners), host);
}

/** The rule of a TLSRoute for a server name; a client without one has none. */
export function streamFor({ streams }: PlannedListener, serverName: string): StreamRule | undefined {
  if (serverName === '') return undefined;
  for (const host of hostCandidates(serverName)) {
    const found = streams.find(({ hostname }) => hostname === host);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * A listener serves requests by its own rules alone, even where a less specific one has a rule for them. One by TLS that
 * is for another listener than its connection is misdirected (RFC 9110, 15.5.20).
 *
 * @param listeners of one port that serve HTTP; the most specific hostname first.
 */
export function matchRequest(
  listeners: readonly PlannedListener[],
  request: MatchedRequest,
): GatewayDecision {
  const listener = listenerFor(listeners, request.host);
  if (listener === undefined) return { kind: 'refuse', listener, status: 404, reason: 'NoHost' };
  const { tls } = request;
  if (tls !== undefined && tls.listener !== listener) {
    return { kind: 'refuse', listener, status: 421, reason: 'Misdirected' };
  }
  const hosts = hostsOf(listener);
  const asked: Asked = { request, budget: undefined, parameters: undefined };
  for (const host of hostCandidates(request.host)) {
    const match = hosts.get(host)?.find(asked);
    if (match !== undefined) return { kind: 'match', listener, match };
  }
  return { kind: 'refuse', listener, status: 404, reason: 'NoPath' };
}

/** What is made of a request only where a match asks for it. */
interface Asked {
  readonly request: MatchedRequest;
  budget: ExpressionBudget | undefined;
  parameters: URLSearchParams | undefined;
}

function mostSpecific<T>(byHost: ReadonlyMap<string, T>, host: string): T | undefined {
  for (const candidate of hostCandidates(host)) {
    const found = byHost.get(candidate);
    if (found !== undefined) return found;
  }
  return undefined;
}

const listenerIndexes = new WeakMap<readonly PlannedListener[], ReadonlyMap<string, PlannedListener>>();

function indexOf(listeners: readonly PlannedListener[]): ReadonlyMap<string, PlannedListener> {
  let known = listenerIndexes.get(listeners);
  if (known === undefined) {
    const made = new Map<string, PlannedListener>();
    for (const listener of listeners) if (!made.has(listener.hostname)) made.set(listener.hostname, listener);
    known = made;
    listenerIndexes.set(listeners, known);
  }
  return known;
}

const hostIndexes = new WeakMap<readonly GatewayMatch[], ReadonlyMap<string, HostMatches>>();

function hostsOf({ matches }: PlannedListener): ReadonlyMap<string, HostMatches> {
  let known = hostIndexes.get(matches);
  if (known === undefined) {
    const made = new Map<string, HostMatches>();
    for (const match of matches) {
      let host = made.get(match.hostname);
      if (host === undefined) {
        host = new HostMatches();
        made.set(match.hostname, host);
      }
      host.add(match);
    }
    known = made;
    hostIndexes.set(matches, known);
  }
  return known;
}

/**
 * The matches of Routes with one hostname, by path: a lookup costs one step for each `/` of the request, up to that of
 * the longest prefix, and one for each expression and each match with the same path.
 */
class HostMatches {
  readonly #exact = new Map<string, GatewayMatch[]>();
  readonly #prefixes = new Map<string, GatewayMatch[]>();
  readonly #expressions: GatewayMatch[] = [];
  /** Methods of gRPC in any service: after all services. */
  readonly #methods: GatewayMatch[] = [];
  #depth = 0;

  /** In the order in which they are tried. */
  add(match: GatewayMatch): void {
    const { type, value } = match.path;
    if (type === 'RegularExpression') {
      (match.rule.isGrpc ? this.#methods : this.#expressions).push(match);
      return;
    }
    const lists = type === 'Exact' ? this.#exact : this.#prefixes;
    const list = lists.get(value);
    if (list === undefined) lists.set(value, [match]);
    else list.push(match);
    if (type === 'Prefix') this.#depth = Math.max(this.#depth, value.split('/').length);
  }

  find(asked: Asked): GatewayMatch | undefined {
    const { path } = asked.request;
    return (
      firstOf(this.#exact.get(path), asked) ??
      firstByExpression(this.#expressions, asked) ??
      this.#byPrefix(path, asked) ??
      firstByExpression(this.#methods, asked) ??
      firstOf(this.#prefixes.get(''), asked)
    );
  }

  /** The longest first; the one for all paths is not among them. */
  #byPrefix(path: string, asked: Asked): GatewayMatch | undefined {
    const ends: number[] = [];
    for (
      let at = path.indexOf('/', 1);
      at !== -1 && ends.length < this.#depth;
      at = path.indexOf('/', at + 1)
    )
      ends.push(at);
    if (ends.length < this.#depth) ends.push(path.length);
    for (const end of ends.reverse()) {
      const found = end === 0 ? undefined : firstOf(this.#prefixes.get(path.slice(0, end)), asked);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

function firstOf(list: readonly GatewayMatch[] | undefined, asked: Asked): GatewayMatch | undefined {
  return list?.find((match) => matchesRest(match, asked));
}

function firstByExpression(list: readonly GatewayMatch[], asked: Asked): GatewayMatch | undefined {
  return list.find((match) => {
    // Cheaper than the expression.
    if (match.rule.isGrpc && !asked.request.isGrpc) return false;
    return isExpressionOf(match.path.value, asked.request.path, asked) && matchesRest(match, asked);
  });
}

function isExpressionOf(expression: string, text: string, asked: Asked): boolean {
  asked.budget ??= new ExpressionBudget();
  return asked.budget.matches(expression, text);
}

/** All but host and path. */
function matchesRest({ method, headers, query, rule }: GatewayMatch, asked: Asked): boolean {
  const { request } = asked;
  if (method !== undefined && method !== request.method) return false;
  if (rule.isGrpc && !request.isGrpc) return false;
  return (
    headers.every((wanted) => isValueOf(wanted, request.header(wanted.name), asked)) &&
    query.every((wanted) => isValueOf(wanted, parameterOf(wanted.name, asked), asked))
  );
}

function isValueOf(wanted: PlannedValueMatch, value: string | undefined, asked: Asked): boolean {
  if (value === undefined) return false;
  return wanted.isExpression ? isExpressionOf(wanted.value, value, asked) : wanted.value === value;
}

/** The first of several. */
function parameterOf(name: string, asked: Asked): string | undefined {
  asked.parameters ??= new URLSearchParams(asked.request.query);
  return asked.parameters.get(name) ?? undefined;
}
