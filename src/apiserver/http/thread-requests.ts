import type { IncomingHttpHeaders } from 'node:http';
import { Socket } from 'node:net';
import { Readable, Writable } from 'node:stream';
import type { MessagePort } from 'node:worker_threads';
import type { ClientMessage, RequestMessage, ServerMessage } from '../../objects/thread-messages.ts';
import type { IncomingRequest } from './exchange.ts';
import type { OutgoingAnswer } from './long-body.ts';

/** A request that came as a message. */
class ThreadRequest extends Readable implements IncomingRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders = {};
  readonly rawHeaders: string[];
  readonly socket: Socket;
  readonly complete = true;

  constructor({ method, url, headers, body }: RequestMessage, socket: Socket) {
    super();
    this.method = method;
    this.url = url;
    this.socket = socket;
    this.rawHeaders = [...headers];
    for (let i = 0; i < headers.length; i += 2) this.headers[headers[i] ?? ''] = headers[i + 1];
    if (body !== null) this.push(body);
    this.push(null);
  }

  override _read(): void {
    // All of it is there.
  }
}

/** An answer that is sent as a message once it is whole. */
class ThreadAnswer extends Writable implements OutgoingAnswer {
  statusCode = 200;
  shouldKeepAlive = true;
  #headers: readonly string[] = [];
  readonly #chunks: (Buffer | string)[] = [];
  readonly #id: number;
  readonly #send: (message: ServerMessage) => void;

  constructor(id: number, send: (message: ServerMessage) => void) {
    super({ decodeStrings: false });
    this.#id = id;
    this.#send = send;
  }

  writeHead(status: number, headers: readonly string[]): void {
    this.statusCode = status;
    this.#headers = headers.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text));
  }

  /** Nothing to do: the head is sent with the body. */
  flushHeaders(): void {
    // See above.
  }

  override _write(chunk: Buffer | string, _encoding: BufferEncoding, done: () => void): void {
    // A copy: the writer uses its buffer again.
    if (chunk.length > 0) this.#chunks.push(typeof chunk === 'string' ? chunk : Buffer.from(chunk));
    done();
  }

  override _final(done: () => void): void {
    this.#send({
      ...{ kind: 'answer', id: this.#id, status: this.statusCode, headers: this.#headers },
      body: joined(this.#chunks),
    });
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.writableFinished) this.#send({ kind: 'cut', id: this.#id });
    done(error);
  }
}

function joined(chunks: readonly (Buffer | string)[]): string | ArrayBuffer {
  const texts = chunks.filter((chunk) => typeof chunk === 'string');
  if (texts.length === chunks.length) return texts.join('');
  const bytes = chunks.map((chunk) => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk));
  // A copy: of a view, a message would have the whole buffer behind it.
  return new Uint8Array(Buffer.concat(bytes)).buffer;
}

/**
 * Serves the requests that another thread of this process sends as messages. They are served as those of connections are:
 * a token says whose they are, and the same limits and rights apply. For requests that are answered whole: a watch would
 * never be sent.
 *
 * @param serve is called for each request.
 */
export function serveThread(
  port: MessagePort,
  serve: (request: IncomingRequest, answer: OutgoingAnswer) => void,
): void {
  // Stands for the connection that they share; no certificate comes with it.
  const socket = new Socket();
  const open = new Map<number, ThreadAnswer>();
  const send = (message: ServerMessage): void => port.postMessage(message);
  port.on('message', (message: ClientMessage) => {
    const { id } = message;
    if (message.kind === 'abort') {
      open.get(id)?.destroy();
      return;
    }
    const answer = new ThreadAnswer(id, send);
    open.set(id, answer);
    answer.once('close', () => open.delete(id));
    serve(new ThreadRequest(message, socket), answer);
  });
  port.once('close', () => {
    for (const answer of open.values()) answer.destroy();
    socket.destroy();
  });
}
