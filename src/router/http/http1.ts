import type { Socket } from 'node:net';
import { trailers } from '../headers.ts';
import { type AnswerEnd, type AnswerPart, AnswerReader } from './answer-reader.ts';
import {
  type AnswerHandler,
  type AnswerHead,
  BadAnswerError,
  type BackendExchange,
  type BackendRequest,
  Exchange,
  fieldContent,
  SilentBackendError,
  token,
} from './exchange.ts';

/** Milliseconds that a connection waits for its next request: less than servers have, so that none ends under a request. */
const keptMs = 4000;
/** Connections to a target that wait for requests; more are closed. */
const maxKept = 256;

/**
 * The connections of HTTP/1.1 to one target, one request on each at a time. They are kept open between requests; the one
 * that was used last comes first.
 *
 * `node:http` has a client too: with it, a request takes half as much CPU again (docs/performance.md).
 */
export class Http1Connections {
  readonly #open: () => Promise<Socket>;
  /** Those that wait for a request, the last used at the end. */
  readonly #kept: Connection[] = [];
  readonly #all = new Set<Connection>();
  #isDestroyed = false;

  /** @param open connects to the target. */
  constructor(open: () => Promise<Socket>) {
    this.#open = open;
  }

  /**
   * Sends a request. What happens is said to the handler, never before this returns.
   *
   * @param onOver is called when nothing more is said.
   * @throws {TypeError} for what cannot be written, such as a blank in the path.
   */
  send(request: BackendRequest, handler: AnswerHandler, onOver: () => void): BackendExchange {
    const exchange = new Exchange(request, handler, onOver);
    const outgoing: Outgoing = { exchange, head: headOf(request), framing: framingOf(request) };
    let connection: Connection | undefined;
    const begin = (on: Connection): void => {
      connection = on;
      on.begin(outgoing);
    };
    process.nextTick(() => {
      if (exchange.isOver) return;
      const kept = this.#takeKept();
      if (kept !== undefined) {
        begin(kept);
        return;
      }
      this.#open().then(
        (socket) => {
          const opened = this.#added(socket);
          if (exchange.isOver) this.#keep(opened, keptMs);
          else begin(opened);
        },
        (error: unknown) => exchange.fail(error instanceof Error ? error : new Error(String(error))),
      );
    });
    return {
      // Later the connection may be another request's.
      resume: () => (exchange.isOver ? undefined : connection?.socket.resume()),
      abort: () => {
        if (exchange.over()) connection?.socket.destroy();
      },
      get isBodyBegun() {
        return exchange.isBodyBegun;
      },
    };
  }

  /** Cuts all of them. */
  destroy(): void {
    this.#isDestroyed = true;
    for (const { socket } of this.#all) socket.destroy();
  }

  #added(socket: Socket): Connection {
    const connection = new Connection(socket, (milliseconds) => this.#keep(connection, milliseconds));
    this.#all.add(connection);
    socket.once('close', () => {
      this.#all.delete(connection);
      const place = this.#kept.indexOf(connection);
      if (place !== -1) this.#kept.splice(place, 1);
    });
    return connection;
  }

  #takeKept(): Connection | undefined {
    for (;;) {
      const connection = this.#kept.pop();
      if (connection === undefined || connection.isOpen) return connection;
    }
  }

  #keep(connection: Connection, milliseconds: number): void {
    if (this.#isDestroyed || this.#kept.length >= maxKept || milliseconds === 0) connection.socket.destroy();
    else {
      connection.socket.setTimeout(Math.min(keptMs, milliseconds));
      this.#kept.push(connection);
    }
  }
}

/** How the body of a request is written: so many bytes, or in chunks. */
type BodyFraming = number | 'chunks';

/** A request as it is written. */
interface Outgoing {
  readonly exchange: Exchange;
  readonly head: string;
  readonly framing: BodyFraming;
}

