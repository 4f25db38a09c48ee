import type { Socket as DatagramSocket } from 'node:dgram';
import { createServer, type Server, type Socket } from 'node:net';
import type { Host } from '../../host/host.ts';
import { createServer as createHttpServer, METHODS } from '../../host/node-http.ts';
import { reportAnswer } from './answers.ts';
import { answerHttp, type PodIdentity } from './http.ts';

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
const http = createHttpServer((request, response) => {
  const owner = owners.get(request.socket);
  response.on('error', () => undefined);
  if (owner === undefined) {
    response.destroy();
    return;
  }
  reportAnswer(owner, request.headers['user-agent']);
  answerHttp(owner, request, response).catch(() => response.destroy());
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
      socket.on('error', () => undefined);
      socket.on('message', () => reportAnswer(identity));
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
    // Clients may close connections at any time.
    socket.on('error', () => undefined);
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
        reportAnswer(this.#options.identity);
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
  socket.on('message', (message, { port, address }) => {
    socket.send(asksForName(message) ? Buffer.from(name) : message, port, address);
  });
}

function asksForName(bytes: Buffer): boolean {
  return bytes.length <= nameQuestion.length + 2 && bytes.toString('latin1').trim() === nameQuestion;
}
