import type { MessagePort } from 'node:worker_threads';
import type { AnswerMessage, RequestMessage, ServerMessage } from '../objects/thread-messages.ts';
import {
  type DispatcherFactory,
  type HttpAnswer,
  type HttpRequest,
  type HttpRequests,
  sharedConnections,
} from './dispatchers.ts';

interface Waiting {
  readonly message: RequestMessage;
  readonly answer: (message: AnswerMessage) => void;
  readonly fail: (code: string, text: string) => void;
}

/**
 * Requests to a server in another thread of this process, as messages; watches by connections.
 *
 * @param host of the server's URL.
 * @param limit of requests in flight.
 */
export function threadDispatchers(
  port: MessagePort,
  host: string,
  watches: DispatcherFactory,
  limit = sharedConnections,
): DispatcherFactory {
  const requests = new ThreadRequests(port, host, limit);
  return (tls, use) => (use === 'requests' ? requests : watches(tls, use));
}

class ThreadRequests implements HttpRequests {
  readonly #port: MessagePort;
  readonly #host: string;
  /** In flight at once. */
  readonly #limit: number;
  readonly #inFlight = new Map<number, Waiting>();
  /** In the order of their sending. */
  readonly #queue = new Map<number, Waiting>();
  #lastId = 0;
  #isClosed = false;

  constructor(port: MessagePort, host: string, limit: number) {
    this.#port = port;
    this.#host = host;
    this.#limit = limit;
    port.on('message', (message: ServerMessage) => this.#answered(message));
    port.once('close', () => this.#end());
  }

  async request({ method, path, headers, body, signal }: HttpRequest): Promise<HttpAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
    const id = ++this.#lastId;
    const fail = (code: string, text: string): void => reject(Object.assign(new Error(text), { code }));
    if (this.#isClosed) fail('UND_ERR_CLOSED', 'the way to the server is closed');
    else if (signal.aborted) fail('UND_ERR_ABORTED', 'stopped');
    else {
      const list = ['host', this.#host];
      for (const [name, value] of Object.entries(headers)) list.push(name.toLowerCase(), value);
      this.#queue.set(id, {
        message: { kind: 'request', id, method, url: path, headers: list, body },
        answer: (message) => resolve(answerOf(message)),
        fail,
      });
      this.#sendNext();
    }
    const abort = (): void => this.#abort(id);
    signal.addEventListener('abort', abort, { once: true });
    try {
      return await promise;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  destroy(): Promise<void> {
    this.#port.close();
    this.#end();
    return Promise.resolve();
  }

  #sendNext(): void {
    for (const [id, waiting] of this.#queue) {
      if (this.#inFlight.size >= this.#limit) return;
      this.#queue.delete(id);
      this.#inFlight.set(id, waiting);
      this.#port.postMessage(waiting.message);
    }
  }

  #answered(message: ServerMessage): void {
    const waiting = this.#inFlight.get(message.id);
    this.#inFlight.delete(message.id);
    this.#sendNext();
    if (message.kind === 'answer') waiting?.answer(message);
    else waiting?.fail('UND_ERR_SOCKET', 'the server cut off its answer');
  }

  #abort(id: number): void {
    const queued = this.#queue.get(id);
    this.#queue.delete(id);
    // It counts as in flight until the server has said that it is over.
    const sent = this.#inFlight.get(id);
    if (sent !== undefined) this.#port.postMessage({ kind: 'abort', id });
    (queued ?? sent)?.fail('UND_ERR_ABORTED', 'stopped');
  }

  #end(): void {
    this.#isClosed = true;
    const left = [...this.#inFlight.values(), ...this.#queue.values()];
    this.#inFlight.clear();
    this.#queue.clear();
    for (const { fail } of left) fail('UND_ERR_CLOSED', 'the way to the server was closed');
  }
}

function answerOf({ status, headers, body }: AnswerMessage): HttpAnswer {
  const named: Record<string, string | string[]> = {};
  for (let i = 0; i < headers.length; i += 2) {
    const [name = '', value = ''] = [headers[i], headers[i + 1]];
    const before = named[name];
    named[name] = before === undefined ? value : [before, value].flat();
  }
  const bytes = typeof body === 'string' ? encoder.encode(body).buffer : body;
  return {
    statusCode: status,
    headers: named,
    body: {
      arrayBuffer: () => Promise.resolve(bytes),
      dump: () => Promise.resolve(),
      async *[Symbol.asyncIterator]() {
        yield await Promise.resolve(Buffer.from(bytes));
      },
    },
  };
}

const encoder = new TextEncoder();
