import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import { type Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { TLSSocket } from 'node:tls';
import type { Logger } from 'pino';
import { type WebSocket, WebSocketServer } from 'ws';
import {
  ContainerError,
  type ContainerRuntime,
  type ExecStreams,
} from '../../controllers/kubelet/container-runtime.ts';
import type { Host } from '../../host/host.ts';
import { httpsServer } from '../../host/http-server.ts';
import { STATUS_CODES } from '../../host/node-http.ts';
import { readTarget, type RequestTarget } from '../../objects/formats/go-url.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import { unanswered } from '../../tls/unanswered.ts';
import { commandProtocols, namesIn, portProtocols, selectProtocol } from './channels.ts';
import { type NodeAnswer, nodeAnswer, type NodeState } from './node-statistics.ts';
import { logBytes, logOptions, logRefusal } from './logs.ts';
import {
  forwardChannels,
  forwardSpdy,
  forwardTunnel,
  type PortForwardTarget,
  spdyPortProtocol,
  tunnelProtocol,
} from './port-forward.ts';
import {
  checkRunning,
  type RemoteCommand,
  serveRemoteCommand,
  serveSpdyCommand,
  spdyCommandProtocols,
} from './streams.ts';
import { errorMessage } from '../../objects/status.ts';

export interface KubeletApiOptions {
  readonly runtime: ContainerRuntime;
  /** The Pod of a name; undefined where there is none. */
  pod(namespace: string, name: string): Pod | undefined;
  /** A node and the Pods that are bound to it; undefined where there is none. */
  node(name: string): Pick<NodeState, 'node' | 'pods'> | undefined;
  /** PEM: of this server, and the authority of clients. */
  readonly tls: { readonly certificate: string; readonly key: string; readonly clientCa: string };
  /** The common name of the only client that is served: the API server. */
  readonly client: string;
  /** Milliseconds since the epoch. */
  now(): number;
  readonly log: Logger;
}

/** Bytes of a message. */
const maxPayload = 4 * 1024 * 1024;

/** The port of kubelets (`pkg/cluster/ports`). */
const kubeletPort = 10250;

/** A request about a container. */
interface ContainerPath {
  readonly verb: 'exec' | 'attach' | 'portForward' | 'containerLogs';
  readonly pod: Pod;
  readonly container: string;
}

/**
 * The server of a kubelet for the API server (`pkg/kubelet/server/server.go`): logs, and the streams of exec,
 * attach and port-forward over WebSocket and SPDY/3.1, statistics. One server may answer on several nodes.
 */
export class KubeletApi {
  readonly #options: KubeletApiOptions;
  readonly #webSockets = new WebSocketServer({
    noServer: true,
    maxPayload,
    // It was selected before.
    handleProtocols: ([protocol = '']) => protocol,
  });
  /** For {@link tunnelProtocol} alone: ws refuses its name, which is no token of HTTP. */
  readonly #tunnels = new WebSocketServer({ noServer: true, maxPayload });

  constructor(options: KubeletApiOptions) {
    this.#options = options;
    this.#tunnels.on('headers', (headers) => void headers.push(`Sec-WebSocket-Protocol: ${tunnelProtocol}`));
  }

  /** Answers at the addresses of a node. Returns what ends it. @throws the system's error. */
  async listen(host: Host, addresses: readonly string[], node: string): Promise<() => void> {
    const servers: Server[] = [];
    const close = (): void => {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
    };
    try {
      for (const address of addresses) {
        const server = this.#server(node);
        await host.listen(server, address, kubeletPort);
        servers.push(server);
      }
    } catch (error) {
      close();
      throw error;
    }
    return close;
  }

  #server(node: string): Server {
    const { certificate, key, clientCa } = this.#options.tls;
    const server = httpsServer(
      { cert: certificate, key, ca: clientCa, requestCert: true },
      (request, response, target) =>
        this.#request(node, request, response, target).catch((error: unknown) =>
          this.#broken(error, request, response),
        ),
    );
    server.on('upgrade', (request, socket, head) => {
      // Node.js takes its own listener off a socket that it hands over.
      socket.on('error', () => socket.destroy());
      const isUnanswered = unanswered(socket);
      if (!isUnanswered()) {
        socket.destroy();
        return;
      }
      try {
        this.#upgrade(request, socket, head);
      } catch (error) {
        if (isUnanswered()) refuse(socket, error);
        else socket.destroy();
      }
    });
    return server;
  }

  async #request(
    node: string,
    request: IncomingMessage,
    response: ServerResponse,
    { pathname: path, searchParams: query }: RequestTarget,
  ): Promise<void> {
    if (path === '/healthz') {
      response.end('ok');
      return;
    }
    if (path === '/logs/' || path === '/logs') {
      // The folder of the node's logs: programs of a simulated node write none.
      this.#authenticate(request);
      response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end('<pre>\n</pre>\n');
      return;
    }
    const about = this.#aboutNode(node, path);
    if (about !== undefined) {
      this.#authenticate(request);
      response.writeHead(200, { 'Content-Type': about.contentType }).end(about.body);
      return;
    }
    const wanted = this.#wanted(request, path);
    if (wanted.verb !== 'containerLogs')
      throw new KubeletError(400, 'unable to upgrade: missing upgrade headers');
    const { runtime } = this.#options;
    const options = logOptions(query, this.#options.now());
    const gone = new AbortController();
    response.once('close', () => gone.abort(new Error('the client is gone')));
    const { previous, follow, tailLines } = options;
    const refusal = logRefusal(wanted.pod, wanted.container, previous);
    if (refusal !== undefined) throw new KubeletError(400, refusal);
    const lines = runtime.logs(wanted.pod, wanted.container, {
      ...{ previous, follow, signal: gone.signal },
      ...(tailLines === undefined ? {} : { tailLines }),
    });
    const bytes = logBytes(lines, options);
    // A failure before the first line is a response with its own status.
    const first = await bytes.next();
    response.writeHead(200, { 'Content-Type': 'text/plain' });
    response.flushHeaders();
    if (first.done !== true) response.write(first.value);
    await pipeline(Readable.from(bytes), response).catch((error: unknown) => {
      if (!gone.signal.aborted) throw error;
    });
  }

  #aboutNode(name: string, path: string): NodeAnswer | undefined {
    const state = this.#options.node(name);
    return state === undefined ? undefined : nodeAnswer(path, { ...state, now: this.#options.now() });
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const target = readTarget(request.url);
    if (target === undefined) throw new KubeletError(400, 'invalid URI for request');
    const { pathname: path, searchParams: query } = target;
    const wanted = this.#wanted(request, path);
    if (wanted.verb === 'containerLogs') throw new KubeletError(400, 'logs are no stream of an upgrade');
    const upgrade = request.headers.upgrade?.toLowerCase();
    if (upgrade === 'spdy/3.1') {
      this.#spdy(request, wanted, query, socket, head);
      return;
    }
    if (upgrade !== 'websocket')
      throw new KubeletError(400, 'unable to upgrade: missing upgrade headers in request');
    const { headers } = request;
    if (
      wanted.verb === 'portForward' &&
      namesIn(headers['sec-websocket-protocol']).includes(tunnelProtocol)
    ) {
      delete headers['sec-websocket-protocol'];
      this.#accept(this.#tunnels, request, socket, head, (client) =>
        forwardTunnel(client, this.#forwardTarget(wanted.pod)),
      );
      return;
    }
    const spoken = wanted.verb === 'portForward' ? portProtocols : commandProtocols;
    const selected = selectProtocol(headers['sec-websocket-protocol'], spoken);
    if (selected === undefined)
      throw new KubeletError(403, notSupported(headers['sec-websocket-protocol'], spoken));
    // Clients of v5 hear it as a Status: a kube-apiserver connects them before it asks the kubelet.
    if (wanted.verb !== 'portForward' && selected !== 'v5.channel.k8s.io') checkRunning(wanted);
    if (selected === '') delete headers['sec-websocket-protocol'];
    else headers['sec-websocket-protocol'] = selected;
    const ports = wanted.verb === 'portForward' ? portsOf(query) : [];
    this.#accept(this.#webSockets, request, socket, head, (client) => {
      if (wanted.verb === 'portForward') forwardChannels(client, ports, this.#forwardTarget(wanted.pod));
      else
        this.#follow(
          wanted,
          client,
          serveRemoteCommand(client, commandOf(wanted.verb, query), this.#runner(wanted, query)),
        );
    });
  }

  /** Switches to SPDY (apimachinery `util/httpstream`, Handshake). @throws {KubeletError} 400 or 403 */
  #spdy(
    { headers }: IncomingMessage,
    wanted: ContainerPath,
    query: URLSearchParams,
    socket: Duplex,
    head: Buffer,
  ): void {
    const spoken = wanted.verb === 'portForward' ? new Map([[spdyPortProtocol, true]]) : spdyCommandProtocols;
    const offered = headers['x-stream-protocol-version'];
    if (offered === undefined)
      throw new KubeletError(400, 'unable to upgrade: X-Stream-Protocol-Version is required');
    const protocol = namesIn(offered).find((name) => spoken.has(name));
    if (protocol === undefined) {
      const what = `client supports [${namesIn(offered).join(' ')}], server accepts [${[...spoken.keys()].join(' ')}]`;
      throw new KubeletError(403, `unable to upgrade: unable to negotiate protocol: ${what}`);
    }
    if (wanted.verb !== 'portForward') checkRunning(wanted);
    const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: SPDY/3.1'];
    socket.write([...lines, `X-Stream-Protocol-Version: ${protocol}`, '', ''].join('\r\n'));
    if (wanted.verb === 'portForward') forwardSpdy(socket, head, this.#forwardTarget(wanted.pod));
    else {
      const run = this.#runner(wanted, query);
      this.#follow(
        wanted,
        socket,
        serveSpdyCommand(socket, head, protocol, commandOf(wanted.verb, query), run),
      );
    }
  }

  #accept(
    server: WebSocketServer,
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    serve: (client: WebSocket) => void,
  ): void {
    server.handleUpgrade(request, socket, head, (client) => {
      // `close` follows, and is handled.
      client.on('error', () => undefined);
      serve(client);
    });
  }

  #forwardTarget(pod: Pod): PortForwardTarget {
    const { namespace = '', name = '', uid = '' } = pod.metadata;
    return {
      name: `pod ${namespace}/${name}, uid ${uid}`,
      connect: async (port, signal) => this.#options.runtime.connectInside(pod, port, signal),
    };
  }

  #runner(wanted: ContainerPath, query: URLSearchParams): (streams: ExecStreams) => Promise<number> {
    const { runtime } = this.#options;
    const { verb, pod, container } = wanted;
    return async (streams) => {
      checkRunning(wanted);
      if (verb === 'exec') {
        // It outlives its client, as with containerd: nothing but its own end, or that of the container, ends it.
        const { signal: _, ...lasting } = streams;
        return await runtime.exec(pod, container, query.getAll('command'), lasting);
      }
      await runtime.attach(pod, container, streams);
      return 0;
    };
  }

  /** Cuts a connection that failed. */
  #follow({ pod }: ContainerPath, client: WebSocket | Duplex, served: Promise<void>): void {
    served.catch((error: unknown) => {
      this.#options.log.debug({ err: error, pod: pod.metadata.name }, 'a stream of a container broke off');
      if ('terminate' in client) client.terminate();
      else client.destroy();
    });
  }

  #wanted(request: IncomingMessage, path: string): ContainerPath {
    this.#authenticate(request);
    const [, verb = '', namespace = '', name = '', container = ''] = path.split('/').map(decodeURIComponent);
    if (!isVerb(verb)) throw new KubeletError(404, '404 page not found');
    const pod = this.#options.pod(namespace, name);
    if (pod === undefined) throw new KubeletError(404, `pod does not exist`);
    return { verb, pod, container };
  }

  /** Pods reach this port too: only the API server's certificate opens it. */
  #authenticate({ socket }: IncomingMessage): void {
    const name = socket instanceof TLSSocket ? socket.getPeerCertificate().subject.CN : undefined;
    if (name !== this.#options.client) throw new KubeletError(401, 'Unauthorized');
  }

  #broken(error: unknown, request: IncomingMessage, response: ServerResponse): void {
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const { code, message } = answerTo(error);
    if (code === 500) this.#options.log.error({ err: error, url: request.url }, 'the kubelet cannot answer');
    response.writeHead(code, { 'Content-Type': 'text/plain; charset=utf-8' }).end(message);
  }
}

