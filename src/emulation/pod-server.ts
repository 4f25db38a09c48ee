import type { IncomingMessage } from 'node:http';
import type { Http2Server } from 'node:http2';
import { setTimeout as delay } from 'node:timers/promises';
import type { Socket as DatagramSocket } from 'node:dgram';
import { createServer, type Server, type Socket } from 'node:net';
import { accessLine, type AccessLogFormat, httpServer } from '../host/http-server.ts';
import type { Host } from '../host/host.ts';
import { METHODS } from '../host/node-http.ts';
import { sendDatagram } from '../host/sockets.ts';
import { joinKey, type ObjectKey } from '../objects/meta.ts';
import type { RequestTarget } from '../objects/formats/go-url.ts';
import { type Documents, fileAnswer } from './stand-ins/document-root.ts';
import { grpcCodes, grpcServer, healthAnswer, healthCheckPath } from './stand-ins/grpc-server.ts';
import { podPage, prefersHtml } from './stand-ins/page.ts';

/** The Pod whose server answers. */
export interface PodIdentity {
  readonly pod: string;
  readonly namespace: string;
  readonly node: string;
  readonly addresses: readonly string[];
  readonly container: string;
  /** As the container names it. */
  readonly image: string;
}

/** The container that a server stands in for. */
export interface ServedContainer extends PodIdentity {
  /** Whether its containers are ready; asked at each request. */
  readonly isReady: () => boolean;
  readonly logFormat: AccessLogFormat;
  /** Writes to the log of the container. */
  readonly write: (text: string) => void;
  /** The documents that it serves instead of its own answers. */
  readonly documents: Documents | undefined;
  /** A file of its volumes. @throws the system's error. */
  readonly readFile: (path: string) => Promise<Buffer>;
}

/** The longest that `/slow` waits. */
const maxSlowMs = 300_000;
/** Bytes of a request's body that are sent back. */
const maxEchoedBytes = 64 * 1024;

interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | string;
}

/**
 * The answer to a request. Of a web server with {@link Documents}: those, and `/healthz` where they have none. Of others:
 *
 * - `/hostname`: the name of the Pod
 * - `/clientip`: the client's address and port
 * - `/healthz`: 200 while the Pod is ready, else 503
 * - `/slow?ms=500`: after that many milliseconds, up to five minutes
 * - `/status/503`: with this status, 200 to 599
 * - everything else: the Pod, its node and namespace, the client, the path, the headers and the body that came, as JSON,
 *   or as a page for clients that prefer HTML
 */
async function answerTo(
  container: ServedContainer,
  request: IncomingMessage,
  { pathname, search, searchParams }: RequestTarget,
): Promise<HttpAnswer> {
  const { method = '', headers } = request;
  if (container.documents !== undefined) {
    // The client's data is read to its end, so that its connection can be used again.
    request.resume();
    const wanted = { method, pathname, search, host: headers.host ?? '' };
    const answer = await fileAnswer(container.documents, wanted, container.readFile);
    if (answer !== undefined && !(answer.status === 404 && pathname === '/healthz')) return answer;
  }
  const plain = plainAnswer(container, request, pathname);
  if (plain !== undefined) {
    request.resume();
    return { ...plain, headers: { 'Content-Type': 'text/plain; charset=utf-8' }, body: `${plain.text}\n` };
  }
  const sent = await bodyOf(request);
  if (pathname === '/slow') await delay(slowMs(searchParams), undefined, { ref: false });
  const { pod, namespace, node } = container;
  const path = request.url ?? '';
  if ((method === 'GET' || method === 'HEAD') && prefersHtml(headers.accept)) {
    const content = { ...container, method, path, client: joined(request), headers };
    return {
      status: 200,
      // By its next connection, a Service may lead to another Pod: the one that a browser keeps never does.
      headers: { ...pageHeaders, Connection: 'close' },
      body: podPage(content),
    };
  }
  const text = JSON.stringify({
    ...{ pod, namespace, node, client: clientOf(request), method, path, headers },
    ...sent,
  });
  return { status: 200, headers: { 'Content-Type': 'application/json' }, body: `${text}\n` };
}

const pageHeaders = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'",
  'Cache-Control': 'no-store',
};

/** The body of a request as text, and its length where only the beginning is sent back. */
async function bodyOf(request: IncomingMessage): Promise<{ body?: string; bodyBytes?: number }> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue;
    if (size < maxEchoedBytes) chunks.push(chunk);
    size += chunk.length;
  }
  if (size === 0) return {};
  const body = Buffer.concat(chunks).subarray(0, maxEchoedBytes).toString();
  return size > maxEchoedBytes ? { body, bodyBytes: size } : { body };
}

