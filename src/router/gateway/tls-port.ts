import { X509Certificate } from 'node:crypto';
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2';
import { createServer, type Server, type Socket } from 'node:net';
import {
  createSecureContext,
  createServer as createTlsServer,
  type SecureContext,
  type TLSSocket,
} from 'node:tls';
import { listenerFor, streamFor } from '../../network/gateway/matching.ts';
import type { ListenerTls, PlannedListener, PlannedPort } from '../../network/gateway/plan.ts';
import { type KeyPair, plainHost } from '../../network/http/rules.ts';
import { certificateParts } from '../../tls/x509.ts';
import { readServerName } from '../first-bytes.ts';
import {
  closed,
  headTimeoutMs,
  http2Settings,
  openSessions,
  openSockets,
  type RouterListener,
  serveHttp,
  timeouts,
} from '../listeners.ts';
import type { HttpPortOptions } from './http-port.ts';
import { carryStream, reset, type StreamOptions } from './streams.ts';

export interface TlsPortOptions extends HttpPortOptions {
  readonly plan: () => PlannedPort;
  readonly streams: StreamOptions;
}

/** A server for connections of listeners that ask clients for certificates in the same way. It never listens itself. */
interface TlsServer {
  readonly server: Http2SecureServer | ReturnType<typeof createTlsServer>;
  readonly sessions: ReadonlySet<ServerHttp2Session>;
  /** Of clients that name no host. */
  fallback: KeyPair | undefined;
}

/** A listener for HTTPS and TLS, which the server name tells apart. */
export function tlsPortListener(options: TlsPortOptions): RouterListener {
  const { metrics, clock } = options;
  const server = createServer({ noDelay: true });
  const sockets = openSockets(server, metrics, 'gateway');
  const servers = new TlsServers(options);
  const waiting = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    waiting.add(socket);
    socket.on('close', () => waiting.delete(socket));
    readServerName(socket, clock, (serverName, bytes) => {
      waiting.delete(socket);
      accept(socket, plainHost(serverName ?? ''), bytes, options, servers);
    });
  });
  return {
    server,
    async drain() {
      const ended = closed(server);
      for (const socket of waiting) socket.destroy();
      servers.drain();
      await ended;
    },
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

function accept(
  socket: Socket,
  serverName: string,
  bytes: Buffer,
  { plan, streams }: TlsPortOptions,
  servers: TlsServers,
): void {
  const listener = listenerFor(plan().listeners, serverName);
  if (listener?.tls === undefined) {
    streams.problem('NoHost');
    reset(socket);
    return;
  }
  if (listener.tls.mode === 'Passthrough') {
    carryStream(socket, bytes, streamFor(listener, serverName), streams);
    return;
  }
  socket.unshift(bytes);
  servers.accept(socket, listener, listener.tls);
}

/** The servers of one port. Each has keys of its own for sessions: none is resumed where others are trusted. */
class TlsServers {
  readonly #options: TlsPortOptions;
  readonly #servers = new Map<string, TlsServer>();

  constructor(options: TlsPortOptions) {
    this.#options = options;
  }

  accept(socket: Socket, { protocol }: PlannedListener, tls: ListenerTls): void {
    const key = serverKey(protocol, tls);
    let known = this.#servers.get(key);
    if (known === undefined) {
      this.#forget();
      known = protocol === 'HTTPS' ? this.#httpsServer(tls) : this.#streamServer(tls);
      this.#servers.set(key, known);
    }
    const { server } = known;
    const [pair] = tls.certificates;
    const { certificate, key: privateKey } = known.fallback ?? {};
    if (pair !== undefined && (pair.certificate !== certificate || pair.key !== privateKey)) {
      // Clients that name a host get another by SNICallback.
      known.fallback = pair;
      server.setSecureContext(contextOptions(pair, tls));
    }
    server.emit('connection', socket);
  }

  drain(): void {
    for (const { server, sessions } of this.#servers.values()) {
      server.close();
      for (const session of sessions) session.close();
    }
  }

  /** Servers whose settings no listener has any more; their connections end by and by. */
  #forget(): void {
    const { listeners } = this.#options.plan();
    const needed = new Set(
      listeners.flatMap(({ protocol, tls }) => (tls === undefined ? [] : serverKey(protocol, tls))),
    );
    for (const [key, { server, sessions }] of this.#servers) {
      if (needed.has(key)) continue;
      this.#servers.delete(key);
      server.close();
      for (const session of sessions) session.close();
    }
  }

  #httpsServer({ clients }: ListenerTls): TlsServer {
    const { serving, clock, idleTimeoutMs } = this.#options;
    const server = createSecureServer({
      ...timeouts,
      ...http2Settings,
      ...{ allowHTTP1: true, handshakeTimeout: headTimeoutMs, minVersion: 'TLSv1.2' },
      ...{ requestCert: clients !== undefined, rejectUnauthorized: clients?.mode === 'AllowValidOnly' },
      SNICallback: this.#context,
    });
    server.setTimeout(idleTimeoutMs);
    serveHttp(server, serving, 'https');
    this.#follow(server);
    // Node.js watches for late heads from here on.
    server.emit('listening');
    return { server, sessions: openSessions(server, serving, clock), fallback: undefined };
  }

  #streamServer({ clients }: ListenerTls): TlsServer {
    const { plan, streams } = this.#options;
    const server = createTlsServer({
      ...{ handshakeTimeout: headTimeoutMs, minVersion: 'TLSv1.2' },
      ...{ requestCert: clients !== undefined, rejectUnauthorized: clients?.mode === 'AllowValidOnly' },
      SNICallback: this.#context,
    });
    server.on('secureConnection', (socket) => {
      const name = plainHost(socketServerName(socket));
      const listener = listenerFor(plan().listeners, name);
      const rule = listener?.protocol === 'TLS' ? streamFor(listener, name) : undefined;
      carryStream(socket, Buffer.alloc(0), rule, streams);
    });
    this.#follow(server);
    return { server, sessions: new Set(), fallback: undefined };
  }

  #follow(server: Server): void {
    const { serving } = this.#options;
    server.on('tlsClientError', (error: Error) => serving.problem('HandshakeFailed', error));
    server.on('secureConnection', (socket: TLSSocket) => socket.on('error', () => socket.destroy()));
  }

  readonly #context = (
    serverName: string,
    done: (error: Error | null, context?: SecureContext) => void,
  ): void => {
    const name = plainHost(serverName);
    const tls = listenerFor(this.#options.plan().listeners, name)?.tls;
    const pair = tls === undefined ? undefined : certificateFor(tls.certificates, name);
    if (tls === undefined || pair === undefined) {
      done(new Error('there is no certificate'));
      return;
    }
    try {
      done(null, contextOf(pair, tls));
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)));
    }
  };
}

