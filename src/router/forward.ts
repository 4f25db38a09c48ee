import type { ServerResponse } from 'node:http';
import { Http2ServerResponse } from 'node:http2';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { STATUS_CODES } from '../host/node-http.ts';
import type { Clock, Timer } from '../client/clock.ts';
import type { HeaderAction, HttpRule } from '../network/http/rules.ts';
import type { BackendConnections, ForwardTarget, TargetChoice, TargetProblem } from './backends.ts';
import type { GatewayTreatment } from './decisions.ts';
import {
  type AnswerHandler,
  type AnswerHead,
  BadAnswerError,
  type BackendExchange,
  type BackendRequest,
  type BodyCopy,
  type ClientRequest,
  SilentBackendError,
} from './http/exchange.ts';
import type { Mirrors } from './gateway/mirrors.ts';
import { responseHeaders, trailers } from './headers.ts';

/** The answer to a client's request. */
export type ClientResponse = ServerResponse | Http2ServerResponse;

/** Why the router answered by itself, or cut an answer: a word of logs and metrics. */
export type ForwardProblem =
  | TargetProblem
  | 'BackendFailed'
  | 'BackendTimeout'
  | 'ClientGone'
  | 'BadRequest'
  | 'TooManyRequests'
  | 'NotAllowed'
  | 'InternalError';

/** A request to a backend. */
export interface Exchange {
  readonly request: ClientRequest;
  readonly response: ClientResponse;
  readonly rule: HttpRule;
  /** Path and query. */
  readonly path: string;
  readonly headers: readonly string[];
  /** What is changed in the headers of the answer. */
  readonly responseActions: readonly HeaderAction[];
  /** What a rule of Gateway API asks besides. */
  readonly gateway: GatewayTreatment | undefined;
  /** The protocol that the client's connection is to change to. */
  readonly upgrade: string | undefined;
  /** Milliseconds that a backend may be silent. */
  readonly timeoutMs: number;
  /** Gets the backend's connection once the protocol has changed, and the head for the client. */
  readonly onUpgrade: (head: string, backend: Duplex, first: Buffer) => void;
  /** Reports the values for the log and metrics. */
  readonly onTarget: (target: ForwardTarget) => void;
  readonly onProblem: (problem: ForwardProblem, error?: Error) => void;
}

/** Requests that a backend may get twice without harm (RFC 9110, 9.2.2). */
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE']);
/** How many backends a request may be sent to. */
const attempts = 3;

export interface ForwardOptions {
  readonly choice: TargetChoice;
  readonly connections: BackendConnections;
  readonly mirrors: Mirrors;
  readonly clock: Clock;
}

/** One of the tries to get an answer. */
interface Attempt {
  readonly exchange: Exchange;
  readonly asked: BackendRequest;
  readonly tried: readonly ForwardTarget[];
  /** Of the mirrors, which are asked once. */
  readonly copies: readonly BodyCopy[] | undefined;
  readonly deadlineMs: number | undefined;
}

/** Sends a request to a backend and its answer to the client, piece by piece. */
export class Forward {
  readonly #options: ForwardOptions;

  constructor(options: ForwardOptions) {
    this.#options = options;
  }

