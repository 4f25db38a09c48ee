import type { IncomingMessage, ServerResponse } from 'node:http';
import { badRequest } from '../../objects/status-errors.ts';
import { readBody } from './body.ts';
import type { ApiRequest, RequestInfo } from './exchange.ts';
import { requestInfo } from './request-info.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

/** A request target, taken apart. */
export interface Target {
  /** Decoded. */
  readonly path: string;
  /** Without the `?`. */
  readonly query: string;
}

/**
 * Parses a request target: origin form, or absolute form as sent to a proxy.
 *
 * @throws {StatusError} 400 for a path whose percent encoding is broken.
 */
export function parseTarget(url: string): Target {
  let origin = url;
  if (!url.startsWith('/')) {
    const path = /^https?:\/\/[^/?]*(.*)$/is.exec(url)?.[1] ?? '';
    origin = path.startsWith('/') ? path : `/${path}`;
  }
  const question = origin.indexOf('?');
  const raw = question === -1 ? origin : origin.slice(0, question);
  return { path: decode(raw), query: question === -1 ? '' : origin.slice(question + 1) };
}

function decode(raw: string): string {
  if (!raw.includes('%')) return raw;
  try {
    return decodeURIComponent(raw);
  } catch {
    throw badRequest('the request path is not validly encoded');
  }
}

/** Shared by all requests without one; never changed. */
const noQuery = new URLSearchParams();

/** Parameters in one query, as in Go (`net/url`, urlmaxqueryparams). */
const maxParameters = 10_000;

/** @throws {StatusError} 400 for more parameters than Go reads. */
function parseQuery(query: string): URLSearchParams {
  if (query === '') return noQuery;
  let parameters = 1;
  for (let at = query.indexOf('&'); at !== -1; at = query.indexOf('&', at + 1)) parameters++;
  if (parameters > maxParameters) throw badRequest('number of URL query parameters exceeded limit');
  return new URLSearchParams(query);
}

/** A request, whose signal and query are made at the first use: most requests need neither. */
export class HttpRequest implements ApiRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly info: RequestInfo;
  readonly user: UserInfo;
  readonly incoming: IncomingMessage;
  readonly query: URLSearchParams;
  readonly #onSignal: () => AbortSignal;
  #madeSignal: AbortSignal | undefined;

  /** @throws {StatusError} 400 for a query of too many parameters. */
  constructor(
    incoming: IncomingMessage,
    target: Target,
    user: UserInfo,
    /** Called at most once. */
    onSignal: () => AbortSignal,
  ) {
    this.incoming = incoming;
    this.method = incoming.method ?? '';
    this.url = incoming.url ?? '';
    this.headers = incoming.headers;
    this.query = parseQuery(target.query);
    this.info = requestInfo(this.method, target.path, this.query);
    this.user = user;
    this.#onSignal = onSignal;
  }

  get signal(): AbortSignal {
    this.#madeSignal ??= this.#onSignal();
    return this.#madeSignal;
  }

  async body(): Promise<Buffer> {
    return readBody(this.incoming);
  }
}

/** A signal that is aborted when the answer's connection closes before the answer is complete. */
export function abortWithClient(response: ServerResponse, controller: AbortController): void {
  response.once('close', () => {
    if (!response.writableFinished) controller.abort();
  });
}