/** One connection, with or without a request. */
class Connection {
  readonly socket: Socket;
  readonly #free: (keptMs: number) => void;
  #exchange: Exchange | undefined;
  #reader = new AnswerReader('GET');
  /** Whether all of the request is written. */
  #isSent = false;

  /** @param free is called behind an answer, with how long the backend keeps the connection; 0: not at all. */
  constructor(socket: Socket, free: (keptMs: number) => void) {
    this.socket = socket;
    this.#free = free;
    socket.on('data', this.#onData).on('end', this.#onEnd).on('timeout', this.#onTimeout);
    socket.on('error', this.#onError).on('close', this.#onClose);
  }

  get isOpen(): boolean {
    return this.socket.writable && this.socket.readable;
  }

  begin({ exchange, head, framing }: Outgoing): void {
    const { socket } = this;
    const { request, handler } = exchange;
    this.#exchange = exchange;
    this.#reader = new AnswerReader(request.method);
    this.#isSent = false;
    socket.setTimeout(request.timeoutMs);
    handler.onSent();
    if (exchange.isOver) return;
    socket.write(head, 'latin1');
    let left = framing === 'chunks' ? 0 : framing;
    const write = (chunk: Buffer): boolean => {
      if (framing === 'chunks') return writeChunk(socket, chunk);
      left -= chunk.length;
      // Bytes behind the length would be the backend's next request.
      if (left >= 0) return socket.write(chunk);
      this.#fail(new Error('the body of the request is longer than it says'));
      return false;
    };
    exchange.sendBody(socket, write, (rawTrailers) => {
      if (left > 0) this.#fail(new Error('the body of the request is shorter than it says'));
      if (left !== 0) return;
      try {
        if (framing === 'chunks') socket.write(`0\r\n${linesOf(trailers(rawTrailers))}\r\n`, 'latin1');
        this.#isSent = true;
      } catch (error) {
        this.#fail(error instanceof Error ? error : new Error(String(error)));
      }
    });
  }

  #fail(error: Error): void {
    this.socket.destroy();
    this.#exchange?.fail(error);
  }

  readonly #onData = (chunk: Buffer): void => {
    const exchange = this.#exchange;
    if (exchange === undefined || exchange.isOver) {
      // It answers no request: what would come next is in doubt.
      this.socket.destroy();
      return;
    }
    try {
      // All of it is read before the client gets any: an answer that breaks behind its head is none.
      for (const part of this.#reader.read(chunk)) this.#pass(part, exchange);
    } catch (error) {
      if (!(error instanceof BadAnswerError)) throw error;
      this.#fail(error);
    }
  };

  readonly #onEnd = (): void => {
    const exchange = this.#exchange;
    if (exchange === undefined || exchange.isOver) return;
    if (!this.#reader.hasBegun) {
      this.#fail(Object.assign(new Error('the backend ended the connection'), { code: 'ECONNRESET' }));
      return;
    }
    try {
      this.#answered(this.#reader.end());
    } catch (error) {
      if (!(error instanceof BadAnswerError)) throw error;
      this.#fail(error);
    }
  };