function serverKey(protocol: PlannedListener['protocol'], { clients }: ListenerTls): string {
  return JSON.stringify([protocol, clients]);
}

/** False where a client named none. */
function socketServerName(socket: TLSSocket): string {
  const name: unknown = Reflect.get(socket, 'servername');
  return typeof name === 'string' ? name : '';
}

const contexts = new WeakMap<KeyPair, WeakMap<ListenerTls, SecureContext>>();

function contextOf(pair: KeyPair, tls: ListenerTls): SecureContext {
  let known = contexts.get(pair);
  if (known === undefined) {
    known = new WeakMap();
    contexts.set(pair, known);
  }
  let context = known.get(tls);
  if (context === undefined) {
    context = createSecureContext(contextOptions(pair, tls));
    known.set(tls, context);
  }
  return context;
}

/**
 * Each authority of clients is an anchor, be it a root or not. Where bad certificates are let in there is none: a signature
 * by another key of a known name would leave an error in OpenSSL that ends the connection.
 */
function contextOptions(
  { certificate, key }: KeyPair,
  { clients }: ListenerTls,
): { cert: string; key: string; ca?: string[]; allowPartialTrustChain?: boolean } {
  if (clients === undefined) return { cert: certificate, key };
  const ca = clients.mode === 'AllowValidOnly' ? [clients.ca] : [];
  return { cert: certificate, key, ca, allowPartialTrustChain: true };
}

const names = new WeakMap<KeyPair, readonly string[]>();

/** The names that a certificate is for, in lower case. */
function namesOf(pair: KeyPair): readonly string[] {
  let known = names.get(pair);
  if (known === undefined) {
    try {
      const { raw } = new X509Certificate(pair.certificate);
      known = (certificateParts(raw).names?.dns ?? []).map((name) => name.toLowerCase());
    } catch {
      known = [];
    }
    names.set(pair, known);
  }
  return known;
}

/** The certificate for a server name, the most specific first; else the first one. */
function certificateFor(certificates: readonly KeyPair[], serverName: string): KeyPair | undefined {
  if (certificates.length > 1) {
    const dot = serverName.indexOf('.');
    for (const name of [serverName, dot === -1 ? serverName : `*${serverName.slice(dot)}`]) {
      const found = certificates.find((pair) => namesOf(pair).includes(name));
      if (found !== undefined) return found;
    }
  }
  return certificates[0];
}
