import type { AnswerHeaders } from '../network/gateway/filters.ts';
import type { MirrorFilter } from '../network/gateway/plan.ts';
import { rewrittenPath } from '../network/http/route-annotations.ts';
import type { RoutingTable } from '../network/http/routing-table.ts';
import type { HeaderAction, HttpRule, RuleSource } from '../network/http/rules.ts';
import { type Asked, secureUrl, withoutQuery } from './asked.ts';
import type { ClientRequest } from './http/exchange.ts';

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