  readonly #onTimeout = (): void => {
    const { socket } = this;
    const exchange = this.#exchange;
    if (exchange === undefined) {
      socket.destroy();
      return;
    }
    const isPaused = socket.isPaused();
    if (!isPaused && !exchange.waitsForClient(socket)) this.#fail(new SilentBackendError());
    else socket.setTimeout(exchange.request.timeoutMs);
  };

  readonly #onError = (error: Error): void => {
    this.#exchange?.fail(error);
  };

  readonly #onClose = (): void => {
    this.#exchange?.fail(new BadAnswerError('the answer is cut'));
  };

  #pass(part: AnswerPart, exchange: Exchange): void {
    if (exchange.isOver) return;
    switch (part.kind) {
      case 'information':
        exchange.inform(part.head);
        break;
      case 'head':
        exchange.handler.onHead(part.head);
        break;
      case 'data':
        if (!exchange.handler.onData(part.chunk)) this.socket.pause();
        break;
      case 'end':
        this.#answered(part);
        break;
      case 'upgrade':
        this.#upgraded(exchange, part.head, part.first);
        break;
    }
  }

  #answered({ rawTrailers, keptMs: milliseconds }: AnswerEnd): void {
    const exchange = this.#exchange;
    this.#exchange = undefined;
    if (exchange?.over() !== true) return;
    // An answer before the end of the request: the connection is of no further use.
    if (this.#isSent && this.isOpen) {
      this.socket.resume();
      this.#free(milliseconds);
    } else this.socket.destroy();
    exchange.handler.onEnd(rawTrailers);
  }

  #upgraded(exchange: Exchange, head: AnswerHead, first: Buffer): void {
    const { socket } = this;
    const asked = exchange.request.upgrade?.toLowerCase();
    const place = head.rawHeaders.findIndex((text, i) => i % 2 === 0 && text.toLowerCase() === 'upgrade');
    if (asked === undefined || head.rawHeaders[place + 1]?.toLowerCase() !== asked) {
      throw new BadAnswerError('the backend changes to a protocol that was not asked for');
    }
    socket.off('data', this.#onData).off('end', this.#onEnd).off('timeout', this.#onTimeout);
    socket.pause().setTimeout(0);
    this.#exchange = undefined;
    if (exchange.over()) exchange.handler.onUpgrade(head, socket, first);
    else socket.destroy();
  }
}

function writeChunk(socket: Socket, chunk: Buffer): boolean {
  // A chunk of no bytes would be the last one.
  if (chunk.length === 0) return true;
  socket.cork();
  socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1');
  socket.write(chunk);
  const hasRoom = socket.write('\r\n', 'latin1');
  socket.uncork();
  return hasRoom;
}

/** @throws {TypeError} for what cannot be written. */
function headOf({ method, path, headers, upgrade }: BackendRequest): string {
  if (!token.test(method)) throw new TypeError('the method is none of HTTP');
  if (!target.test(path)) throw new TypeError('the path has a character that HTTP/1.1 does not take');
  let head = `${method} ${path} HTTP/1.1\r\n`;
  for (let i = 0; i + 1 < headers.length; i += 2) head += lineOf(headers[i] ?? '', headers[i + 1] ?? '');
  // Servers of HTTP/1.0 need it.
  return upgrade === undefined ? `${head}Connection: keep-alive\r\n\r\n` : `${head}\r\n`;
}

/** @throws {TypeError} where two readers could disagree about the length. */
function framingOf({ headers, body }: BackendRequest): BodyFraming {
  let length: string | undefined;
  let isChunked = false;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i]?.toLowerCase();
    if (name === 'transfer-encoding') isChunked = true;
    if (name !== 'content-length') continue;
    const value = headers[i + 1] ?? '';
    if (!/^\d{1,15}$/.test(value) || (length !== undefined && length !== value)) {
      throw new TypeError('the length of the body is in doubt');
    }
    length = value;
  }
  if (isChunked !== (body !== undefined && length === undefined))
    throw new TypeError('the body has no length');
  return isChunked ? 'chunks' : Number(length ?? 0);
}

/** As Node.js: what is no blank and no control character. */
const target = /^[\x21-\xff]+$/;

/** @throws {TypeError} for what would end the line, or is no name. */
function lineOf(name: string, value: string): string {
  if (!token.test(name)) throw new TypeError(`${JSON.stringify(name)} is no name of a header`);
  if (!fieldContent.test(value))
    throw new TypeError(`the header ${name} has a character that HTTP does not take`);
  return `${name}: ${value}\r\n`;
}

function linesOf(fields: Readonly<Record<string, string | string[]>>): string {
  let lines = '';
  for (const [name, values] of Object.entries(fields)) {
    for (const value of [values].flat()) lines += lineOf(name, value);
  }
  return lines;
}
