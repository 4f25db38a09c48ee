import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** What is left of a connection's bytes, read as the protocol's messages ask for them. */
class Bytes {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  async take(count: number): Promise<Buffer> {
    for (;;) {
      const chunk: unknown = this.#socket.read(count);
      if (Buffer.isBuffer(chunk)) return chunk;
      await new Promise<void>((resolve, reject) => {
        this.#socket.once('readable', resolve);
        this.#socket.once('close', () => reject(new Error('the client left')));
      });
    }
  }

  async text(): Promise<string> {
    const [length = 0] = await this.take(1);
    return (await this.take(length)).toString();
  }
}

/** A SOCKS5 proxy on loopback (RFC 1928, RFC 1929) that opens tunnels and notes to where. */
export class SocksProxy {
  /** `host:port` of each tunnel, in order. */
  readonly tunnels: string[] = [];
  /** `name:password` of each tunnel; undefined where the client offered none. */
  readonly authorizations: (string | undefined)[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor() {
    this.#server = createServer((client) => {
      this.#note(client);
      this.#serve(client).catch(() => client.destroy());
    });
  }

  /** Listens on a free port of 127.0.0.1. */
  static async start(): Promise<SocksProxy> {
    const proxy = new SocksProxy();
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get url(): string {
    const address: AddressInfo | string | null = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('not listening');
    return `socks5://127.0.0.1:${address.port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #serve(client: Socket): Promise<void> {
    const bytes = new Bytes(client);
    const [, methods = 0] = await bytes.take(2);
    const byPassword = (await bytes.take(methods)).includes(2);
    client.write(Buffer.from([5, byPassword ? 2 : 0]));
    if (byPassword) {
      await bytes.take(1);
      this.authorizations.push(`${await bytes.text()}:${await bytes.text()}`);
      client.write(Buffer.from([1, 0]));
    } else {
      this.authorizations.push(undefined);
    }
    const [, , , kind] = await bytes.take(4);
    const host = kind === 1 ? (await bytes.take(4)).join('.') : await bytes.text();
    const port = (await bytes.take(2)).readUInt16BE();
    this.tunnels.push(`${host}:${port}`);
    const server = connect(port, host, () => {
      client.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
      server.pipe(client).pipe(server);
    });
    this.#note(server);
  }

  #note(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#sockets.delete(socket));
  }
}
