import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { Duplex, Readable, Writable } from 'node:stream';

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

/** A method, and the name of a field (RFC 9110, 5.6.2). */
export const token = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/;
/** The value of a field (RFC 9110, 5.5). */
export const fieldContent = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Bytes of the head of a request or an answer. */
export const maxHeadBytes = 16 * 1024;

/** What both protocols share: the body on its way, what is said when, and that it is said once. */
export class Exchange {
  readonly request: BackendRequest;
  readonly handler: AnswerHandler;
  readonly onOver: () => void;
  isOver = false;
  isBodyBegun = false;
  /** Whether the client has the backend's `100 Continue`. */
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

  /**
   * Sends the body as fast as it is taken, and ends the request.
   *
   * @param to says when there is room again.
   * @param write returns whether there is room.
   */
  sendBody(
    to: Writable,
    write: (chunk: Buffer) => boolean,
    end: (rawTrailers: readonly string[]) => void,
  ): void {
    const { body, copies = [] } = this.request;
    if (body === undefined) {
      end([]);
      return;
    }
    this.isBodyBegun = true;
    const take = (chunk: Buffer): void => {
      for (const copy of copies) copy.write(chunk);
      if (!write(chunk)) body.pause();
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
    // One that was not asked for is no news for the client (RFC 9110, 15.2).
    if (head.status === 100 && (!this.request.expectsContinue || this.isContinued)) return;
    if (head.status === 100) this.isContinued = true;
    this.handler.onInformation(head);
  }
}
