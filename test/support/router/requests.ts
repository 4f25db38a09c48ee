import { Agent, request, type IncomingHttpHeaders, type RequestOptions } from 'node:http';
import { request as requestTls } from 'node:https';
import { connect, type Socket } from 'node:net';

export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** One request on a connection of its own, whose host is not where it goes to. */
export async function ask(
  port: number,
  host: string,
  options: Omit<RequestOptions, 'headers'> & {
    body?: string | Buffer;
    ca?: string;
    /** Of TLS; default: the host. */
    servername?: string;
    /** false: the certificate is not checked. */
    rejectUnauthorized?: boolean;
    headers?: Readonly<Record<string, string>>;
  } = {},
): Promise<Answered> {
  const { body, ca, headers = {}, ...rest } = options;
  const secure = ca === undefined ? {} : { ca, servername: host };
  const send = ca === undefined ? request : requestTls;
  return await new Promise((resolve, reject) => {
    const sent = send(
      { host: '127.0.0.1', port, agent: false, headers: { host, ...headers }, ...secure, ...rest },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks).toString(),
          }),
        );
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Sends text as it is, and returns all that comes until the connection ends. */
export async function sendText(port: number, text: string): Promise<string> {
  return await new Promise((resolve, reject) => {
    const socket: Socket = connect(port, '127.0.0.1', () => socket.write(text));
    let got = '';
    socket.setEncoding('latin1');
    socket.on('data', (piece: string) => (got += piece));
    socket.on('error', reject);
    socket.on('close', () => resolve(got));
  });
}

/** Connections that are kept, closed by `destroy`. */
export function keepAlive(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 8 });
}
