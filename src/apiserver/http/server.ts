import type { Duplex } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import { type Server, createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { MessagePort } from 'node:worker_threads';
import type { Logger } from 'pino';
import { internalError, timedOut, StatusError } from '../../objects/status.ts';
import { LogThrottle } from '../../telemetry/log.ts';
import { refusePlainHttp } from '../../tls/plain-http.ts';
import { unanswered } from '../../tls/unanswered.ts';
import type { Authenticator } from '../authentication/authenticator.ts';
import type { Handler, IncomingRequest, UpgradeHandler } from './exchange.ts';
import { checkHeaderCount, HostCheck, InFlight, isLongRunning, maxHeaders } from './limits.ts';
import type { OutgoingAnswer } from './long-body.ts';
import { HttpReply, replyContext } from './reply.ts';
import { HttpRequest, abortWithClient, parseTarget } from './request.ts';
import { type Closer, createCloser, isHttp2 } from './shutdown.ts';
import { serveThread } from './thread-requests.ts';

const { STATUS_CODES } = process.getBuiltinModule('node:http');

/** Status lines for connections that are not HTTP, too slow or too large. */
const answers: ReadonlyMap<string, string> = new Map([
  ['ERR_HTTP_REQUEST_TIMEOUT', '408 Request Timeout'],
  ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', '413 Payload Too Large'],
]);

/** Errors of connections on which no text can be sent; Node reports those of TLS as client errors, too. */
const closedErrors: ReadonlySet<string> = new Set(['ECONNRESET', 'ERR_TLS_HANDSHAKE_TIMEOUT']);

/** Ends a connection whose bytes cannot be read as a request, with the text that Go's server sends. */
function refuseSocket(error: Error & { code?: string }, socket: Duplex): void {
  if (closedErrors.has(error.code ?? '') || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = answers.get(error.code ?? '') ?? '400 Bad Request';
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n${status}`,
    () => socket.destroy(),
  );
}

/**
 * Ends requests that were answered and whose bodies do not arrive in time. Node's `requestTimeout` does so for every
 * request of a server, but a proxied upload may take longer. Kept are only the few requests that are answered before
 * their body has arrived.
 */
class LateBodies {
  readonly #limitMs: number;
  /** The start of the wait for each, by `performance.now()`. */
  readonly #expected = new Map<IncomingRequest, number>();

  /** @param limitMs in which a body must be there. */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /**
   * A request was answered before its body had arrived: the rest of the body has a time limit.
   *
   * @param since the time of the answer, by `performance.now()`.
   */
  answered(incoming: IncomingRequest, since: number): void {
    if (incoming.complete || incoming.destroyed || this.#expected.has(incoming)) return;
    this.#expected.set(incoming, since);
  }

  /** Closes the connections of late requests. */
  sweep(): void {
    const latest = performance.now() - this.#limitMs;
    for (const [incoming, since] of this.#expected) {
      const isLate = !incoming.complete && !incoming.destroyed && since <= latest;
      // Of HTTP/1.1 this closes the connection.
      if (isLate) incoming.destroy();
      if (isLate || incoming.complete || incoming.destroyed) this.#expected.delete(incoming);
    }
  }
}

/** PEM texts. `clientCa` turns client certificates on. */
interface TlsMaterial {
  readonly certificate: string;
  readonly key: string;
  readonly clientCa?: string;
}

export interface HttpServerOptions {
  readonly tls: TlsMaterial;
  readonly authenticator: Authenticator;
  /** Serves every authenticated request; throws StatusError to answer an error. */
  readonly handler: Handler;
  /** Serves authenticated WebSocket and SPDY upgrades; absent: they are served as plain requests. */
  readonly upgrade?: UpgradeHandler;
  readonly log: Logger;
  readonly limits?: Partial<HttpLimits>;
  /** Called for every answer, when its last byte was passed on or the client is gone. */
  readonly observe?: RequestObserver;
}

export type RequestObserver = (request: HttpRequest, status: number, seconds: number) => void;

export interface HttpLimits {
  /** Writes in flight (`--max-mutating-requests-inflight`, 200). */
  readonly maxMutatingInFlight: number;
  /** Reads in flight, watches not counted (`--max-requests-inflight`, 400). */
  readonly maxReadOnlyInFlight: number;
  /**
   * Milliseconds in which a request must be answered and the client must have taken the answer (`--request-timeout`,
   * 60,000), and in which its body must be there. For watches and proxies it begins when their answer ends.
   */
  readonly requestTimeoutMs: number;
  /** Milliseconds an idle connection is kept, 90,000. */
  readonly keepAliveTimeoutMs: number;
  /** Milliseconds for the headers, 10,000. */
  readonly headersTimeoutMs: number;
}

const defaultLimits: HttpLimits = {
  maxMutatingInFlight: 200,
  maxReadOnlyInFlight: 400,
  requestTimeoutMs: 60_000,
  keepAliveTimeoutMs: 90_000,
  headersTimeoutMs: 10_000,
};

/** Go's default (net/http DefaultMaxHeaderBytes): selectors in a query may be long. */
const maxHeaderBytes = 1024 * 1024;

export interface HttpServer {
  /** Starts to listen; port 0 takes any free one. */
  listen(port: number, host: string): Promise<AddressInfo>;
  /** Serves a connection that another server has accepted. */
  accept(connection: Socket): void;
  /** The same without TLS, for a way that is private by itself. Its requests need a token as all others do. */
  acceptPlain(connection: Socket): void;
  /** Serves the requests that another thread of this process sends as messages, until the port is closed. */
  acceptThread(port: MessagePort): void;
  /**
   * Stops to accept, ends open watches (their `signal` aborts), waits up to `graceMs` for requests in flight,
   * then closes what is left. A second call closes at once.
   */
  close(graceMs?: number): Promise<void>;
}

/** The HTTPS front: everything between a socket and an authenticated {@link Handler} call. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const limits = { ...defaultLimits, ...options.limits };
  const { clientCa } = options.tls;
  const checkIntervalMs = Math.ceil(limits.headersTimeoutMs / 10);
  const server = createServer({
    cert: options.tls.certificate,
    key: options.tls.key,
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['h2', 'http/1.1'],
    ...(clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: false }),
    maxHeaderSize: maxHeaderBytes,
    requestTimeout: 0,
    headersTimeout: limits.headersTimeoutMs,
    handshakeTimeout: limits.headersTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: checkIntervalMs,
  });
  server.maxHeadersCount = maxHeaders;
  routeByProtocol(server, (socket) => {
    // Until it is destroyed, also behind the end of its session.
    socket.on('error', ignore);
    // Loaded by the first of them: it takes 5 MiB.
    import('./http2.ts')
      .then(({ serveHttp2 }) => {
        if (socket.destroyed) return;
        const http2Limits = { ...limits, checkIntervalMs, maxHeaders, maxHeaderBytes };
        const end = serveHttp2(socket, http2Limits, (request, answer) => listener.serve(request, answer));
        socket.once('close', closer.onClosing(end));
      })
      .catch((error: unknown) => {
        options.log.error({ err: error }, 'a connection of HTTP/2 cannot be served');
        socket.destroy();
      });
  });
  refusePlainHttp(server);
  const closer = createCloser(server);
  const lateBodies = new LateBodies(limits.requestTimeoutMs);
  const sweeping = setInterval(() => lateBodies.sweep(), checkIntervalMs).unref();
  server.once('close', () => clearInterval(sweeping));
  const listener = new Listener(options, limits, closer, lateBodies);
  server.on('request', (incoming, response) => listener.serve(incoming, response));
  if (options.upgrade !== undefined) {
    const { upgrade } = options;
    server.on('upgrade', (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
      listener.serveUpgrade(upgrade, incoming, socket, head);
    });
  }
  server.on('clientError', (error, socket) => {
    if (closer.isAnswering(socket)) socket.destroy();
    else refuseSocket(error, socket);
  });
  server.on('tlsClientError', (error) => options.log.debug({ err: error }, 'TLS handshake failed'));
  return {
    listen: async (port, host) => {
      const address = await listen(server, port, host);
      // No memory or files are left for another connection; the open ones are served.
      server.on('error', (error) => options.log.error({ err: error }, 'cannot accept a connection'));
      return address;
    },
    accept: (connection) => void server.emit('connection', connection),
    // Where TLS would hand over the connection that it has decrypted.
    acceptPlain: (connection) => void server.emit('secureConnection', connection),
    acceptThread: (port) => serveThread(port, (request, answer) => listener.serve(request, answer)),
    close: async (graceMs = 10_000) => closer.close(graceMs),
  };
}

/** Hands connections that have agreed on HTTP/2 to `serve`; Node serves the others. */
function routeByProtocol(server: Server, serve: (socket: TLSSocket) => void): void {
  const [serveHttp1] = server.listeners('secureConnection');
  server.removeAllListeners('secureConnection');
  server.on('secureConnection', (socket) => {
    if (isHttp2(socket)) serve(socket);
    else serveHttp1?.call(server, socket);
  });
}

async function listen(server: Server, port: number, host: string): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no TCP address');
  return address;
}

/** Turns Node's requests into those of handlers, and their errors into responses. */
class Listener {
  readonly #options: HttpServerOptions;
  readonly #inFlight: InFlight;
  readonly #requestTimeoutMs: number;
  readonly #closer: Closer;
  readonly #lateBodies: LateBodies;
  readonly #hostCheck: HostCheck;
  readonly #throttle = new LogThrottle(() => performance.now());

  constructor(options: HttpServerOptions, limits: HttpLimits, closer: Closer, lateBodies: LateBodies) {
    this.#options = options;
    this.#inFlight = new InFlight({
      readOnly: limits.maxReadOnlyInFlight,
      mutating: limits.maxMutatingInFlight,
    });
    this.#requestTimeoutMs = limits.requestTimeoutMs;
    this.#closer = closer;
    this.#lateBodies = lateBodies;
    this.#hostCheck = new HostCheck(options.tls.certificate);
  }

  serve(incoming: IncomingRequest, response: OutgoingAnswer): void {
    const started = performance.now();
    if (this.#closer.closing) response.shouldKeepAlive = false;
    this.#closer.begun(incoming.socket, response);
    // A client that disconnects causes no error here: `close` of the response reports it.
    response.on('error', ignore);
    const reply = new HttpReply(response, replyContext(incoming));
    let request: HttpRequest;
    try {
      checkHeaderCount(incoming);
      this.#hostCheck.check(incoming);
      const user = this.#options.authenticator.authenticate(incoming);
      request = new HttpRequest(incoming, parseTarget(incoming.url ?? '/'), user, () =>
        this.#signalOf(response),
      );
      const { info: target } = request;
      const release = this.#inFlight.enter(target);
      const { observe } = this.#options;
      response.on('close', () => {
        release();
        this.#lateBodies.answered(incoming, isLongRunning(target) ? performance.now() : started);
        observe?.(request, response.statusCode, (performance.now() - started) / 1000);
      });
    } catch (error) {
      this.#lateBodies.answered(incoming, started);
      this.#fail(reply, error, incoming);
      return;
    }
    this.#limitTime(request, reply, response);
    this.#options.handler(request, reply).catch((error: unknown) => this.#fail(reply, error, incoming));
  }

  /**
   * Ends an answer that takes too long (apiserver `server/filters/timeout.go`): a client that does not read would
   * otherwise keep its place in flight and the response in memory.
   */
  #limitTime(request: HttpRequest, reply: HttpReply, response: OutgoingAnswer): void {
    const begin = (): void => {
      const timer = setTimeout(() => {
        if (reply.begun) reply.abandon();
        else reply.sendError(timedOut('request did not complete within the allotted timeout'));
      }, this.#requestTimeoutMs);
      timer.unref();
      response.once('close', () => clearTimeout(timer));
    };
    if (isLongRunning(request.info)) response.once('prefinish', begin);
    else begin();
  }

  serveUpgrade(upgrade: UpgradeHandler, incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    const controller = new AbortController();
    const forget = this.#closer.onClosing(() => {
      controller.abort();
      socket.destroy();
    });
    socket.on('error', ignore);
    socket.once('close', () => {
      forget();
      controller.abort();
    });
    const isUnanswered = unanswered(socket);
    if (!isUnanswered()) {
      socket.destroy();
      return;
    }
    const fail = (error: unknown): void => {
      const status = this.#toStatusError(error, incoming);
      if (isUnanswered()) refuseUpgrade(socket, status);
      else socket.destroy();
    };
    try {
      checkHeaderCount(incoming);
      this.#hostCheck.check(incoming);
      const user = this.#options.authenticator.authenticate(incoming);
      const target = parseTarget(incoming.url ?? '/');
      const request = new HttpRequest(incoming, target, user, () => controller.signal);
      this.#limitUpgrade(request, socket);
      upgrade(request, socket, head).catch(fail);
    } catch (error) {
      fail(error);
    }
  }

  /** Those that come to no stream have the limits of others. @throws {StatusError} 429 */
  #limitUpgrade({ info }: HttpRequest, socket: Duplex): void {
    if (isLongRunning(info)) return;
    const release = this.#inFlight.enter(info);
    const timer = setTimeout(() => socket.destroy(), this.#requestTimeoutMs).unref();
    socket.once('close', () => {
      release();
      clearTimeout(timer);
    });
  }

  #signalOf(response: OutgoingAnswer): AbortSignal {
    const controller = new AbortController();
    abortWithClient(response, controller);
    const forget = this.#closer.onClosing(() => controller.abort());
    response.once('close', forget);
    return controller.signal;
  }

  #fail(reply: HttpReply, error: unknown, incoming: IncomingRequest): void {
    if (reply.begun) {
      // The status line was sent: cut the connection, so that the client does not take a part for the whole.
      if (!incoming.destroyed) this.#logFailure(error, incoming);
      reply.abandon();
      return;
    }
    reply.sendError(this.#toStatusError(error, incoming));
  }

  #toStatusError(error: unknown, incoming: IncomingRequest): StatusError {
    if (error instanceof StatusError) return error;
    if (isDiskFull(error)) {
      if (this.#throttle.isDue('disk')) {
        this.#options.log.error({ err: error }, 'the disk is full, nothing is stored: make room');
      }
      return internalError('the disk is full, nothing was stored', error);
    }
    this.#logFailure(error, incoming);
    return internalError("the request failed unexpectedly, the server's log says why", error);
  }

  #logFailure(error: unknown, incoming: IncomingRequest): void {
    const { method, url } = incoming;
    this.#options.log.error({ err: error, method, url }, 'request failed unexpectedly');
  }
}

function isDiskFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOSPC';
}

function ignore(): void {
  // nothing to do
}

function refuseUpgrade(socket: Duplex, status: StatusError): void {
  const body = `${JSON.stringify(status.toStatus())}\n`;
  const head = [
    `HTTP/1.1 ${status.code} ${STATUS_CODES[status.code] ?? 'Error'}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}