  /** Never throws: a failure is answered to the client, as far as that is possible, and reported to the exchange. */
  start(exchange: Exchange): void {
    const { clock } = this.#options;
    const { request, path, headers, upgrade, timeoutMs, gateway } = exchange;
    const method = request.method ?? 'GET';
    const body = hasBody(request) ? request : undefined;
    const expectsContinue = body !== undefined && expects(request);
    const limitMs = gateway?.requestTimeoutMs;
    const asked = {
      ...{ method, path, body, expectsContinue, upgrade, timeoutMs },
      headers: framed(headers, method, body, expectsContinue),
    };
    this.#attempt({
      ...{ exchange, asked, tried: [], copies: undefined },
      deadlineMs: limitMs === undefined ? undefined : clock.monotonic() + limitMs,
    });
  }

  #attempt(attempt: Attempt): void {
    const { choice, connections, mirrors, clock } = this.#options;
    const { exchange, asked, tried, deadlineMs } = attempt;
    const { response, rule, gateway } = exchange;
    if (response.destroyed) {
      exchange.onProblem('ClientGone');
      return;
    }
    const target = choice.choose(rule, tried);
    if (typeof target === 'string') {
      exchange.onProblem(target);
      answerItself(response, 503, target, gateway);
      return;
    }
    exchange.onTarget(target);
    const copies = attempt.copies ?? (gateway === undefined ? [] : mirrors.send(gateway.mirrors, asked));
    const passer = new AnswerPasser(exchange, (error, isSent) => {
      if (!isSent) choice.failed(target);
      const isSafe = isSent
        ? idempotent.has(asked.method) && asked.body === undefined && isLost(error)
        : !sent.isBodyBegun;
      if (!isSafe || tried.length + 1 >= attempts) {
        for (const copy of copies) copy.end(false);
        return false;
      }
      this.#attempt({ ...attempt, copies, tried: [...tried, target] });
      return true;
    });
    let sent: BackendExchange;
    try {
      sent = connections.send(target, { ...asked, copies }, passer);
    } catch (error) {
      // What Node.js does not write: a blank in a path of HTTP/2, for example.
      passer.refused(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    passer.began(sent);
    if (gateway?.tryTimeoutMs !== undefined) passer.endAfter(clock, gateway.tryTimeoutMs);
    if (deadlineMs !== undefined) passer.endAfter(clock, deadlineMs - clock.monotonic());
  }
}

/** Whether a request has a body, or may have one. */
function hasBody(request: ClientRequest): boolean {
  if ('stream' in request) return !request.stream.endAfterHeaders;
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers;
  return encoding !== undefined || Number(length) !== 0;
}

/** Whether the client waits before it sends its body; one of HTTP/1.0 knows no answer to that (RFC 9110, 10.1.1). */
function expects({ headers, httpVersion }: ClientRequest): boolean {
  return httpVersion !== '1.0' && headers.expect?.toLowerCase() === '100-continue';
}

/** Methods whose requests have no body unless they say so. */
const without = new Set(['GET', 'HEAD', 'OPTIONS', 'DELETE', 'TRACE', 'CONNECT']);

/** The headers with those that say how long the body is. */
function framed(
  headers: readonly string[],
  method: string,
  body: ClientRequest | undefined,
  expectsContinue: boolean,
): string[] {
  const all = [...headers];
  const hasLength = all.some((text, i) => i % 2 === 0 && text.toLowerCase() === 'content-length');
  if (body === undefined && !hasLength && !without.has(method)) all.push('Content-Length', '0');
  if (body !== undefined && !hasLength) all.push('Transfer-Encoding', 'chunked');
  if (expectsContinue) all.push('Expect', '100-continue');
  return all;
}

const lostCodes = new Set([
  ...['ECONNRESET', 'EPIPE'],
  ...['ERR_HTTP2_INVALID_SESSION', 'ERR_HTTP2_GOAWAY_SESSION', 'ERR_HTTP2_STREAM_CANCEL'],
]);

/** Whether the connection was lost before an answer: by the backend's idle timeout, most of the time. */
function isLost(error: Error): boolean {
  return 'code' in error && lostCodes.has(String(error.code));
}

