import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import { WebSocketServer } from 'ws';
import { createServer } from '../host/node-http.ts';
import { parseRecord } from '../objects/json.ts';
import { errorMessage } from '../objects/status.ts';
import { readTarget, type RequestTarget } from '../objects/formats/go-url.ts';
import { unanswered } from '../tls/unanswered.ts';
import { Answers, refusalOf } from './answers.ts';
import {
  isForLoopback,
  type Refusal,
  refuseOtherOrigin,
  safetyHeaders,
  type Credentials,
  Gate,
} from './gate.ts';
import type { ErrorAnswer, ClusterInfo } from './messages.ts';
import { type StaticFiles, staticFilesOfPackage } from './static-files.ts';
import { Stream, type StreamOptions } from './stream.ts';
import type {
  ApiResponse,
  ApiStream,
  ClusterSource,
  RequestOptions,
  StreamOptions as ApiStreamOptions,
  Transport,
} from '../client/transport.ts';
import { systemClock } from '../client/clock.ts';
import { createTransport } from '../client/connect.ts';
import type { RequestSettings } from '../controllers/load-balancer/request.ts';
import { askFlows } from '../host/control-client.ts';
import type { ProxyFlags } from '../view/trace-cluster.ts';
import type { ConnectionChecker } from '../view/trace-connection.ts';
import type { AskFlows } from './flow-watch.ts';
import { Viewers } from './viewers.ts';

/** Which cluster a page shows, and to whom. */
export interface PageSettings {
  readonly credentials: Credentials;
  readonly cluster: ClusterInfo;
  readonly proxy: ProxyFlags;
  readonly loadBalancer: RequestSettings;
  /** Of the `up` that tells flows; undefined: there are none. */
  readonly controlSocket: string | undefined;
}

/** A page that is served. */
export interface Page {
  readonly server: PageServer;
  /** Ends its connections and watches. */
  close(): Promise<void>;
}

/** @param checker undefined: no packet is sent. @param files what browsers load; default: those of the package. */
export function openPage(
  { credentials, cluster, proxy, loadBalancer, controlSocket }: PageSettings,
  transport: Transport,
  checker: ConnectionChecker | undefined,
  log: Logger,
  files: () => Promise<StaticFiles> = staticFilesOfPackage,
): Page {
  const clock = systemClock;
  const reading = new ReadOnlyTransport(transport);
  const viewers = new Viewers({
    ...{ transport: reading, log, clock, random: Math.random },
    ...{ namespace: cluster.onlyNamespace, settings: loadBalancer },
  });
  const answers = new Answers({ transport: reading, viewers, cluster, clock, proxy, checker });
  const gate = new Gate(credentials, clock);
  const askFlowsOf: AskFlows | undefined =
    controlSocket === undefined ? undefined : (request, signal) => askFlows(controlSocket, request, signal);
  let loaded: Promise<StaticFiles> | undefined;
  const once = (): Promise<StaticFiles> => {
    loaded ??= files();
    // It is tried again.
    loaded.catch(() => (loaded = undefined));
    return loaded;
  };
  const server = new PageServer({
    ...{ gate, viewers, cluster, clock, answers, files: once, log },
    askFlows: askFlowsOf,
  });
  return {
    server,
    close: async () => {
      server.close();
      await viewers.close();
    },
  };
}

/** The same for a cluster that is reached by itself. */
export async function openPageOf(
  source: ClusterSource,
  settings: PageSettings,
  checker: ConnectionChecker | undefined,
  log: Logger,
): Promise<Page> {
  const transport = await createTransport(source);
  const page = openPage(settings, transport, checker, log);
  return {
    server: page.server,
    close: async () => {
      await page.close();
      await transport.close();
    },
  };
}

const maxConnections = 64;
const maxWebSockets = 32;
const maxHeaderBytes = 8 * 1024;
const maxBodyBytes = 64 * 1024;
/** For the headers of a request, and for its body. */
const requestMs = 10_000;
/** Between two looks whether a tab is still there. */
const pingMs = 30_000;

interface PageServerOptions extends StreamOptions {
  readonly answers: Answers;
  readonly files: () => Promise<StaticFiles>;
  readonly log: Logger;
}

