import type { IncomingMessage, IncomingHttpHeaders, ServerResponse } from 'node:http';
import { type Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { HttpRule } from '../network/http/rules.ts';
import type { BackendConnections, ForwardTarget, TargetChoice, TargetProblem } from './backends.ts';
import { responseHeaders } from './headers.ts';

/**
 * The body of a client's request, for a backend. Nothing is taken from the client before it is asked for: a request whose
 * connection to a backend fails can still be sent to another one. Its end by an error leaves the client's connection open
 * for the answer.
 */
class RequestBody extends Readable {
  readonly #request: IncomingMessage | Http2ServerRequest;
  /** Whether any of it was asked for. */
  isBegun = false;

  constructor(request: IncomingMessage | Http2ServerRequest) {
    super();
    this.#request = request;
  }

  override _read(): void {
    if (!this.isBegun) {
      this.isBegun = true;
      this.#request.on('data', this.#take);
      this.#request.on('end', this.#end);
      this.#request.on('error', this.#fail);
    }
    this.#request.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#request.off('data', this.#take);
    this.#request.off('end', this.#end);
    this.#request.off('error', this.#fail);
    done(error);
  }

  readonly #take = (chunk: Buffer): void => {
    if (!this.push(chunk)) this.#request.pause();
  };
  readonly #end = (): void => {
    this.push(null);
  };
  readonly #fail = (error: Error): void => {
    this.destroy(error);
  };
}

/** Whether a request has a body, or may have one. */
function hasBody(request: IncomingMessage | Http2ServerRequest): boolean {
  if ('stream' in request) return !request.stream.endAfterHeaders;
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers;
  return encoding !== undefined || Number(length) !== 0;
}

/** A client's request over HTTP/1.1 or HTTP/2. */
export type ClientRequest = IncomingMessage | Http2ServerRequest;
/** Its answer. */
export type ClientResponse = ServerResponse | Http2ServerResponse;

/** Why the router answered by itself, or cut an answer: a word of logs and metrics. */
export type ForwardProblem = TargetProblem | 'BackendFailed' | 'BackendTimeout' | 'ClientGone' | 'BadRequest';

/** A request to a backend. */
export interface Exchange {
  readonly request: ClientRequest;
  readonly response: ClientResponse;
  readonly rule: HttpRule;
  /** Path and query. */
  readonly path: string;
  readonly headers: string[];
  /** Reports the values for the log and metrics. */
  readonly onTarget: (target: ForwardTarget) => void;
  readonly onProblem: (problem: ForwardProblem, error?: Error) => void;
}

/** Requests that a backend may get twice without harm (RFC 9110, 9.2.2). */
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE']);
/** How many backends a request may be sent to. */
const attempts = 3;

/** Sends a request to a backend and its answer to the client, piece by piece. */
export class Forward {
  readonly #choice: TargetChoice;
  readonly #connections: BackendConnections;

  constructor(choice: TargetChoice, connections: BackendConnections) {
    this.#choice = choice;
    this.#connections = connections;
  }

  /** Never throws: a failure is answered to the client, as far as that is possible, and reported to the exchange. */
  start(exchange: Exchange): void {
    this.#attempt(exchange, []);
  }

  #attempt(exchange: Exchange, tried: readonly ForwardTarget[]): void {
    const { request, rule, path, headers } = exchange;
    const target = this.#choice.choose(rule, tried);
    if (typeof target === 'string') {
      exchange.onProblem(target);
      answerItself(exchange.response, 503, target);
      return;
    }
    exchange.onTarget(target);
    const method = request.method ?? 'GET';
    const body = hasBody(request) ? new RequestBody(request) : null;
    const handler = new ResponseHandler(exchange, (error, isSent) => {
      if (!isSent) this.#choice.failed(target);
      const isSafe = isSent
        ? idempotent.has(method) && body === null && isLost(error)
        : body?.isBegun !== true;
      if (!isSafe || tried.length + 1 >= attempts) return false;
      this.#attempt(exchange, [...tried, target]);
      return true;
    });
    // undici reports a request that it refuses by the handler.
    this.#connections.to(target).dispatch({ path, method, headers, body }, handler);
  }
}

/** Whether the connection was lost before an answer: by the backend's idle timeout, most of the time. */
function isLost(error: Error): boolean {
  return 'code' in error && ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'].includes(String(error.code));
}

/** Passes an answer on. */
class ResponseHandler implements Dispatcher.DispatchHandler {
  readonly #exchange: Exchange;
  /** Begins another attempt, if that is safe. */
  readonly #retry: (error: Error, isSent: boolean) => boolean;
  #controller: Dispatcher.DispatchController | undefined;
  #isGone = false;
  readonly #onClose = (): void => {
    this.#isGone = true;
    this.#controller?.abort(new ClientGone());
  };
  readonly #onDrain = (): void => this.#controller?.resume();

  constructor(exchange: Exchange, retry: (error: Error, isSent: boolean) => boolean) {
    this.#exchange = exchange;
    this.#retry = retry;
    exchange.response.on('close', this.#onClose);
    exchange.response.on('drain', this.#onDrain);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isGone) controller.abort(new ClientGone());
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status < 200) return;
    const { response, rule } = this.#exchange;
    writeHead(response, status, responseHeaders(headers, rule.responseHeaders));
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const { response } = this.#exchange;
    const hasRoom = response instanceof Http2ServerResponse ? response.write(chunk) : response.write(chunk);
    if (!hasRoom) controller.pause();
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    this.#stopListening();
    const { response } = this.#exchange;
    const sent: Record<string, string | string[]> = {};
    for (const [name, value] of Object.entries(trailers)) if (value !== undefined) sent[name] = value;
    if (Object.keys(sent).length > 0) response.addTrailers(sent);
    response.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    const { response, onProblem } = this.#exchange;
    this.#stopListening();
    if (this.#isGone || error instanceof ClientGone) {
      onProblem('ClientGone');
      return;
    }
    if (response.headersSent) {
      onProblem('BackendFailed', error);
      // Cut, so that the client does not take the part for a complete response.
      if (response instanceof Http2ServerResponse) response.stream.close(internalError);
      else response.destroy();
      return;
    }
    if (this.#retry(error, this.#controller !== undefined)) return;
    const problem = problemOf(error);
    onProblem(problem, error);
    answerItself(
      response,
      problem === 'BackendTimeout' ? 504 : problem === 'BadRequest' ? 400 : 502,
      problem,
    );
  }

  #stopListening(): void {
    this.#exchange.response.off('close', this.#onClose);
    this.#exchange.response.off('drain', this.#onDrain);
  }
}

/** HTTP/2's INTERNAL_ERROR. */
const internalError = 2;

class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

function problemOf(error: Error): 'BackendTimeout' | 'BackendFailed' | 'BadRequest' {
  const code = 'code' in error ? String(error.code) : '';
  if (error.name === 'TimeoutError' || code.endsWith('TIMEOUT')) return 'BackendTimeout';
  return code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED' ? 'BadRequest' : 'BackendFailed';
}

/** The head of an answer. */
function writeHead(
  response: ClientResponse,
  status: number,
  headers: Record<string, string | string[]>,
): void {
  if (response instanceof Http2ServerResponse) response.writeHead(status, headers);
  else response.writeHead(status, headers);
}

/** An answer of the router itself. */
export function answerItself(
  response: ClientResponse,
  status: number,
  reason: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent || response.destroyed) return;
  writeHead(response, status, { 'content-type': 'text/plain; charset=utf-8', ...headers });
  response.end(`${status} ${reason}\n`);
}
