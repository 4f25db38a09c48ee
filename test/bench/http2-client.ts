import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import type { Call, Target } from './connection.ts';

/** One connection over HTTP/2, with as many requests at a time as are asked for. */
export class Http2Client {
  readonly #session: ClientHttp2Session;
  readonly #token: string;

  private constructor(session: ClientHttp2Session, token: string) {
    this.#session = session;
    this.#token = token;
    session.on('error', () => undefined); // each request fails by it
  }

  static async open({ url, ca, token, identity }: Target): Promise<Http2Client> {
    const session = connect(url, { ca, ...identity });
    await once(session, 'connect');
    return new Http2Client(session, token);
  }

  /** The body of the answer. @throws {Error} for any status but 200. */
  async request({ method, path }: Call): Promise<Buffer> {
    const authorization = this.#token === '' ? {} : { authorization: `Bearer ${this.#token}` };
    const headers = { ':method': method, ':path': path, accept: 'application/json', ...authorization };
    const stream = this.#session.request(headers);
    const chunks: Buffer[] = [];
    let status: number | undefined;
    stream.on('response', (answer) => (status = answer[':status']));
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    await once(stream, 'end');
    if (status !== 200) throw new Error(`status ${status ?? 0} of ${path}`);
    return Buffer.concat(chunks);
  }

  close(): void {
    this.#session.destroy();
  }
}
