import { createSecureContext } from 'node:tls';
import {
  Agent,
  buildConnector,
  type Dispatcher,
  EnvHttpProxyAgent,
  ProxyAgent,
  Socks5ProxyAgent,
} from 'undici';
import { PeerTrust } from '../tls/peer-trust.ts';
import type { Credentials, ProxySetting } from './credentials/identity.ts';
import type { ResponseHeaders } from './transport.ts';
import type { MessagePort } from 'node:worker_threads';
import type { AnswerMessage, RequestMessage, ServerMessage } from '../objects/thread-messages.ts';

/**
 * Use of a connection pool: requests share a few connections and their answers are read whole; each watch has its own.
 */
type PoolUse = 'requests' | 'watches';

/** A request as {@link HttpRequests} take it. */
export interface HttpRequest {
  readonly origin: string;
  /** With the query. */
  readonly path: string;
  readonly method: Dispatcher.HttpMethod;
  readonly headers: Record<string, string>;
  readonly body: string | null;
  readonly signal: AbortSignal;
  readonly reset: boolean;
  readonly headersTimeout: number;
  readonly bodyTimeout: number;
}

/** An answer, whose body is taken once. */
export interface HttpAnswer {
  readonly statusCode: number;
  readonly headers: ResponseHeaders;
  readonly body: AsyncIterable<unknown> & {
    arrayBuffer(): Promise<ArrayBuffer>;
    dump(): Promise<unknown>;
  };
}

/** What sends requests: undici's pools of connections, or a port to another thread. */
export interface HttpRequests {
  request(request: HttpRequest): Promise<HttpAnswer>;
  /** Ends requests that are running. */
  destroy(): Promise<void>;
}

/** Creates connection pools. */
export type DispatcherFactory = (tls: Credentials['tls'], use: PoolUse) => HttpRequests;

/** Connections shared by requests, unless the source sets a number. */
const sharedConnections = 32;
/** Limit of one answer in bytes: a page of a list has a few MB, a list without paging a few hundred. */
const largestAnswer = 512 * 1024 * 1024;
/** client-go: 30 s to connect and 10 s for the TLS handshake. */
const connectTimeoutMs = 40_000;
/** undici's value for no limit: the bytes of a watch are limited per event (`watch-decoder.ts`). */
const unlimited = -1;

/** How to reach a server: directly or through a proxy. `connections`: how many all requests share. */
export function dispatchers(
  proxy: ProxySetting | undefined,
  connections = sharedConnections,
): DispatcherFactory {
  if (proxy === undefined) return (tls, use) => direct(tls, use, connections);
  return (tls, use) => {
    const { connect: requestTls, ...pool } = settings(tls, use, connections);
    if (proxy.kind === 'environment')
      return new EnvHttpProxyAgent({ ...pool, connect: requestTls, requestTls });
    if (proxy.uri.startsWith('socks')) return new Socks5ProxyAgent(proxy.uri, { ...pool, requestTls });
    return new ProxyAgent({ ...pool, connect: requestTls, uri: proxy.uri, requestTls });
  };
}

/** How to reach a server at a Unix socket, without TLS. */
export function socketDispatchers(socketPath: string, connections = sharedConnections): DispatcherFactory {
  const connect = buildConnector({ socketPath, timeout: connectTimeoutMs });
  return (_, use) =>
    new Agent({
      ...poolSettings(use, connections),
      // By the protocol of the URL, undici would begin with TLS.
      connect: (options, callback) => connect({ ...options, protocol: 'http:' }, callback),
    });
}

/** Connections without a proxy trust as Go does, whatever the names of the certificates are. */
function direct(tls: Credentials['tls'], use: PoolUse, shared: number): Dispatcher {
  const { connect, ...pool } = settings(tls, use, shared);
  if (tls.rejectUnauthorized === false) return new Agent({ ...pool, connect });
  const trust = trustOf(tls);
  const verified = trust.connector(
    buildConnector({ ...connect, ...trust.options, ...{ allowH2: false, maxCachedSessions: 0 } }),
    Date.now,
  );
  const { servername } = tls;
  return new Agent({
    ...pool,
    connect: (options, callback) =>
      verified(servername === undefined ? options : { ...options, servername }, callback),
  });
}

/** @throws {Error} where a bundle has no certificate. */
function trustOf({ ca }: Credentials['tls']): PeerTrust {
  return new PeerTrust([ca ?? []].flat().map(String).join('\n'));
}

function settings(tls: Credentials['tls'], use: PoolUse, shared: number) {
  const verified = tls.rejectUnauthorized === false ? tls : { ...tls, ...trustOf(tls).strictOptions };
  // One secure context for all connections: each would parse the certificates again and keep 20 KiB of them.
  const secureContext = createSecureContext(verified);
  const connect = {
    ...verified,
    secureContext,
    timeout: connectTimeoutMs,
    keepAlive: true,
    // 30 s: below the idle limits of cloud load balancers, as client-go's dialer.
    keepAliveInitialDelay: 30_000,
  };
  return { connect, ...poolSettings(use, shared) };
}

function poolSettings(use: PoolUse, shared: number) {
  const isShared = use === 'requests';
  return {
    connections: isShared ? shared : null,
    pipelining: 1,
    // Watches that share a connection would hold each other up, and undici's sessions end with errors that have no listener.
    allowH2: false,
    maxResponseSize: isShared ? largestAnswer : unlimited,
  };
}

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