function plainAnswer(
  { pod, isReady }: ServedContainer,
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

function joined({ socket }: IncomingMessage): string {
  return endOf(socket.remoteAddress, socket.remotePort);
}

/** An address and its port. */
function endOf(address = '', port = 0): string {
  return `${address.includes(':') ? `[${address}]` : address}:${port}`;
}

/** The user agent of probes, whose answers are not reported. */
const probeAgent = /^kube-probe\//;

/** By Pod and container. */
const responseCounts = new Map<string, number>();
let listener: ((responses: PodResponses) => void) | undefined;
let timer: NodeJS.Timeout | undefined;

/** How much built-in servers have answered: HTTP requests, calls of gRPC, TCP connections, UDP datagrams. */
export type PodResponses = readonly (readonly [pod: ObjectKey, count: number, container: string])[];

/** Between two reports. */
const reportIntervalMs = 200;

/** Counts one answer of a Pod. @param agent the header User-Agent of its client. */
function reportResponse({ namespace, pod, container }: PodIdentity, agent = ''): void {
  if (listener === undefined || probeAgent.test(agent)) return;
  const key = `${container} ${joinKey(namespace, pod)}`;
  responseCounts.set(key, (responseCounts.get(key) ?? 0) + 1);
  timer ??= setTimeout(report, reportIntervalMs).unref();
}

/** Reports answers from now on, every 200 ms at most. */
export function reportResponses(listen: (responses: PodResponses) => void): void {
  listener = listen;
}

function report(): void {
  timer = undefined;
  const responses = [...responseCounts].map(([key, count]) => {
    const [container = '', pod = ''] = key.split(' ');
    return [pod, count, container] as const;
  });
  responseCounts.clear();
  listener?.(responses);
}

/** A port that a container declares. */
export interface DeclaredPort {
  readonly protocol: 'TCP' | 'UDP';
  readonly port: number;
  /** Another server may have it: then this one does without. */
  readonly isOptional?: boolean;
}

export interface PodServerOptions {
  readonly host: Host;
  readonly container: ServedContainer;
  /** The addresses to listen on: `0.0.0.0` and `::`, or a node's. */
  readonly addresses: readonly string[];
  readonly ports: readonly DeclaredPort[];
}

/** Of connections that HTTP has taken over, whose they are. */
const owners = new WeakMap<Socket, ServedContainer>();
/** Bytes of the bodies of answers. */
const bodyBytes = new WeakMap<object, number>();

/** HTTP of all Pods. */
const http = httpServer(async (request, response, target) => {
  const owner = owners.get(request.socket);
  if (owner === undefined) {
    response.destroy();
    return;
  }
  reportResponse(owner, request.headers['user-agent']);
  const { status, headers, body } = await answerTo(owner, request, target);
  const length = status === 204 || status === 304 ? undefined : Buffer.byteLength(body);
  bodyBytes.set(response, request.method === 'HEAD' ? 0 : (length ?? 0));
  response.writeHead(status, { ...headers, ...(length !== undefined && { 'Content-Length': length }) });
  response.end(body);
});

/** The status in nginx's log of a client that went away before its answer. */
const clientClosed = 499;

// Before the answer: a target that is none is answered without asking us.
http.prependListener('request', (request, response) => {
  const owner = owners.get(request.socket);
  if (owner === undefined) return;
  const { method, url, httpVersion, headers } = request;
  const client = clientOf(request);
  response.once('close', () => {
    const status = response.headersSent ? response.statusCode : clientClosed;
    const answered = { status, bytes: bodyBytes.get(response) ?? 0, atMs: Date.now() };
    owner.write(accessLine(owner.logFormat, { method, url, httpVersion, headers, client }, answered));
  });
});

/**
 * The servers of a container, one on each declared port. TCP is HTTP or gRPC if the first bytes look so, else echo; UDP is
 * echo. Who sends text gets a line more, which says who has answered.
 */
export class PodServer {
  /** Those that it has. */
  readonly ports: DeclaredPort[] = [];
  readonly #options: PodServerOptions;
  readonly #servers: Server[] = [];
  readonly #datagrams: DatagramSocket[] = [];
  readonly #connections = new Set<Socket>();
  /** Made for the first connection. */
  #grpc: Http2Server | undefined;

  private constructor(options: PodServerOptions) {
    this.#options = options;
  }

  /** @throws the system's error where a port is taken; then nothing listens. */
  static async listen(options: PodServerOptions): Promise<PodServer> {
    const server = new PodServer(options);
    try {
      for (const port of options.ports) {
        try {
          for (const address of options.addresses) await server.#listen(port, address);
          server.ports.push(port);
        } catch (error) {
          const isTaken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
          if (port.isOptional !== true || !isTaken) throw error;
        }
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
    const { host, container } = this.#options;
    if (protocol === 'UDP') {
      const socket = await host.datagram(address, port);
      echoDatagrams(socket, container);
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
      const { container } = this.#options;
      const chunk: unknown = socket.read();
      if (!Buffer.isBuffer(chunk)) {
        socket.end(introduction(container));
        return;
      }
      const first = Buffer.concat([before, chunk]);
      const protocol = protocolOf(first);
      if (protocol === 'unclear') this.#chooseProtocol(socket, first);
      else if (protocol === 'echo') {
        reportResponse(container);
        container.write(`TCP connection from ${endOf(socket.remoteAddress, socket.remotePort)}\n`);
        echoStream(socket, first, container);
      } else {
        owners.set(socket, container);
        socket.unshift(first);
        if (protocol === 'http') http.emit('connection', socket);
        else this.#grpcServer().emit('connection', socket);
      }
    });
  }

  #grpcServer(): Http2Server {
    const { container } = this.#options;
    this.#grpc ??= grpcServer(({ path, headers, client }) => {
      reportResponse(container, headers['user-agent']);
      const isHealth = path === healthCheckPath;
      const agent = JSON.stringify(headers['user-agent'] ?? '-');
      container.write(
        `gRPC ${JSON.stringify(path)} ${isHealth ? 'OK' : 'UNIMPLEMENTED'} from ${client} ${agent}\n`,
      );
      if (isHealth) return healthAnswer(container.isReady());
      return { code: grpcCodes.unimplemented, reason: introduction(container).trimEnd() };
    });
    return this.#grpc;
  }
}

