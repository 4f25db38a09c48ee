import type { Agent, IncomingMessage } from 'node:http';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type Http2ServerRequest,
} from 'node:http2';
import type { Duplex, Readable, Writable } from 'node:stream';
import { request as requestHttp } from '../host/node-http.ts';
import { trailers } from './headers.ts';

/** A client's request over HTTP/1.1 or HTTP/2. */
export type ClientRequest = IncomingMessage | Http2ServerRequest;

/** The body of a request. */
export type RequestBody = Readable & { readonly rawTrailers?: readonly string[] };

/** Gets a body piece by piece. */
export interface BodyCopy {
  write(chunk: Buffer): void;
  /** @param isWhole false: the rest does not come. */
  end(isWhole: boolean): void;
}

/** A request as a backend gets it. */
export interface BackendRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Names and values in turn, with Host. */
  readonly headers: readonly string[];
  /** Where the body comes from; nothing is taken before the connection is there. Undefined: no body. */
  readonly body: RequestBody | undefined;
  /** What else gets the body, as it goes to the backend. */
  readonly copies?: readonly BodyCopy[];
  /** Whether the client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean;
  /** The protocol that the connection is to change to. */
  readonly upgrade: string | undefined;
  /** Milliseconds that the backend may be silent. */
  readonly timeoutMs: number;
}

/** The first lines of an answer. */
export interface AnswerHead {
  /** 101 to 599. */
  readonly status: number;
  /** "" for HTTP/2. */
  readonly reason: string;
  /** Names and values in turn. */
  readonly rawHeaders: readonly string[];
  /** Whether nothing follows it, not even the end: of HTTP/2. */
  readonly isWhole?: boolean;
}

/** Gets an answer, piece by piece. After `onEnd`, `onUpgrade` or `onError` nothing comes. */
export interface AnswerHandler {
  /** The connection is there: from now on the backend may have a part of the request. */
  onSent(): void;
  /** An answer before the answer: 100 if it was asked for, 102 to 199. */
  onInformation(head: AnswerHead): void;
  onHead(head: AnswerHead): void;
  /** @returns whether there is room; otherwise nothing comes before `resume`. */
  onData(chunk: Buffer): boolean;
  /** @param rawTrailers names and values in turn. */
  onEnd(rawTrailers: readonly string[]): void;
  /** The backend changes the protocol. @param first bytes that it sent already. */
  onUpgrade(head: AnswerHead, socket: Duplex, first: Buffer): void;
  onError(error: Error): void;
}

/** A request that runs. */
export interface BackendExchange {
  resume(): void;
  /** Cuts it; nothing is reported any more. */
  abort(): void;
  /** Whether any of the client's body was asked for: it cannot be sent to another backend. */
  readonly isBodyBegun: boolean;
}

/** An answer that breaks the rules of HTTP. */
export class BadAnswerError extends Error {
  override readonly name = 'BadAnswerError';
}

/** The backend was silent for too long. */
export class SilentBackendError extends Error {
  override readonly name = 'TimeoutError';
  override readonly message = 'the backend is silent';
}

/** Bytes of the head of a request or an answer. */
export const maxHeadBytes = 16 * 1024;

/** What both protocols share: the body on its way, what is said when, and that it is said once. */
class Exchange {
  readonly request: BackendRequest;
  readonly handler: AnswerHandler;
  readonly onOver: () => void;
  isOver = false;
  isBodyBegun = false;
  /** Whether the backend has told the client to go on. */
  isContinued = false;
  readonly #ends: (() => void)[] = [];

  constructor(request: BackendRequest, handler: AnswerHandler, onOver: () => void) {
    this.request = request;
    this.handler = handler;
    this.onOver = onOver;
  }

