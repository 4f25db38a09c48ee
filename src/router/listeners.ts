import type { IncomingMessage, Server as HttpServer } from 'node:http';
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2Server,
  Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2';
import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../client/clock.ts';
import { createServer as createHttpServer, STATUS_CODES } from '../host/node-http.ts';
import type { RoutingTable } from '../network/http/routing-table.ts';
import type { Certificates } from './certificates.ts';
import { clientAddress, type ClientLimits } from './client-limits.ts';
import { type ClientRequest, maxHeadBytes } from './http/exchange.ts';
import { readServerName } from './first-bytes.ts';
import type { ClientResponse } from './forward.ts';
import type { RouterMetrics } from './router-metrics.ts';
import type { RouterServing } from './serving.ts';
import { boundHeads } from '../tls/http2-heads.ts';
import { unanswered } from '../tls/unanswered.ts';
import type { Tunnels } from './tunnels.ts';

export interface ListenerOptions {
  readonly serving: RouterServing;
  readonly tunnels: Tunnels;
  readonly table: RoutingTable;
  readonly certificates: Certificates;
  readonly limits: ClientLimits;
  readonly metrics: RouterMetrics;
  readonly clock: Clock;
  /** Milliseconds without a byte after which a client is cut. */
  readonly idleTimeoutMs: number;
}

/** Milliseconds for the head of a request, and for a TLS handshake. */
export const headTimeoutMs = 10_000;
/** Milliseconds that a connection waits for its next request, as ingress-nginx has it. */
const keepAliveTimeoutMs = 75_000;
/** Milliseconds between two looks for slow clients. */
const checkIntervalMs = 2000;
/** Requests of one HTTP/2 connection at a time, as nginx has it. */
const maxConcurrentStreams = 128;

/** A server that can be ended without harm to what runs on it. */
export interface RouterListener {
  readonly server: Server;
  /** Accepts no more connections, and ends those without a request. */
  drain(): Promise<void>;
  /** Cuts what is left. */
  cut(): void;
}

/** Options of servers that speak HTTP/1.1. */
export const timeouts = {
  ...{
    headersTimeout: headTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    connectionsCheckingInterval: checkIntervalMs,
    maxHeaderSize: maxHeadBytes,
    // HTTP/1.0 knows no Host; what lacks one otherwise is refused with the rest.
    requireHostHeader: false,
  },
  // Off, since uploads may be long: the idle timeout cuts slow clients.
  requestTimeout: 0,
};

/** Options of servers that speak HTTP/2. */
export const http2Settings = {
  settings: { maxConcurrentStreams, maxHeaderListSize: maxHeadBytes },
  // Repeated headers of a backend are passed on as over HTTP/1.1.
  strictSingleValueFields: false,
};