const requestLines = [
  ...METHODS.map((method) => [`${method} `, 'http'] as const),
  ['PRI * HTTP/2.0', 'grpc'] as const,
];

function protocolOf(first: Buffer): 'http' | 'grpc' | 'echo' | 'unclear' {
  const text = first.toString('latin1', 0, 20);
  const known = requestLines.find(([line]) => text.startsWith(line));
  if (known !== undefined) return known[1];
  return requestLines.some(([line]) => line.startsWith(text)) ? 'unclear' : 'echo';
}

/** In each introduction. */
const role = 'a stand-in of servicenet';

/** Who answers, as a line. */
function introduction({ pod, namespace, node, addresses, image }: PodIdentity): string {
  return `Pod ${namespace}/${pod} (${addresses.join(', ')}) on ${node}: ${role} for ${image}\n`;
}

/** The request that both servers answer with the Pod's name instead of an echo, as agnhost's `netexec` does. */
const nameQuestion = 'hostname';

/** Sends back all that comes, until the client ends; then, to one that sends text, who it was. */
function echoStream(socket: Socket, first: Buffer, container: ServedContainer): void {
  const asksName = asksForName(first);
  socket.write(asksName ? `${container.pod}\n` : first);
  socket.pipe(socket, { end: false });
  socket.once('end', () => socket.end(asksName || !isText(first) ? '' : introduction(container)));
}

/** Sends every datagram back, and in a second one, to who sends text, who it was. */
function echoDatagrams(socket: DatagramSocket, container: ServedContainer): void {
  socket.on('message', (message, client) => {
    // Of another one, by a forged sender: two that introduce themselves to each other would never end.
    if (message.includes(role)) return;
    reportResponse(container);
    container.write(`UDP ${message.length} bytes from ${endOf(client.address, client.port)}\n`);
    const asksName = asksForName(message);
    sendDatagram(socket, asksName ? container.pod : message, client);
    if (!asksName && isText(message)) sendDatagram(socket, introduction(container), client);
  });
}

function asksForName(bytes: Buffer): boolean {
  return bytes.length <= nameQuestion.length + 2 && bytes.toString('latin1').trim() === nameQuestion;
}

/** Of a person, or of a protocol of lines. */
function isText(bytes: Buffer): boolean {
  return /^[\t\r\n\x20-\x7e\x80-\xff]*$/.test(bytes.toString('latin1'));
}
