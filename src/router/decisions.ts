import {
  type AnswerHeaders,
  changedAnswerHeaders,
  changedHeaders,
  changedTarget,
  chosenBackend,
  corsAnswerHeaders,
  type CorsRequest,
  isPreflight,
  preflightHeaders,
  redirectLocation,
} from '../network/gateway/filters.ts';
import type { MirrorFilter, GatewayMatch, PlannedListener, PlannedPort } from '../network/gateway/plan.ts';
import { rewrittenPath } from '../network/http/route-annotations.ts';
import type { RoutingTable } from '../network/http/routing-table.ts';
import { type HeaderAction, type HttpRule, type RuleSource, plainHost } from '../network/http/rules.ts';
import { type Asked, secureUrl, withoutQuery } from './asked.ts';
import type { ClientRequest } from './http/exchange.ts';
import type { Random } from '../client/clock.ts';
import { listenerFor, matchRequest } from '../network/gateway/matching.ts';

/** What is done with a request: the seam between who decides and who serves. */

export type Scheme = 'http' | 'https';

/** The router answers. */
export interface OwnAnswer {
  readonly kind: 'answer';
  /** The object that decided. */
  readonly source: RuleSource | undefined;
  readonly status: number;
  readonly reason: string;
  /** Whether `reason` is a problem: a word of metrics. */
  readonly isRefusal: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the answer is one for clients of gRPC. */
  readonly isGrpc?: boolean;
}

/** A backend answers. */
export interface ForwardedRequest {
  readonly kind: 'forward';
  readonly source: RuleSource;
  readonly rule: HttpRule;
  /** Path and query. */
  readonly path: string;
  readonly responseActions: readonly HeaderAction[];
  /** Milliseconds that the backend may be silent; undefined: what the router has for all. */
  readonly timeoutMs: number | undefined;
  /** Milliseconds without a byte after which a tunnel ends. */
  readonly tunnelTimeoutMs: number | undefined;
  /** Of a Route of Gateway API. */
  readonly gateway?: GatewayTreatment;
}

/** What rules of Gateway API ask besides. */
export interface GatewayTreatment {
  readonly isGrpc: boolean;
  /** @param headers names and values in turn, Host first. */
  changeHeaders(headers: readonly string[]): readonly string[];
  changeAnswer(headers: AnswerHeaders): AnswerHeaders;
  /** Milliseconds for the whole exchange with the client. */
  readonly requestTimeoutMs: number | undefined;
  /** Milliseconds for one try with a backend. */
  readonly tryTimeoutMs: number | undefined;
  /** Those by which this very request is mirrored. */
  readonly mirrors: readonly MirrorFilter[];
}

export type Decide = (request: ClientRequest, asked: Asked, scheme: Scheme) => OwnAnswer | ForwardedRequest;

/** Decides by Ingresses and Routes of OpenShift. */
export function ingressDecisions(table: RoutingTable): Decide {
  return (_request, asked, scheme) => {
    const decision = table.resolve({ scheme, host: asked.host, path: withoutQuery(asked.path) });
    const { rule } = decision;
    if (decision.kind === 'refuse') {
      const { status, reason } = decision;
      return { kind: 'answer', source: rule?.source, status, reason, isRefusal: true };
    }
    if (decision.kind === 'redirect') {
      const { status } = decision;
      const headers = { location: secureUrl(asked) };
      return {
        kind: 'answer',
        source: decision.rule.source,
        status,
        reason: 'Redirect',
        isRefusal: false,
        headers,
      };
    }
    const { source, path, settings, responseHeaders } = decision.rule;
    const { timeoutMs, tunnelTimeoutMs, hsts, rewriteTarget } = settings ?? {};
    return {
      ...{ kind: 'forward', source, rule: decision.rule, timeoutMs, tunnelTimeoutMs },
      path: rewriteTarget === undefined ? asked.path : rewrittenPath(asked.path, path, rewriteTarget),
      responseActions:
        hsts === undefined || scheme === 'http'
          ? responseHeaders
          : [...responseHeaders, { name: 'strict-transport-security', value: hsts }],
    };
  };
}

/** Decides by the plan of a Gateway's port, as it is when a request comes. */
export function gatewayDecisions(plan: () => PlannedPort, random: Random): Decide {
  return (request, asked, scheme) => {
    const port = plan();
    const header = headersOf(request);
    const isGrpc = isGrpcCall(request, header);
    const decision = matchRequest(port.listeners, {
      host: plainHost(asked.host),
      path: withoutQuery(asked.path),
      query: queryOf(asked.path),
      method: request.method ?? 'GET',
      ...{ isGrpc, header },
      tls: scheme === 'https' ? { listener: connectionListener(port, request) } : undefined,
    });
    if (decision.kind === 'match') {
      return treatment({ port, match: decision.match, request, asked, scheme, header, isGrpc, random });
    }
    const { status, reason } = decision;
    // A client of gRPC opens another connection for 421, as all do.
    return {
      kind: 'answer',
      source: undefined,
      status,
      reason,
      isRefusal: true,
      isGrpc: isGrpc && status === 404,
    };
  };
}