/** In the words of apiserver `util/httpstream/wsstream/conn.go`. */
function notSupported(offered: string | undefined, spoken: ReadonlyMap<string, unknown>): string {
  return `requested protocol(s) are not supported: [${namesIn(offered).join(' ')}]; supports [${[...spoken.keys()].join(' ')}]`;
}

/** The streams of exec and attach. A terminal has one output. */
function commandOf(verb: ContainerPath['verb'], query: URLSearchParams): RemoteCommand {
  const is = (name: string): boolean => ['1', 'true'].includes(query.get(name) ?? '');
  const tty = is('tty');
  return {
    isAttach: verb === 'attach',
    stdin: is('input'),
    stdout: is('output'),
    stderr: is('error') && !tty,
    tty,
  };
}

/** An answer that is no success. */
class KubeletError extends Error {
  override readonly name = 'KubeletError';
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

function answerTo(error: unknown): { readonly code: number; readonly message: string } {
  if (error instanceof KubeletError) return error;
  // Logs of a container that has none yet (`GetKubeletContainerLogs`).
  if (error instanceof ContainerError) return { code: 400, message: error.message };
  // Of a path that cannot be decoded.
  if (error instanceof URIError) return { code: 400, message: error.message };
  return { code: 500, message: errorMessage(error) };
}

function refuse(socket: Duplex, error: unknown): void {
  const { code, message } = answerTo(error);
  const head = [`HTTP/1.1 ${code} ${STATUS_CODES[code] ?? ''}`, 'Content-Type: text/plain; charset=utf-8'];
  socket.end(
    `${head.join('\r\n')}\r\nContent-Length: ${Buffer.byteLength(message)}\r\nConnection: close\r\n\r\n${message}`,
  );
}

function isVerb(text: string): text is ContainerPath['verb'] {
  return text === 'exec' || text === 'attach' || text === 'portForward' || text === 'containerLogs';
}

/** @throws {KubeletError} 400 (kubelet `cri/streaming/portforward/websocket.go`). */
function portsOf(query: URLSearchParams): number[] {
  const ports = query.getAll('ports').flatMap((text) => text.split(','));
  if (ports.length === 0) throw new KubeletError(400, 'query parameter "port" is required');
  return ports.map((text) => {
    const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
    if (port < 1 || port > 65_535) throw new KubeletError(400, `invalid port ${JSON.stringify(text)}`);
    return port;
  });
}
