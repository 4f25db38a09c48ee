import type { IncomingMessage, Server as HttpServer } from 'node:http';
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2';
import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../client/clock.ts';
import { createServer as createHttpServer } from '../host/node-http.ts';
import { maxHello, readClientHello } from '../network/http/client-hello.ts';
import type { HttpTable } from '../network/http/http-table.ts';
import type { Certificates } from './certificates.ts';
import type { RouterMetrics } from './router-metrics.ts';
import type { RouterServing } from './serving.ts';
import type { Tunnels } from './tunnels.ts';

export interface ListenerOptions {
  readonly serving: RouterServing;
  readonly tunnels: Tunnels;
  readonly table: HttpTable;
  readonly certificates: Certificates;
  readonly metrics: RouterMetrics;
  readonly clock: Clock;
  /** Milliseconds without a byte after which a client is cut. */
  readonly idleTimeout: number;
}

/** Milliseconds for the head of a request, and for a TLS handshake. */
const headTimeout = 10_000;
/** Milliseconds that a connection waits for its next request, as ingress-nginx has it. */
const keepAliveTimeout = 75_000;
/** Milliseconds between two looks for slow clients. */
const checkInterval = 2000;
/** Bytes of the head of a request. */
const maxHeaderSize = 16 * 1024;

/** A server that can be ended without harm to what runs on it. */
export interface RouterListener {
  readonly server: Server;
  /** Accepts no more connections, and ends those without a request. */
  drain(): Promise<void>;
  /** Cuts what is left. */
  cut(): void;
}

const timeouts = {
  ...{
    headersTimeout: headTimeout,
    keepAliveTimeout,
    connectionsCheckingInterval: checkInterval,
    maxHeaderSize,
  },
  // Off, since uploads may be long: the idle timeout cuts slow clients.
  requestTimeout: 0,
};

/** A listener for requests without TLS. */
export function httpListener({ serving, metrics, idleTimeout }: ListenerOptions): RouterListener {
  const server: HttpServer = createHttpServer({ ...timeouts, insecureHTTPParser: false });
  server.setTimeout(idleTimeout);
  server.on('request', (request, response) => serving.serve(request, response, 'http'));
  server.on('upgrade', (request, socket, head) => serving.upgrade(request, socket, head, 'http'));
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
  const { serving, certificates, metrics, table, idleTimeout } = options;
  const server: Http2SecureServer = createSecureServer({
    ...timeouts,
    ...{ allowHTTP1: true, handshakeTimeout: headTimeout, minVersion: 'TLSv1.2' },
    SNICallback: (name, done) => {
      const context = certificates.contextFor(name);
      if (context === undefined) done(new Error('no certificate for this name'));
      else done(null, context);
    },
  });
  server.setTimeout(idleTimeout);
  server.on('request', (request, response) => serving.serve(request, response, 'https'));
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) =>
    serving.upgrade(request, socket, head, 'https'),
  );
  server.on('tlsClientError', (error: Error) => serving.problem('HandshakeFailed', error));
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', (error: Error) => serving.problem('ConnectionFailed', error));
    session.on('close', () => sessions.delete(session));
  });
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

function look(socket: Socket, { clock, table, tunnels, serving }: ListenerOptions, accept: () => void): void {
  let bytes: Buffer = Buffer.alloc(0);
  const late = clock.after(headTimeout, () => socket.destroy());
  const end = (): void => {
    late.cancel();
    socket.off('data', take);
    socket.off('error', fail);
    socket.off('close', end);
    socket.pause();
  };
  const fail = (): void => {
    socket.destroy();
  };
  const take = (chunk: Buffer): void => {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    const hello = readClientHello(bytes);
    if (hello.kind === 'incomplete' && bytes.length < maxHello) return;
    end();
    const rule =
      hello.kind === 'hello' && hello.serverName !== undefined
        ? table.passthrough(hello.serverName)
        : undefined;
    if (rule === undefined) {
      socket.unshift(bytes);
      accept();
      return;
    }
    const { kind, namespace, name } = rule.source;
    socket.on('error', fail);
    void tunnels.passThrough(socket, bytes, rule, (problem, error) => {
      serving.problem(problem, error, { object: `${kind} ${namespace}/${name}` });
    });
  };
  socket.on('data', take);
  socket.on('error', fail);
  socket.on('close', end);
}

function openSockets(server: Server, metrics: RouterMetrics, listener: string): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    metrics.connections.set({ listener }, sockets.size);
    socket.on('close', () => {
      sockets.delete(socket);
      metrics.connections.set({ listener }, sockets.size);
    });
  });
  return sockets;
}

async function closed(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
}