/** The page's server: of connections that others have accepted ({@link PageServer.serve}). */
class PageServer {
  readonly #options: PageServerOptions;
  readonly #http: Server;
  readonly #webSockets = new WebSocketServer({
    ...{ noServer: true, maxPayload: maxBodyBytes, perMessageDeflate: false, clientTracking: true },
  });
  readonly #connections = new Set<Socket>();
  readonly #deadlines = new WeakMap<Socket, { cancel(): void }>();
  readonly #alive = new WeakSet<object>();
  readonly #pinging: NodeJS.Timeout;

  constructor(options: PageServerOptions) {
    this.#options = options;
    this.#http = createServer({ maxHeaderSize: maxHeaderBytes }, (request, response) => {
      this.#requested(request, response).catch((error: unknown) => this.#failed(response, error));
    });
    // Answered as any other request, not before the body has come.
    this.#http.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
      this.#requested(request, response).catch((error: unknown) => this.#failed(response, error));
    });
    this.#http.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.#upgraded(request, socket, head);
    });
    this.#http.on('connect', (_request: IncomingMessage, socket: Duplex) => socket.destroy());
    this.#http.on('clientError', (_error: Error, socket: Duplex) => {
      if (unanswered(socket)())
        socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      else socket.destroy();
    });
    this.#pinging = setInterval(() => this.#ping(), pingMs).unref();
  }

  /** How many connections are open. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Takes a connection; it may be paused. */
  serve(socket: Socket): void {
    socket.on('error', () => socket.destroy());
    if (this.#connections.size >= maxConnections) {
      socket.destroy();
      return;
    }
    this.#connections.add(socket);
    this.#expectHeaders(socket);
    socket.on('close', () => {
      this.#connections.delete(socket);
      this.#deadlines.get(socket)?.cancel();
    });
    this.#http.emit('connection', socket);
    socket.resume();
  }

  /** Ends all connections. */
  close(): void {
    clearInterval(this.#pinging);
    for (const socket of this.#connections) socket.destroy();
    this.#http.close();
    this.#webSockets.close();
  }

  /** A server that does not listen itself has no watch of its own over slow headers. */
  #expectHeaders(socket: Socket): void {
    this.#deadlines.get(socket)?.cancel();
    this.#deadlines.set(
      socket,
      this.#options.clock.after(requestMs, () => socket.destroy()),
    );
  }

  async #requested(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request;
    this.#deadlines.get(socket)?.cancel();
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    response.on('finish', () => {
      if (!socket.destroyed) this.#expectHeaders(socket);
    });
    for (const [name, value] of Object.entries(safetyHeaders)) response.setHeader(name, value);
    const target = readTarget(request.url);
    if (!isForLoopback(request) || target === undefined) {
      response.writeHead(421, { 'Content-Length': 0, Connection: 'close' }).end();
      return;
    }
    if (!target.pathname.startsWith('/data/')) {
      if (request.method !== 'GET' && request.method !== 'HEAD') refuse(response, notAllowed);
      else (await this.#options.files()).answer(request, response, target.pathname);
      return;
    }
    response.setHeader('Cache-Control', 'no-store');
    const isPost = request.method === 'POST';
    const refusal = refuseOtherOrigin(request, isPost) ?? (isPost ? refuseBody(request) : undefined);
    if (refusal !== undefined) {
      refuse(response, refusal);
      return;
    }
    const answer = await this.#answerOf(request, target);
    if ('status' in answer) refuse(response, answer);
    else send(response, 200, answer.json);
  }

  async #answerOf(
    request: IncomingMessage,
    target: RequestTarget,
  ): Promise<Refusal | { readonly json: string }> {
    const { gate, answers } = this.#options;
    const { method = '' } = request;
    const { pathname, searchParams } = target;
    if (pathname === '/data/session') {
      if (method !== 'POST') return notAllowed;
      const key = (await readBody(request))['key'];
      const session = await gate.sessionFor(typeof key === 'string' ? key : '');
      return session === undefined ? unknownSession : { json: JSON.stringify({ session }) };
    }
    if (!gate.isAuthorized(request)) return unknownSession;
    switch (`${method} ${pathname}`) {
      case 'GET /data/state':
        return { json: await answers.state(searchParams) };
      case 'GET /data/reach':
        return { json: JSON.stringify(await answers.reach(searchParams)) };
      case 'GET /data/journal':
        return { json: JSON.stringify(await answers.journal(searchParams)) };
      case 'GET /data/pools':
        return { json: JSON.stringify(await answers.pools()) };
      case 'GET /data/object':
        return { json: JSON.stringify(await answers.object(searchParams)) };
      case 'POST /data/trace':
        return { json: JSON.stringify(await answers.trace(await readBody(request))) };
      case 'POST /data/reach/plan':
        return { json: JSON.stringify(await answers.reachPlan(await readBody(request))) };
      case 'POST /data/pools/plan':
        return { json: JSON.stringify(await answers.poolsPlan(await readBody(request))) };
    }
    return paths.has(pathname) ? notAllowed : notFound;
  }

  #failed(response: ServerResponse, error: unknown): void {
    const refusal = error instanceof BodyError ? error.refusal : refusalOf(error);
    if (refusal === undefined) this.#options.log.error({ err: error }, 'the page could not answer');
    const unexpected = { status: 500, reason: 'InternalError', message: errorMessage(error) };
    if (response.headersSent) response.destroy();
    else refuse(response, refusal ?? unexpected);
  }

  #upgraded(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#deadlines.get(request.socket)?.cancel();
    socket.on('error', () => socket.destroy());
    if (!unanswered(socket)()) {
      socket.destroy();
      return;
    }
    const refused = !isForLoopback(request)
      ? '421 Misdirected Request'
      : refuseOtherOrigin(request, true) !== undefined
        ? '403 Forbidden'
        : readTarget(request.url)?.pathname !== '/data/stream'
          ? '404 Not Found'
          : this.#webSockets.clients.size >= maxWebSockets
            ? '503 Service Unavailable'
            : undefined;
    if (refused !== undefined) {
      socket.end(`HTTP/1.1 ${refused}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => {
      this.#alive.add(webSocket);
      webSocket.on('pong', () => this.#alive.add(webSocket));
      new Stream(webSocket, this.#options);
    });
  }

  /** Ends what has not answered since the last time, and has nothing to read before. */
  #ping(): void {
    for (const webSocket of this.#webSockets.clients) {
      const isSilent = !this.#alive.delete(webSocket) && webSocket.bufferedAmount === 0;
      if (isSilent) webSocket.terminate();
      else webSocket.ping();
    }
  }
}

const paths: ReadonlySet<string> = new Set([
  ...['/data/state', '/data/pools', '/data/object', '/data/trace', '/data/pools/plan', '/data/stream'],
  ...['/data/reach', '/data/reach/plan', '/data/journal'],
]);
const notAllowed: Refusal = { status: 405, reason: 'MethodNotAllowed', message: 'not by this method' };
const notFound: Refusal = { status: 404, reason: 'NotFound', message: 'there is nothing of this name' };
const tooLarge: Refusal = { status: 413, reason: 'TooLarge', message: 'a body has 64 KiB at most' };
const unknownSession: Refusal = {
  status: 401,
  reason: 'SessionUnknown',
  message: 'the session is not known: servicenet page prints a link',
};

class BodyError extends Error {
  override readonly name = 'BodyError';
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

/** By what its headers say. */
function refuseBody({ headers }: IncomingMessage): Refusal | undefined {
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/json')
    return { status: 415, reason: 'UnsupportedMediaType', message: 'a body is application/json' };
  return Number(headers['content-length'] ?? 0) > maxBodyBytes ? tooLarge : undefined;
}

/** @throws {BodyError} for one that is too large, too slow, or no object of JSON. */
async function readBody(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const parts: Buffer[] = [];
  let size = 0;
  const late = setTimeout(() => request.destroy(), requestMs).unref();
  try {
    for await (const part of request) {
      if (!Buffer.isBuffer(part)) continue;
      size += part.length;
      if (size > maxBodyBytes) throw new BodyError(tooLarge);
      parts.push(part);
    }
  } finally {
    clearTimeout(late);
  }
  const body = parseRecord(Buffer.concat(parts).toString('utf8'));
  if (body === undefined)
    throw new BodyError({ status: 400, reason: 'BadRequest', message: 'the body is no object of JSON' });
  return body;
}

function refuse(response: ServerResponse, { status, reason, message }: Refusal): void {
  // What was not read of a body is not read: the connection ends.
  response.setHeader('Connection', 'close');
  send(response, status, JSON.stringify({ reason, message } satisfies ErrorAnswer));
}

function send(response: ServerResponse, status: number, json: string): void {
  const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(json) };
  response.writeHead(status, headers).end(json);
}

/** A transport for what looks and never writes: any method but GET throws, before anything is sent. */
export class ReadOnlyTransport implements Transport {
  readonly server: string;
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.server = transport.server;
    this.#transport = transport;
  }

  async request(method: string, path: string, options?: RequestOptions): Promise<ApiResponse> {
    if (method !== 'GET') throw new Error(`${method} ${path}: what shows a cluster only reads it`);
    return await this.#transport.request(method, path, options);
  }

  stream(path: string, options?: ApiStreamOptions): Promise<ApiStream> {
    return this.#transport.stream(path, options);
  }

  close(): Promise<void> {
    return this.#transport.close();
  }
}
