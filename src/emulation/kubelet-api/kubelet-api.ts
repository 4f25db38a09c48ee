import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import { type Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { TLSSocket } from 'node:tls';
import type { Logger } from 'pino';
import { type WebSocket, WebSocketServer } from 'ws';
import { ContainerError, type ContainerRuntime } from '../../controllers/kubelet/container-runtime.ts';
import type { Host } from '../../host/host.ts';
import { httpsServer } from '../../host/http-server.ts';
import { readTarget, type RequestTarget } from '../../objects/request-target.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import {
  logBytes,
  logOptions,
  logRefusal,
  checkRunning,
  type RemoteCommand,
  remoteCommandProtocols,
  serveRemoteCommand,
} from './streams.ts';
import {
  channelProtocol,
  forwardChannels,
  forwardTunnel,
  type PortForwardTarget,
  tunnelProtocol,
} from './port-forward.ts';
import { errorMessage } from '../../objects/status.ts';

export interface KubeletApiOptions {
  readonly runtime: ContainerRuntime;
  /** The Pod of a name; undefined where there is none. */
  pod(namespace: string, name: string): Pod | undefined;
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
 * attach and port-forward over WebSocket. One server may answer on several nodes.
 */
export class KubeletApi {
  readonly #options: KubeletApiOptions;
  readonly #webSockets = new WebSocketServer({
    noServer: true,
    maxPayload,
    // The first protocol that both support, in the order of the client.
    handleProtocols: (offered) => [...offered].find((protocol) => spoken.has(protocol)) ?? false,
  });
  /** For {@link tunnelProtocol} alone: ws refuses its name, which is no token of HTTP. */
  readonly #tunnels = new WebSocketServer({ noServer: true, maxPayload });

  constructor(options: KubeletApiOptions) {
    this.#options = options;
    this.#tunnels.on('headers', (headers) => void headers.push(`Sec-WebSocket-Protocol: ${tunnelProtocol}`));
  }

  /** Answers at the addresses of a node. Returns what ends it. @throws the system's error. */
  async listen(host: Host, addresses: readonly string[]): Promise<() => void> {
    const servers: Server[] = [];
    const close = (): void => {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
    };
    try {
      for (const address of addresses) {
        const server = this.#server();
        await host.listen(server, address, kubeletPort);
        servers.push(server);
      }
    } catch (error) {
      close();
      throw error;
    }
    return close;
  }

  #server(): Server {
    const { certificate, key, clientCa } = this.#options.tls;
    const server = httpsServer(
      { cert: certificate, key, ca: clientCa, requestCert: true },
      (request, response, target) =>
        this.#request(request, response, target).catch((error: unknown) =>
          this.#broken(error, request, response),
        ),
    );
    server.on('upgrade', (request, socket, head) => {
      // Node.js takes its own listener off a socket that it hands over.
      socket.on('error', () => socket.destroy());
      try {
        this.#upgrade(request, socket, head);
      } catch (error) {
        refuse(socket, error);
      }
    });
    return server;
  }

  async #request(
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

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const target = readTarget(request.url);
    if (target === undefined) throw new KubeletError(400, 'invalid URI for request');
    const { pathname: path, searchParams: query } = target;
    const wanted = this.#wanted(request, path);
    if (request.headers.upgrade?.toLowerCase() !== 'websocket') {
      throw new KubeletError(
        400,
        'only WebSocket upgrades are served: clients since Kubernetes 1.31 send them',
      );
    }
    if (wanted.verb === 'containerLogs') throw new KubeletError(400, 'logs are no stream of an upgrade');
    const offered = (request.headers['sec-websocket-protocol'] ?? '').split(/, */);
    // Clients of v5 hear it as a Status: a kube-apiserver connects them before it asks the kubelet.
    if (wanted.verb !== 'portForward' && !offered.includes(remoteCommandProtocols[0])) checkRunning(wanted);
    if (wanted.verb === 'portForward' && offered.includes(tunnelProtocol)) {
      delete request.headers['sec-websocket-protocol'];
      this.#accept(this.#tunnels, request, socket, head, (client) =>
        forwardTunnel(client, this.#forwardTarget(wanted.pod)),
      );
      return;
    }
    const ports = wanted.verb === 'portForward' ? portsOf(query) : [];
    this.#accept(this.#webSockets, request, socket, head, (client) => {
      if (wanted.verb === 'portForward') forwardChannels(client, ports, this.#forwardTarget(wanted.pod));
      else this.#command(client, wanted, query);
    });
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

  #command(client: WebSocket, { verb, pod, container }: ContainerPath, query: URLSearchParams): void {
    const { runtime, log } = this.#options;
    const is = (name: string): boolean => ['1', 'true'].includes(query.get(name) ?? '');
    const wanted: RemoteCommand = {
      ...{ stdin: is('input'), stdout: is('output'), stderr: is('error') && !is('tty'), tty: is('tty') },
    };
    const command = query.getAll('command');
    serveRemoteCommand(client, wanted, async (streams) => {
      checkRunning({ verb, pod, container });
      if (verb === 'exec') return await runtime.exec(pod, container, command, streams);
      await runtime.attach(pod, container, streams);
      return 0;
    }).catch((error: unknown) => {
      log.debug({ err: error, pod: pod.metadata.name }, 'a stream of a container broke off');
      client.terminate();
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

const spoken: ReadonlySet<string> = new Set([...remoteCommandProtocols, channelProtocol]);

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

const phrases = new Map([
  [404, 'Not Found'],
  [500, 'Internal Server Error'],
]);

function refuse(socket: Duplex, error: unknown): void {
  const { code, message } = answerTo(error);
  const head = [
    `HTTP/1.1 ${code} ${phrases.get(code) ?? 'Bad Request'}`,
    'Content-Type: text/plain; charset=utf-8',
  ];
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