/** A listener for requests without TLS. */
export function httpListener({ serving, metrics, idleTimeoutMs }: ListenerOptions): RouterListener {
  const server: HttpServer = createHttpServer({ ...timeouts, insecureHTTPParser: false });
  server.setTimeout(idleTimeoutMs);
  serveHttp(server, serving, 'http');
  const sockets = openSockets(server, metrics, 'http');
  return {
    server,
    drain: () => closed(server),
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** A listener for TLS: HTTP/2 and HTTP/1.1 where it ends here, else what passes through. */
export function httpsListener(options: ListenerOptions): RouterListener {
  const { serving, certificates, clock, metrics, table, idleTimeoutMs } = options;
  const server: Http2SecureServer = createSecureServer({
    ...timeouts,
    ...{ allowHTTP1: true, handshakeTimeout: headTimeoutMs, minVersion: 'TLSv1.2' },
    ...http2Settings,
    SNICallback: (name, done) => done(null, certificates.contextFor(name)),
  });
  server.setTimeout(idleTimeoutMs);
  serveHttp(server, serving, 'https');
  server.on('tlsClientError', (error: Error) => serving.problem('HandshakeFailed', error));
  const sessions = openSessions(server, serving, clock);
  lookFirst(server, options, () => table.hasPassthrough);
  const sockets = openSockets(server, metrics, 'https');
  // A client that names no host gets the default certificate.
  certificates.onDefault((pair) =>
    server.setSecureContext(pair === undefined ? {} : { cert: pair.certificate, key: pair.key }),
  );
  return {
    server,
    async drain() {
      const ended = closed(server);
      for (const session of sessions) session.close();
      await ended;
    },
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** The sessions of HTTP/2 of a server; one whose client is late with a head is cut. */
export function openSessions(
  server: Http2Server | Http2SecureServer,
  serving: RouterServing,
  clock: Clock,
): ReadonlySet<ServerHttp2Session> {
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', (error: Error) => serving.problem('ConnectionFailed', error));
    session.on('close', () => sessions.delete(session));
    boundHeads(session, {
      ...{ timeoutMs: headTimeoutMs, checkIntervalMs },
      after: (milliseconds, callback) => clock.after(milliseconds, callback),
      onLate: () => serving.problem('SlowHead'),
    });
  });
  return sessions;
}

/** Requests of both protocols, and what is none. */
export function serveHttp(
  server: HttpServer | Http2Server | Http2SecureServer,
  serving: RouterServing,
  scheme: 'http' | 'https',
): void {
  const serve = (request: ClientRequest, response: ClientResponse): void =>
    serving.serve(request, response, scheme);
  const handedOver = (request: IncomingMessage, socket: Duplex, head: Buffer): void =>
    serving.upgrade(request, socket, head, scheme);
  server.on('request', serve);
  // The backend answers it.
  server.on('checkContinue', serve);
  server.on('upgrade', handedOver);
  server.on('connect', (request: ClientRequest, to: Duplex | Http2ServerResponse, head: Buffer) => {
    if (to instanceof Http2ServerResponse) serve(request, to);
    else if (!('stream' in request)) handedOver(request, to, head);
  });
  server.on('clientError', refuse);
  // A server of HTTP/2 takes no option for it. Without it, other protocols are handed over, too.
  Object.assign(server, {
    shouldUpgradeCallback: (request: IncomingMessage) => serving.upgradeOf(request) !== undefined,
  });
}

/** Answers what Node.js' parser refuses, where no answer is on its way. */
function refuse(error: Error & { code?: string; rawPacket?: Buffer }, socket: Duplex): void {
  const { code = '', rawPacket } = error;
  if (code !== 'ECONNRESET' && unanswered(socket)()) {
    const status = statusOf(code, rawPacket);
    socket.write(
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
    );
  }
  socket.destroy();
}

/** A request line of RFC 9112 whose method the parser does not know is not implemented; all else is no request. */
function statusOf(code: string, packet: Buffer = Buffer.alloc(0)): number {
  if (code === 'HPE_HEADER_OVERFLOW') return 431;
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return 413;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408;
  const isMethod = /^[!#$%&'*+.^_`|~\w-]+ [^ ]+ HTTP\/1\.[01]\r?\n/.test(
    packet.toString('latin1', 0, maxHeadBytes),
  );
  return code === 'HPE_INVALID_METHOD' && isMethod ? 501 : 400;
}

/** Reads the server name of each connection before TLS begins, while anything passes through. */
function lookFirst(server: Http2SecureServer, options: ListenerOptions, isNeeded: () => boolean): void {
  const beginTls = server.listeners('connection');
  server.removeAllListeners('connection');
  const accept = (socket: Socket): void => {
    for (const begin of beginTls) begin.call(server, socket);
  };
  server.on('connection', (socket: Socket) => {
    if (isNeeded()) look(socket, options, () => accept(socket));
    else accept(socket);
  });
}

function look(socket: Socket, options: ListenerOptions, accept: () => void): void {
  const { clock, table, tunnels, serving, limits } = options;
  readServerName(socket, clock, (serverName, bytes) => {
    const rule = serverName === undefined ? undefined : table.passthrough(serverName);
    if (rule === undefined) {
      socket.unshift(bytes);
      accept();
      return;
    }
    const { kind, namespace, name } = rule.source;
    socket.on('error', () => socket.destroy());
    const object = `${kind} ${namespace}/${name}`;
    const address = clientAddress(socket);
    const leaves = [limits.enter(address) ?? 'TooManyRequests', limits.enterRoute(rule, address, socket)];
    for (const leave of leaves) if (typeof leave !== 'string') socket.on('close', leave);
    const refused = leaves.find((leave) => typeof leave === 'string');
    if (refused !== undefined) {
      serving.problem(refused, undefined, { object });
      socket.destroy();
      return;
    }
    void tunnels.passThrough(socket, bytes, rule, (problem, error) => {
      serving.problem(problem, error, { object });
    });
  });
}

/** The connections of a server. */
export function openSockets(
  server: Server,
  metrics: RouterMetrics,
  listener: 'http' | 'https' | 'gateway',
): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    // Whatever else listens: from here to its end an error has a listener.
    socket.on('error', () => socket.destroy());
    sockets.add(socket);
    metrics.connections.inc({ listener });
    socket.on('close', () => {
      sockets.delete(socket);
      metrics.connections.dec({ listener });
    });
  });
  return sockets;
}

/** Accepts no more connections; resolves when all have ended. */
export async function closed(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
}
