import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Socket as DatagramSocket } from 'node:dgram';
import { createServer, type Server, type Socket } from 'node:net';
import type { Host } from '../host/host.ts';
import { httpServer } from '../host/http-server.ts';
import { METHODS } from '../host/node-http.ts';
import { sendDatagram } from '../host/sockets.ts';
import type { RequestTarget } from '../objects/request-target.ts';

/** The Pod whose server answers. */
export interface PodIdentity {
  readonly pod: string;
  readonly namespace: string;
  readonly node: string;
  /** Whether its containers are ready; asked at each request. */
  readonly isReady: () => boolean;
}

/** The longest that `/slow` waits. */
const maxSlowMs = 300_000;

/**
 * Answers a request:
 *
 * - `/hostname`: the name of the Pod
 * - `/clientip`: the client's address and port
 * - `/healthz`: 200 while the Pod is ready, else 503
 * - `/slow?ms=500`: after that many milliseconds, up to five minutes
 * - `/status/503`: with this status, 200 to 599
 * - everything else: JSON with the Pod, its node and namespace, the client, the path and the headers
 */
async function answerHttp(
  identity: PodIdentity,
  request: IncomingMessage,
  response: ServerResponse,
  { pathname, searchParams }: RequestTarget,
): Promise<void> {
  // The client's data is read to its end, so that its connection can be used again.
  request.resume();
  const plain = plainAnswer(identity, request, pathname);
  if (plain !== undefined) {
    response.writeHead(plain.status, { 'Content-Type': 'text/plain; charset=utf-8' });
    response.end(`${plain.text}\n`);
    return;
  }
  if (pathname === '/slow') await delay(slowMs(searchParams), undefined, { ref: false });
  const { pod, namespace, node } = identity;
  const body = {
    ...{ pod, namespace, node },
    client: clientOf(request),
    method: request.method,
    path: request.url,
    headers: request.headers,
  };
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.end(`${JSON.stringify(body)}\n`);
}

function plainAnswer(
  { pod, isReady }: PodIdentity,
  request: IncomingMessage,
  path: string,
): { status: number; text: string } | undefined {
  if (path === '/hostname') return { status: 200, text: pod };
  if (path === '/clientip') return { status: 200, text: joined(request) };
  if (path === '/healthz')
    return isReady() ? { status: 200, text: 'ok' } : { status: 503, text: 'not ready' };
  const [, status] = /^\/status\/([2-5]\d\d)$/.exec(path) ?? [];
  return status === undefined ? undefined : { status: Number(status), text: status };
}

function slowMs(query: URLSearchParams): number {
  const wanted = Number(query.get('ms') ?? '0');
  return Math.min(Math.max(0, Number.isFinite(wanted) ? wanted : 0), maxSlowMs);
}

function clientOf({ socket }: IncomingMessage): string {
  return socket.remoteAddress ?? '';
}

function joined(request: IncomingMessage): string {
  const address = clientOf(request);
  return `${address.includes(':') ? `[${address}]` : address}:${request.socket.remotePort ?? 0}`;
}

/** The user agent of probes, whose answers are not reported. */
const probeAgent = /^kube-probe\//;

const responseCounts = new Map<string, number>();
let listener: ((responses: PodResponses) => void) | undefined;
let timer: NodeJS.Timeout | undefined;

/**
 * The number of answers of built-in servers, by the key of the Pod: HTTP requests, TCP connections, UDP datagrams.
 */
export type PodResponses = readonly (readonly [string, number])[];

/** Between two reports. */
const reportIntervalMs = 200;

/** Counts one answer of a Pod. @param agent the header User-Agent of its client. */
function reportResponse({ namespace, pod }: PodIdentity, agent = ''): void {
  if (listener === undefined || probeAgent.test(agent)) return;
  const key = `${namespace}/${pod}`;
  responseCounts.set(key, (responseCounts.get(key) ?? 0) + 1);
  timer ??= setTimeout(report, reportIntervalMs).unref();
}

/** Reports answers from now on, every 200 ms at most. */
export function reportResponses(listen: (responses: PodResponses) => void): void {
  listener = listen;
}

function report(): void {
  timer = undefined;
  const responses = [...responseCounts];
  responseCounts.clear();
  listener?.(responses);
}

