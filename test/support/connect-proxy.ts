import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

/** An HTTP proxy on loopback that opens tunnels (CONNECT) and notes to where. */
export class ConnectProxy {
  /** `host:port` of each tunnel, in order. */
  readonly tunnels: string[] = [];
  /** The Proxy-Authorization header of each tunnel. */
  readonly authorizations: (string | undefined)[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor() {
    this.#server = createServer((_request, response) => response.writeHead(501).end());
    this.#server.on('connect', (request: IncomingMessage, client: Socket) => {
      const target = request.url ?? '';
      this.tunnels.push(target);
      this.authorizations.push(request.headers['proxy-authorization']);
      const { hostname, port } = new URL(`http://${target}`);
      const server = connect(Number(port), hostname, () => {
        client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
        server.pipe(client).pipe(server);
      });
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.on('error', () => socket.destroy());
        socket.on('close', () => this.#sockets.delete(socket));
      }
    });
  }

  /** Listens on a free port of 127.0.0.1. */
  static async start(): Promise<ConnectProxy> {
    const proxy = new ConnectProxy();
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get url(): string {
    const address: AddressInfo | string | null = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('not listening');
    return `http://127.0.0.1:${address.port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
