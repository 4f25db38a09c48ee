import {
  createServer as createPlainServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { type SecureContextOptions, TLSSocket } from 'node:tls';
import type { Status } from '../../src/objects/status.ts';

/** One request, waiting for the test to answer it. */
export class Exchange {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** The common name of the client's certificate; undefined without one. */
  readonly clientName: string | undefined;
  readonly #response: ServerResponse;

  constructor(request: IncomingMessage, body: string, response: ServerResponse) {
    const url = new URL(request.url ?? '/', 'http://localhost');
    this.method = request.method ?? '';
    this.path = url.pathname;
    this.query = url.searchParams;
    this.headers = request.headers;
    this.body = body;
    const certificate = request.socket instanceof TLSSocket ? request.socket.getPeerCertificate() : undefined;
    this.clientName = [certificate?.subject].flat()[0]?.CN?.toString();
    this.#response = response;
  }

  get isWatch(): boolean {
    return this.query.get('watch') === 'true';
  }

  /** Resolves when the client has closed the connection. */
  closed(): Promise<void> {
    if (this.#response.destroyed) return Promise.resolve();
    return new Promise((resolve) => this.#response.once('close', () => resolve()));
  }

  json(status: number, body: unknown, headers: Record<string, string> = {}): void {
    this.text(status, JSON.stringify(body), { 'content-type': 'application/json', ...headers });
  }

  text(status: number, body: string, headers: Record<string, string> = {}): void {
    this.#response.writeHead(status, headers);
    this.#response.end(body);
  }

  status(code: number, reason: string, message = reason, headers: Record<string, string> = {}): void {
    this.json(code, failure(code, reason, message), headers);
  }

  /** Starts a watch; events follow. */
  watch(): this {
    this.#response.writeHead(200, { 'content-type': 'application/json' });
    this.#response.flushHeaders();
    return this;
  }

  event(type: string, object: unknown): this {
    return this.raw(`${JSON.stringify({ type, object })}\n`);
  }

  bookmark(resourceVersion: string, annotations: Record<string, string> = {}): this {
    return this.event('BOOKMARK', { metadata: { resourceVersion, annotations } });
  }

  raw(text: string): this {
    this.#response.write(text);
    return this;
  }

  /** For pieces that end inside a character. */
  rawBytes(bytes: Buffer): this {
    this.#response.write(bytes);
    return this;
  }

  end(): void {
    this.#response.end();
  }

  /** Cuts the connection, in the middle of whatever was written. */
  reset(): void {
    this.#response.socket?.resetAndDestroy();
  }
}

/** A Status as a server writes it. */
export function failure(code: number, reason: string, message = reason): Status {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code };
}

/**
 * An API server without rules: the test takes each request from a queue and answers it as it likes, or not at all.
 * Nothing happens by itself, so that every order of events can be played.
 */
export class ScriptedServer {
  readonly #server: Server;
  readonly #scheme: string;
  readonly #arrived: Exchange[] = [];
  readonly #takers: ((exchange: Exchange) => void)[] = [];
  readonly #sockets = new Set<Socket>();
  /** Connections that were ever opened. */
  connections = 0;

  private constructor(tls: SecureContextOptions | undefined) {
    const listener = (request: IncomingMessage, response: ServerResponse): void => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('error', () => undefined);
      request.on('end', () =>
        this.#arrive(new Exchange(request, Buffer.concat(chunks).toString(), response)),
      );
    };
    this.#scheme = tls === undefined ? 'http' : 'https';
    const options = { requestCert: true, rejectUnauthorized: false };
    this.#server =
      tls === undefined ? createPlainServer(listener) : createTlsServer({ ...tls, ...options }, listener);
    this.#server.on('connection', (socket: Socket) => {
      this.connections++;
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  /** Listens on a free port of 127.0.0.1. */
  static async start(tls?: SecureContextOptions): Promise<ScriptedServer> {
    const server = new ScriptedServer(tls);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  /** Listens at a Unix socket. */
  static async startAt(path: string): Promise<ScriptedServer> {
    const server = new ScriptedServer(undefined);
    await new Promise<void>((resolve) => server.#server.listen(path, resolve));
    return server;
  }

  get url(): string {
    const address: AddressInfo | string | null = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('not listening');
    return `${this.#scheme}://127.0.0.1:${address.port}`;
  }

  /** Requests that arrived and were not taken. */
  get waiting(): number {
    return this.#arrived.length;
  }

  /** The next request, in order of arrival. */
  next(): Promise<Exchange> {
    const exchange = this.#arrived.shift();
    if (exchange !== undefined) return Promise.resolve(exchange);
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  /** Answers every request from now on by itself. */
  async serve(answer: (exchange: Exchange) => void, signal: AbortSignal): Promise<void> {
    const stopped = new Promise<undefined>((resolve) => {
      signal.addEventListener('abort', () => resolve(undefined), { once: true });
    });
    for (;;) {
      const exchange = await Promise.race([this.next(), stopped]);
      if (exchange === undefined) return;
      answer(exchange);
    }
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #arrive(exchange: Exchange): void {
    const taker = this.#takers.shift();
    if (taker === undefined) this.#arrived.push(exchange);
    else taker(exchange);
  }
}