  /** @returns whether it was running. */
  over(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    for (const end of this.#ends) end();
    this.onOver();
    return true;
  }

  /** Calls a function when all is over. */
  atEnd(end: () => void): void {
    this.#ends.push(end);
  }

  fail(error: Error): void {
    if (this.over()) this.handler.onError(error);
  }

  /** Sends the body as fast as it is taken, and ends the request. */
  sendBody(to: Writable, end: (rawTrailers: readonly string[]) => void): void {
    const { body, copies = [] } = this.request;
    if (body === undefined) {
      end([]);
      return;
    }
    this.isBodyBegun = true;
    const take = (chunk: Buffer): void => {
      for (const copy of copies) copy.write(chunk);
      if (!to.write(chunk)) body.pause();
    };
    const resume = (): void => void body.resume();
    const ended = (): void => {
      for (const copy of copies) copy.end(true);
      end(body.rawTrailers ?? []);
    };
    // The end of the client's connection is seen by its answer.
    const ignored = (): void => undefined;
    body.on('data', take).on('end', ended).on('error', ignored);
    to.on('drain', resume);
    this.atEnd(() => {
      body.off('data', take).off('end', ended);
      to.off('drain', resume);
      if (!body.readableEnded) for (const copy of copies) copy.end(false);
      // What comes after the answer is dropped: the next request of the connection is behind it.
      body.resume();
    });
  }

  /** Whether a silent backend waits for the client, which has a limit of its own. */
  waitsForClient(to: Writable): boolean {
    const { body, expectsContinue } = this.request;
    if (expectsContinue && !this.isContinued) return false;
    return body !== undefined && !body.readableEnded && !to.writableNeedDrain;
  }

  inform(head: AnswerHead): void {
    if (this.isOver || head.status === 101) return;
    // One that nobody asked for is no news for the client (RFC 9110, 15.2).
    if (head.status === 100 && (!this.request.expectsContinue || this.isContinued)) return;
    if (head.status === 100) this.isContinued = true;
    this.handler.onInformation(head);
  }
}

/** Sends a request over HTTP/1.1, by a connection of the agent. */
export function sendHttp1(
  agent: Agent,
  request: BackendRequest,
  handler: AnswerHandler,
  onOver: () => void,
): BackendExchange {
  const exchange = new Exchange(request, handler, onOver);
  const { method, path, headers, timeoutMs, body, upgrade } = request;
  const outgoing = requestHttp({
    ...{ agent, method, path, headers, setHost: false, timeout: timeoutMs },
    ...{ maxHeaderSize: maxHeadBytes, insecureHTTPParser: false },
  });
  let answer: IncomingMessage | undefined;
  const fail = (error: Error): void => {
    exchange.fail(error);
    outgoing.destroy();
  };
  outgoing.on('error', fail);
  outgoing.on('socket', (socket) => {
    if (exchange.isOver) return;
    const silent = (): void => {
      if (answer?.isPaused() !== true && !exchange.waitsForClient(outgoing)) fail(new SilentBackendError());
      else socket.setTimeout(timeoutMs);
    };
    socket.on('timeout', silent);
    exchange.atEnd(() => socket.off('timeout', silent));
    handler.onSent();
    if (body !== undefined) outgoing.flushHeaders();
    exchange.sendBody(outgoing, (rawTrailers) => {
      // Written where the body is in chunks.
      outgoing.addTrailers(trailers(rawTrailers));
      outgoing.end();
    });
  });
  outgoing.on('information', ({ statusCode, statusMessage, rawHeaders }) => {
    exchange.inform({ status: statusCode, reason: statusMessage, rawHeaders });
  });
  outgoing.on('upgrade', (response: IncomingMessage, socket: Duplex, first: Buffer) => {
    const isAsked =
      upgrade !== undefined && response.headers.upgrade?.toLowerCase() === upgrade.toLowerCase();
    if (exchange.isOver || !isAsked) {
      socket.on('error', () => undefined);
      socket.destroy();
      fail(new BadAnswerError('the backend changes to a protocol that was not asked for'));
      return;
    }
    exchange.over();
    handler.onUpgrade(headOf(response), socket, first);
  });
  outgoing.on('response', (response) => {
    response.on('error', fail);
    const problem = problemOf(response);
    if (problem !== undefined) {
      fail(new BadAnswerError(problem));
      return;
    }
    // First what came with the head is parsed to its end: of an answer that breaks there, the client gets nothing.
    process.nextTick(() => {
      if (exchange.isOver) return;
      answer = response;
      handler.onHead(headOf(response));
      response.on('data', (chunk: Buffer) => {
        if (!exchange.isOver && !handler.onData(chunk)) response.pause();
      });
      response.on('end', () => {
        if (!response.complete) fail(new BadAnswerError('the answer is cut'));
        else if (exchange.over()) {
          // An answer before the end of the request: the connection is of no further use.
          if (!outgoing.writableFinished) outgoing.destroy();
          handler.onEnd(response.rawTrailers);
        }
      });
      response.on('close', () => {
        // It closes behind each answer; an error with its stack costs more than all that.
        if (!exchange.isOver) fail(new BadAnswerError('the answer is cut'));
      });
    });
  });
  return {
    resume: () => void answer?.resume(),
    abort: () => {
      exchange.over();
      outgoing.destroy();
    },
    get isBodyBegun() {
      return exchange.isBodyBegun;
    },
  };
}

/** Sends a request over HTTP/2, as a stream of a session. */
export function sendHttp2(
  session: Promise<ClientHttp2Session>,
  request: BackendRequest,
  handler: AnswerHandler,
  onOver: () => void,
): BackendExchange {
  const exchange = new Exchange(request, handler, onOver);
  let stream: ClientHttp2Stream | undefined;
  session.then(
    (opened) => {
      if (exchange.isOver) return;
      try {
        stream = opened.request(http2Headers(request, opened.encrypted === true), {
          endStream: request.body === undefined,
        });
      } catch (error) {
        exchange.fail(error instanceof Error ? error : new Error(String(error)));
        return;
      }
      handler.onSent();
      follow(stream, exchange);
    },
    (error: unknown) => exchange.fail(error instanceof Error ? error : new Error(String(error))),
  );
  return {
    resume: () => void stream?.resume(),
    abort: () => {
      exchange.over();
      stream?.close(cancelCode);
    },
    get isBodyBegun() {
      return exchange.isBodyBegun;
    },
  };
}

/** HTTP/2's CANCEL. */
const cancelCode = 8;

function follow(stream: ClientHttp2Stream, exchange: Exchange): void {
  const { handler, request } = exchange;
  let rawTrailers: readonly string[] = [];
  const fail = (error: Error): void => {
    exchange.fail(error);
    stream.close(cancelCode);
  };
  stream.on('error', fail);
  stream.on('close', () => {
    if (!exchange.isOver) fail(new BadAnswerError('the stream has ended without an answer'));
  });
  stream.setTimeout(request.timeoutMs);
  stream.on('timeout', () => {
    if (!stream.isPaused() && !exchange.waitsForClient(stream)) fail(new SilentBackendError());
    else stream.setTimeout(request.timeoutMs);
  });
  if (request.body !== undefined) exchange.sendBody(stream, () => stream.end());
  stream.on('headers', (headers, _flags, rawHeaders) => {
    exchange.inform({ status: Number(headers[':status']), reason: '', rawHeaders });
  });
  stream.on('response', (headers, flags, rawHeaders) => {
    const status = Number(headers[':status']);
    const isWhole = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    if (status < 200 || status > 599) fail(new BadAnswerError(`the status ${status} is none`));
    else if (!exchange.isOver) handler.onHead({ status, reason: '', rawHeaders, isWhole });
  });
  stream.on('trailers', (_headers: object, _flags: number, raw: string[]) => {
    rawTrailers = raw;
  });
  stream.on('data', (chunk: Buffer) => {
    if (!exchange.isOver && !handler.onData(chunk)) stream.pause();
  });
  stream.on('end', () => {
    if (stream.rstCode !== 0 || stream.aborted) fail(new BadAnswerError('the answer is cut'));
    else if (exchange.over()) {
      if (!stream.writableFinished) stream.close();
      handler.onEnd(rawTrailers);
    }
  });
}

/** Of HTTP/1.1: why an answer breaks the rules. The length of one with another coding is not known (RFC 9112, 6.3). */
function problemOf({ statusCode = 0, headers }: IncomingMessage): string | undefined {
  if (statusCode < 200 || statusCode > 599) return `the status ${statusCode} is none`;
  const coding = headers['transfer-encoding'];
  if (coding === undefined || coding.toLowerCase() === 'chunked') return undefined;
  return `the transfer coding ${coding} is not supported`;
}

function headOf({ statusCode = 0, statusMessage = '', rawHeaders }: IncomingMessage): AnswerHead {
  return { status: statusCode, reason: statusMessage, rawHeaders };
}

function http2Headers(
  { method, path, headers }: BackendRequest,
  isSecure: boolean,
): Record<string, string | string[]> {
  const kept = new Map<string, string[]>();
  let authority = '';
  for (const [name, value] of entries(headers)) {
    const lower = name.toLowerCase();
    if (lower === 'host') authority = value;
    else if (lower !== 'transfer-encoding') kept.set(lower, [...(kept.get(lower) ?? []), value]);
  }
  return {
    ...Object.fromEntries(kept),
    // Some servers of gRPC ask for it.
    ...{ te: 'trailers', ':method': method, ':path': path },
    ...{ ':scheme': isSecure ? 'https' : 'http', ':authority': authority },
  };
}

function entries(raw: readonly string[]): [string, string][] {
  const all: [string, string][] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) all.push([raw[i] ?? '', raw[i + 1] ?? '']);
  return all;
}