interface TreatedRequest {
  readonly port: PlannedPort;
  readonly match: GatewayMatch;
  readonly request: ClientRequest;
  readonly asked: Asked;
  readonly scheme: Scheme;
  readonly header: (name: string) => string | undefined;
  readonly isGrpc: boolean;
  readonly random: Random;
}

function treatment(matched: TreatedRequest): OwnAnswer | ForwardedRequest {
  const { port, match, request, asked, scheme, header, isGrpc, random } = matched;
  const { rule, path } = match;
  const { source, filters, backends } = rule;
  const refused = (reason: string): OwnAnswer => ({
    ...{ kind: 'answer', source, status: 500, reason, isRefusal: true, isGrpc },
  });
  if (filters.unsupported !== undefined) return refused('UnsupportedFilter');
  const cors: CorsRequest = {
    method: request.method ?? 'GET',
    origin: header('origin'),
    wantedMethod: header('access-control-request-method'),
    wantedHeaders: header('access-control-request-headers'),
  };
  if (filters.cors !== undefined && isPreflight(cors)) {
    const headers = preflightHeaders(filters.cors, cors);
    return { kind: 'answer', source, status: 204, reason: 'Preflight', isRefusal: false, headers };
  }
  if (filters.redirect !== undefined) {
    const redirected = { scheme, host: asked.host, target: asked.path, listenerPort: port.port };
    const headers = { location: redirectLocation(filters.redirect, redirected, path) };
    const { status } = filters.redirect;
    return { kind: 'answer', source, status, reason: 'Redirect', isRefusal: false, headers };
  }
  const backend = chosenBackend(backends, random());
  if (backend === undefined) return refused('NoBackends');
  if (backend.rule === undefined) return refused('InvalidBackend');
  const { rewrite } = filters;
  return {
    ...{ kind: 'forward', source, rule: backend.rule, timeoutMs: undefined, tunnelTimeoutMs: undefined },
    path: changedTarget(rewrite?.path, asked.path, path),
    responseActions: [],
    gateway: {
      isGrpc,
      changeHeaders: (headers) => {
        const hosted = rewrite?.hostname === undefined ? headers : withHost(headers, rewrite.hostname);
        return changedHeaders(hosted, [filters.requestHeaders, backend.requestHeaders]);
      },
      changeAnswer: (headers) => {
        let all: AnswerHeaders = headers;
        if (filters.responseHeaders !== undefined) all = changedAnswerHeaders(all, filters.responseHeaders);
        if (filters.cors !== undefined) all = corsAnswerHeaders(all, filters.cors, cors.origin);
        return all;
      },
      requestTimeoutMs: rule.requestTimeoutMs,
      tryTimeoutMs: rule.backendTimeoutMs,
      mirrors: filters.mirrors.filter(({ numerator, denominator }) => random() * denominator < numerator),
    },
  };
}

/** @param headers Host first. */
function withHost(headers: readonly string[], host: string): readonly string[] {
  const [name = 'host', , ...rest] = headers;
  return [name, host, ...rest];
}

function queryOf(target: string): string {
  const question = target.indexOf('?');
  return question === -1 ? '' : target.slice(question + 1);
}

/** The values of a request's headers, read when the first is asked for. */
function headersOf({ rawHeaders }: ClientRequest): (name: string) => string | undefined {
  let known: Map<string, string> | undefined;
  return (name) => {
    if (known === undefined) {
      known = new Map();
      for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
        const key = (rawHeaders[i] ?? '').toLowerCase();
        const before = known.get(key);
        const value = rawHeaders[i + 1] ?? '';
        known.set(key, before === undefined ? value : `${before},${value}`);
      }
    }
    return known.get(name);
  };
}

function isGrpcCall({ method }: ClientRequest, header: (name: string) => string | undefined): boolean {
  if (method !== 'POST') return false;
  const type = header('content-type') ?? '';
  return type.startsWith('application/grpc') && !type.startsWith('application/grpc-web');
}

/** The listener by which the connection of a request was accepted, among those of now. */
function connectionListener({ listeners }: PlannedPort, request: ClientRequest): PlannedListener | undefined {
  return listenerFor(listeners, plainHost(serverNameOf(request)));
}

/** "" where the client named none. */
function serverNameOf(request: ClientRequest): string {
  const socket: object = 'stream' in request ? (request.stream.session?.socket ?? {}) : request.socket;
  const name: unknown = Reflect.get(socket, 'servername');
  return typeof name === 'string' ? name : '';
}
