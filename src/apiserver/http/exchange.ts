import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import type { LongBody } from './long-body.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';
import { StatusError } from '../../objects/status.ts';

/** What a path and method ask for (apiserver `endpoints/request/requestinfo.go`). */
export interface RequestInfo {
  readonly isResource: boolean;
  /** get, list, watch, create, update, patch, delete, deletecollection, or the lower-case HTTP method. */
  readonly verb: string;
  readonly path: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  /** Path segments behind the subresource: the rest of `/proxy/a/b` is ["a", "b"]. */
  readonly rest: readonly string[];
}

/** A request as a server reads it, of HTTP/1.1 (Node's IncomingMessage) or HTTP/2. The stream is its body. */
export interface IncomingRequest extends Readable {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
  /** Names and values, one after the other. */
  readonly rawHeaders: string[];
  /** The connection, which others may share. */
  readonly socket: Socket;
  /** Whether all of the body has come. */
  readonly complete: boolean;
}

/** A request behind authentication and routing. */
export interface ApiRequest {
  readonly method: string;
  /** The raw request target, as sent. */
  readonly url: string;
  readonly info: RequestInfo;
  readonly query: URLSearchParams;
  /** Lower-case names; repeated headers joined as Node does. */
  readonly headers: IncomingHttpHeaders;
  readonly user: UserInfo;
  /** Reads the whole body, at most 3 MiB. @throws {StatusError} 413, or 400 when it is cut short. */
  body(): Promise<Buffer>;
  /** Aborted when the client is gone or the server stops. */
  readonly signal: AbortSignal;
  /** The request itself, for a proxy that streams the body instead of reading it. */
  readonly incoming: IncomingRequest;
}

/** The answer of a handler; exactly one of the methods is called, once. */
export interface Reply {
  /** Adds a `Warning: 299 - "…"` header; before the answer. */
  warn(text: string): void;
  /** Adds a header to the answer, whatever its status. Call it before the answer is sent. */
  addHeader(name: string, value: string): void;
  /** A body of known length. Compressed when large and the client accepts it. Content type "" sends none. */
  send(
    status: number,
    contentType: string,
    body: Buffer | string | LongBody,
    headers?: Readonly<Record<string, string>>,
  ): void;
  /** A finished document: compressed like others, but not indented for `pretty` (Go's `http.ServeContent`). */
  sendAsIs(
    status: number,
    contentType: string,
    body: Buffer | string,
    headers?: Readonly<Record<string, string>>,
  ): void;
  /**
   * Starts a chunked answer that is written in pieces: watches, logs, proxies.
   *
   * @param compress compresses each piece on its own for clients that take gzip.
   */
  stream(
    status: number,
    headers: Readonly<Record<string, string | readonly string[]>>,
    compress?: boolean,
  ): ReplyStream;
}

export interface ReplyStream {
  /**
   * False when the client is slow: wait for {@link drained}.
   *
   * @param onSent is called when the kernel has taken the chunk, or the connection has failed.
   */
  write(chunk: Buffer | string, onSent?: () => void): boolean;
  drained(): Promise<void>;
  /** Bytes that were written and that the kernel has not taken. */
  readonly unsent: number;
  end(): void;
  /** Cuts the connection in the middle, so that the client sees that the answer is incomplete. */
  destroy(): void;
}

/** Serves requests whose first path segment is registered for it. Throws StatusError to answer an error. */
export type Handler = (request: ApiRequest, reply: Reply) => Promise<void>;

/** Serves an HTTP upgrade (WebSocket through `/proxy`). */
export type UpgradeHandler = (request: ApiRequest, socket: Duplex, head: Buffer) => Promise<void>;

/** kube-apiserver's answer for unknown paths. */
export function replyNotFound(reply: Reply): void {
  reply.send(404, 'text/plain; charset=utf-8', '404 page not found\n', {
    'X-Content-Type-Options': 'nosniff',
  });
}

/**
 * Passes each request to the handler of its first path segment (`api` of `/api/v1/services`, "" of `/`); 404
 * without one. An empty segment in front (`//api`) is a segment.
 */
export function createRouter(routes: ReadonlyMap<string, Handler>): Handler {
  return async (request, reply) => {
    const { path } = request.info;
    const end = path.indexOf('/', 1);
    const first = end === -1 ? path.slice(1) : path.slice(1, end);
    const handler = first === '' && path !== '/' ? undefined : routes.get(first);
    if (handler === undefined) replyNotFound(reply);
    else await handler(request, reply);
  };
}

/** A response with Retry-After. */
export interface Refusal {
  readonly code: 429 | 503;
  /** Whole seconds, from 0; in the header `Retry-After`, and in the Status unless it is 0. */
  readonly retryAfterSeconds: number;
  /** Default: kube-apiserver's text just after a CustomResourceDefinition was created. */
  readonly message?: string;
}

/**
 * Decides for each request whether it is refused before anything is done: how a client fares with a server that is
 * busy. Undefined lets it through.
 */
export type RefuseRequest = (request: {
  readonly method: string;
  readonly path: string;
}) => Refusal | undefined;

/** The refusal as an answer (apiserver `endpoints/handlers/responsewriters/errors.go`). */
export function refusalError({
  code,
  retryAfterSeconds,
  message = 'storage is (re)initializing',
}: Refusal): StatusError {
  return new StatusError(code, code === 429 ? 'TooManyRequests' : 'ServiceUnavailable', message, {
    ...(retryAfterSeconds > 0 ? { details: { retryAfterSeconds } } : {}),
    headers: { 'Retry-After': String(retryAfterSeconds) },
  });
}