/** Passes an answer on. */
class AnswerPasser implements AnswerHandler {
  readonly #exchange: Exchange;
  /** Begins another attempt, if that is safe. */
  readonly #retry: (error: Error, isSent: boolean) => boolean;
  #sent: BackendExchange | undefined;
  #isSent = false;
  #isContinued = false;
  /** Whether the answer has no content, whatever the backend sends. */
  #isBare = false;
  #isLate = false;
  readonly #timers: Timer[] = [];
  readonly #onClose = (): void => {
    this.#sent?.abort();
    this.#stopListening();
    this.#exchange.onProblem('ClientGone');
  };
  readonly #onDrain = (): void => this.#sent?.resume();

  constructor(exchange: Exchange, retry: (error: Error, isSent: boolean) => boolean) {
    this.#exchange = exchange;
    this.#retry = retry;
    exchange.response.on('close', this.#onClose);
    exchange.response.on('drain', this.#onDrain);
  }

  began(sent: BackendExchange): void {
    this.#sent = sent;
  }

  /** Ends the exchange when so much time has passed, whatever it does then. */
  endAfter(clock: Clock, milliseconds: number): void {
    this.#timers.push(
      clock.after(milliseconds, () => {
        this.#isLate = true;
        this.#sent?.abort();
        this.onError(new SilentBackendError());
      }),
    );
  }

  /** The request cannot be sent to any backend. */
  refused(error: Error): void {
    this.#stopListening();
    this.#exchange.onProblem('BadRequest', error);
    answerItself(this.#exchange.response, 400, 'BadRequest', this.#exchange.gateway);
  }

  onSent(): void {
    this.#isSent = true;
  }

  onInformation({ status, rawHeaders }: AnswerHead): void {
    const { request, response } = this.#exchange;
    if (status === 100) this.#isContinued = true;
    // HTTP/1.0 has no such answers (RFC 9110, 15.2).
    if (request.httpVersion === '1.0' || response.headersSent) return;
    const headers = responseHeaders(rawHeaders, status, []);
    try {
      if (response instanceof Http2ServerResponse) {
        if (!response.stream.destroyed) response.stream.additionalHeaders({ ':status': status, ...headers });
        // Without a socket its turn has not come: answers before it are on their way.
      } else response.socket?.write(headText(status, STATUS_CODES[status] ?? '', headers), 'latin1');
    } catch {
      // It may be left out: the answer says all.
    }
  }

  onHead({ status, reason, rawHeaders, isWhole }: AnswerHead): void {
    const { request, response } = this.#exchange;
    this.#isBare = request.method === 'HEAD' || status === 204 || status === 205 || status === 304;
    // The client may send its body or not: its next request is where the connection is read no more.
    const isUndecided = expects(request) && !this.#isContinued && hasBody(request);
    if (isUndecided && !(response instanceof Http2ServerResponse)) response.setHeader('connection', 'close');
    try {
      const headers = this.#headers(rawHeaders, status);
      // An answer of gRPC without messages has no trailers: its status is in the head, which is the end.
      if (isWhole === true && response instanceof Http2ServerResponse) endWith(response, status, headers);
      else writeHead(response, status, reason, headers);
    } catch (error) {
      this.#sent?.abort();
      this.onError(new BadAnswerError('the head of the answer cannot be passed on', { cause: error }));
    }
  }

  onData(chunk: Buffer): boolean {
    const { response } = this.#exchange;
    if (this.#isBare) return true;
    return response instanceof Http2ServerResponse ? response.write(chunk) : response.write(chunk);
  }

  onEnd(rawTrailers: readonly string[]): void {
    this.#stopListening();
    const { response } = this.#exchange;
    const sent = trailers(rawTrailers);
    try {
      if (Object.keys(sent).length > 0 && !this.#isBare) response.addTrailers(sent);
    } catch (error) {
      this.onError(new BadAnswerError('the trailers of the answer cannot be passed on', { cause: error }));
      return;
    }
    response.end();
  }

  onUpgrade({ status, reason, rawHeaders }: AnswerHead, backend: Duplex, first: Buffer): void {
    this.#stopListening();
    const { upgrade = '', onUpgrade } = this.#exchange;
    const headers = this.#headers(rawHeaders, status);
    onUpgrade(headText(status, reason, { ...headers, connection: 'Upgrade', upgrade }), backend, first);
  }

  onError(error: Error): void {
    this.#stopListening();
    const { response, onProblem } = this.#exchange;
    if (response.headersSent) {
      onProblem('BackendFailed', error);
      cut(response);
      return;
    }
    if (!this.#isLate && this.#retry(error, this.#isSent)) return;
    const problem = error.name === 'TimeoutError' ? 'BackendTimeout' : 'BackendFailed';
    onProblem(problem, error);
    for (const name of response.getHeaderNames()) response.removeHeader(name);
    answerItself(response, problem === 'BackendTimeout' ? 504 : 502, problem, this.#exchange.gateway);
  }

  #headers(rawHeaders: readonly string[], status: number): Record<string, string | string[]> {
    const { responseActions, gateway } = this.#exchange;
    const headers = responseHeaders(rawHeaders, status, responseActions);
    return gateway === undefined ? headers : { ...gateway.changeAnswer(headers) };
  }

  #stopListening(): void {
    for (const timer of this.#timers) timer.cancel();
    this.#exchange.response.off('close', this.#onClose);
    this.#exchange.response.off('drain', this.#onDrain);
  }
}

/** HTTP/2's INTERNAL_ERROR. */
const internalError = 2;

/** Ends an answer so that the client does not take the part for all of it. */
export function cut(response: ClientResponse): void {
  if (response instanceof Http2ServerResponse) {
    response.stream.close(internalError);
    return;
  }
  const { socket } = response;
  // Without chunks or a length the end of the connection would end the answer, too.
  if (socket instanceof Socket && !('encrypted' in socket)) socket.resetAndDestroy();
  response.destroy();
}

function headText(status: number, reason: string, headers: Record<string, string | string[]>): string {
  let head = `HTTP/1.1 ${status} ${reason}\r\n`;
  for (const [name, values] of Object.entries(headers)) {
    for (const value of [values].flat()) head += `${name}: ${value}\r\n`;
  }
  return `${head}\r\n`;
}

/** The head of an answer. @throws {Error} where Node.js refuses to write it. */
function writeHead(
  response: ClientResponse,
  status: number,
  reason: string,
  headers: Record<string, string | string[]>,
): void {
  if (response instanceof Http2ServerResponse) response.writeHead(status, headers);
  else response.writeHead(status, reason, headers);
}

/** The head of an answer of HTTP/2 that has nothing else. */
function endWith(
  response: Http2ServerResponse,
  status: number,
  headers: Record<string, string | string[]>,
): void {
  const { stream } = response;
  // For the log.
  response.statusCode = status;
  if (!stream.destroyed) stream.respond({ ...headers, ':status': status }, { endStream: true });
}

/** How an answer of the router itself is written. */
interface OwnAnswerForm {
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the client speaks gRPC. */
  readonly isGrpc?: boolean;
}

/** An answer of the router itself. */
export function answerItself(
  response: ClientResponse,
  status: number,
  reason: string,
  { headers = {}, isGrpc = false }: OwnAnswerForm = {},
): void {
  if (response.headersSent || response.destroyed) return;
  if (isGrpc) {
    const fields = {
      'content-type': 'application/grpc',
      'grpc-status': String(grpcStatusOf(status)),
      'grpc-message': `${status} ${reason}`,
    };
    if (response instanceof Http2ServerResponse) {
      endWith(response, 200, fields);
      response.end();
      return;
    }
    writeHead(response, 200, STATUS_CODES[200] ?? '', fields);
    response.end();
    return;
  }
  // An answer without content has no type either (RFC 9110, 8.3).
  const isBare = status === 204;
  writeHead(response, status, STATUS_CODES[status] ?? '', {
    ...(isBare ? {} : { 'content-type': 'text/plain; charset=utf-8' }),
    ...headers,
  });
  if (isBare) response.end();
  else response.end(`${status} ${reason}\n`);
}

/** Unimplemented for what no rule takes, Unavailable for what no backend answers. */
function grpcStatusOf(status: number): 12 | 14 {
  return status === 404 ? 12 : 14;
}
