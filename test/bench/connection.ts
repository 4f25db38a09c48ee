import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';

/** Where a server is, and how to speak to it. */
export interface Target {
  readonly url: string;
  /** PEM. */
  readonly ca: string;
  /** Empty for none. */
  readonly token: string;
  /** A client's certificate, and its key: PEM. */
  readonly identity?: { readonly cert: string; readonly key: string };
}

/** A request as text; `body` is JSON. */
export interface Call {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  /** Default `application/json`. */
  readonly contentType?: string;
}

interface Waiting {
  resolve(body: Buffer): void;
  reject(error: Error): void;
}

const headEnd = Buffer.from('\r\n\r\n');

/**
 * One kept-alive HTTPS connection with one request at a time, that does as little as it can: clients of a bench share
 * the cores with the server that they measure.
 */
export class Connection {
  readonly #socket: TLSSocket;
  readonly #common: string;
  #waiting: Waiting | undefined;
  #received: Buffer[] = [];
  #length = 0;
  /** Bytes of the whole answer, once its head is there. */
  #expected = Infinity;
  #bodyStart = 0;

  private constructor(socket: TLSSocket, common: string) {
    this.#socket = socket;
    this.#common = common;
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('error', (error: Error) => this.#waiting?.reject(error));
    socket.on('close', () => this.#waiting?.reject(new Error('the server closed the connection')));
  }

  static async open(target: Target): Promise<Connection> {
    return new Connection(await dial(target), commonHeaders(target));
  }

  /** The body of the answer. @throws {Error} for any status but 200 and 201. */
  async request({ method, path, body = '', contentType = 'application/json' }: Call): Promise<Buffer> {
    const length = Buffer.byteLength(body);
    const content = length === 0 ? '' : `Content-Type: ${contentType}\r\nContent-Length: ${length}\r\n`;
    if (this.#socket.destroyed) throw new Error('the server has closed the connection, which was idle');
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.write(`${method} ${path} HTTP/1.1\r\n${this.#common}${content}\r\n${body}`);
    });
  }

  close(): void {
    this.#waiting = undefined;
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#received.push(chunk);
    this.#length += chunk.length;
    if (this.#expected === Infinity && !this.#readHead()) return;
    if (this.#length < this.#expected) return;
    const body = Buffer.concat(this.#received).subarray(this.#bodyStart);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.#received = [];
    this.#length = 0;
    this.#expected = Infinity;
    waiting?.resolve(body);
  }

  #readHead(): boolean {
    const all = Buffer.concat(this.#received);
    const end = all.indexOf(headEnd);
    if (end < 0) return false;
    const head = all.toString('latin1', 0, end);
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    if (!/^HTTP\/1\.1 20[01] /.test(head) || length === undefined) {
      this.#waiting?.reject(new Error(`unexpected answer: ${all.toString()}`));
      return false;
    }
    this.#bodyStart = end + headEnd.length;
    this.#expected = this.#bodyStart + Number(length);
    return true;
  }
}

/** Opens a watch and calls `onEvents` with how many more events have come. Returns how to end it. */
export async function openWatch(
  target: Target,
  path: string,
  onEvents: (count: number) => void,
): Promise<() => void> {
  const socket = await dial(target);
  socket.write(`GET ${path} HTTP/1.1\r\n${commonHeaders(target)}\r\n`);
  let last = 0;
  socket.on('data', (chunk: Buffer) => {
    let count = 0;
    // An event ends in a line feed alone, what HTTP adds in one behind a carriage return.
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) {
      if ((at === 0 ? last : chunk[at - 1]) !== 13) count++;
    }
    last = chunk.at(-1) ?? last;
    onEvents(count);
  });
  return () => socket.destroy();
}

async function dial({ url, ca, identity }: Target): Promise<TLSSocket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), ca, ...identity });
  await once(socket, 'secureConnect');
  socket.setNoDelay(true);
  return socket;
}

function commonHeaders({ url, token }: Target): string {
  const { host } = new URL(url);
  const authorization = token === '' ? '' : `Authorization: Bearer ${token}\r\n`;
  return `Host: ${host}\r\nUser-Agent: bench\r\nAccept: application/json\r\n${authorization}`;
}