/** A port that a container declares. */
export interface DeclaredPort {
  readonly protocol: 'TCP' | 'UDP';
  readonly port: number;
}

export interface PodServerOptions {
  readonly host: Host;
  readonly identity: PodIdentity;
  /** The addresses to listen on: `0.0.0.0` and `::`, or a node's. */
  readonly addresses: readonly string[];
  readonly ports: readonly DeclaredPort[];
}

/** Of connections that HTTP has taken over, whose they are. */
const owners = new WeakMap<Socket, PodIdentity>();

/** HTTP of all Pods. */
const http = httpServer(async (request, response, target) => {
  const owner = owners.get(request.socket);
  if (owner === undefined) {
    response.destroy();
    return;
  }
  reportResponse(owner, request.headers['user-agent']);
  await answerHttp(owner, request, response, target);
});

/**
 * The servers of a Pod, one on each declared port. TCP is HTTP if the first bytes look so, else echo; UDP is echo.
 */
export class PodServer {
  readonly #options: PodServerOptions;
  readonly #servers: Server[] = [];
  readonly #datagrams: DatagramSocket[] = [];
  readonly #connections = new Set<Socket>();

  private constructor(options: PodServerOptions) {
    this.#options = options;
  }

  /** @throws the system's error where a port is taken; then nothing listens. */
  static async listen(options: PodServerOptions): Promise<PodServer> {
    const server = new PodServer(options);
    try {
      for (const port of options.ports) {
        for (const address of options.addresses) await server.#listen(port, address);
      }
      return server;
    } catch (error) {
      server.close();
      throw error;
    }
  }

  /** Ends at once, as killed containers do. */
  close(): void {
    for (const server of this.#servers) server.close();
    for (const socket of this.#datagrams) socket.close();
    for (const socket of this.#connections) socket.destroy();
  }

  async #listen({ protocol, port }: DeclaredPort, address: string): Promise<void> {
    const { host, identity } = this.#options;
    if (protocol === 'UDP') {
      const socket = await host.datagram(address, port);
      socket.on('message', () => reportResponse(identity));
      echoDatagrams(socket, identity.pod);
      this.#datagrams.push(socket);
      return;
    }
    const server = createServer({ allowHalfOpen: true }, (socket) => this.#serve(socket));
    await host.listen(server, address, port);
    this.#servers.push(server);
  }

  #serve(socket: Socket): void {
    this.#connections.add(socket);
    socket.once('close', () => this.#connections.delete(socket));
    this.#chooseProtocol(socket, Buffer.alloc(0));
  }

  #chooseProtocol(socket: Socket, before: Buffer): void {
    socket.once('readable', () => {
      const chunk: unknown = socket.read();
      if (!Buffer.isBuffer(chunk)) {
        socket.end();
        return;
      }
      const first = Buffer.concat([before, chunk]);
      const protocol = protocolOf(first);
      if (protocol === 'unclear') this.#chooseProtocol(socket, first);
      else if (protocol === 'echo') {
        reportResponse(this.#options.identity);
        echoStream(socket, first, this.#options.identity.pod);
      } else {
        owners.set(socket, this.#options.identity);
        socket.unshift(first);
        http.emit('connection', socket);
      }
    });
  }
}

const requestLines = METHODS.map((method) => `${method} `);

function protocolOf(first: Buffer): 'http' | 'echo' | 'unclear' {
  const text = first.toString('latin1', 0, 20);
  if (requestLines.some((line) => text.startsWith(line))) return 'http';
  return requestLines.some((line) => line.startsWith(text)) ? 'unclear' : 'echo';
}

/** The request that both servers answer with the Pod's name instead of an echo, as agnhost's `netexec` does. */
const nameQuestion = 'hostname';

/** Sends back all that comes, until the client ends. */
function echoStream(socket: Socket, first: Buffer, name: string): void {
  if (asksForName(first)) socket.write(`${name}\n`);
  else socket.write(first);
  socket.pipe(socket);
}

/** Sends every datagram back. */
function echoDatagrams(socket: DatagramSocket, name: string): void {
  socket.on('message', (message, client) => {
    sendDatagram(socket, asksForName(message) ? name : message, client);
  });
}

function asksForName(bytes: Buffer): boolean {
  return bytes.length <= nameQuestion.length + 2 && bytes.toString('latin1').trim() === nameQuestion;
}
