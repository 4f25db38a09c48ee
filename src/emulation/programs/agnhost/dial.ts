/** `/dial` of netexec: calls another netexec, and returns its answers (test/images/agnhost/netexec `dialHandler`). */
import { once } from 'node:events';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import type { Host } from '../../../host/host.ts';
import { request as httpRequest } from '../../../host/node-http.ts';
import type { AgnhostPlace } from './context.ts';
import { errorMessage } from '../../../objects/error-message.ts';

/** Milliseconds that one attempt has. */
const timeoutMs = 5000;
/** Most bytes of an answer. */
const maxBodyBytes = 1024 * 1024;
const maxTries = 1000;

/** A status, and JSON or the text of what was wrong with the request. */
export interface DialAnswer {
  readonly status: number;
  readonly body: { responses?: string[]; errors?: string[] } | string;
}

/** @param value of a query parameter: `host`, `port`, `request`, `protocol`, `tries`. */
export async function dial(
  { host, resolve }: Pick<AgnhostPlace, 'host' | 'resolve'>,
  value: (name: string) => string,
): Promise<DialAnswer> {
  const refused = (body: string): DialAnswer => ({ status: 400, body: `${body}\n` });
  const [name = '', port = '', request = '', protocol = '', tries = ''] = [
    ...['host', 'port', 'request', 'protocol', 'tries'],
  ].map(value);
  if (!/^[-+]?\d*$/.test(tries)) {
    return refused(
      `tries parameter is invalid. strconv.Atoi: parsing ${JSON.stringify(tries)}: invalid syntax`,
    );
  }
  if (request === '') return refused('request parameter not specified. <nil>');
  const ask = { '': bodyFrom, http: bodyFrom, udp: askUdp, sctp: askSctp }[protocol.toLowerCase()];
  if (ask === undefined) return refused(`unsupported protocol. ${protocol}`);
  if (!/^\d+$/.test(port) || Number(port) > 65535) {
    return refused(`host and/or port param are invalid. lookup ${port}: invalid port`);
  }
  let address: string;
  try {
    [address = ''] = await resolve(name === '' ? 'localhost' : name);
  } catch (error) {
    return refused(`host and/or port param are invalid. ${errorMessage(error)}`);
  }
  const responses: string[] = [];
  const errors: string[] = [];
  for (let i = 0; i < Math.min(tries === '' ? 1 : Number(tries), maxTries); i++) {
    try {
      responses.push(await ask(host, address, Number(port), request));
    } catch (error) {
      errors.push(errorMessage(error));
    }
  }
  return {
    status: 200,
    body: { ...(responses.length > 0 ? { responses } : {}), ...(errors.length > 0 ? { errors } : {}) },
  };
}

/** The body of an answer, from the network of a container. @throws the transport's error. */
export async function bodyFrom(host: Host, address: string, port: number, path: string): Promise<string> {
  const signal = AbortSignal.timeout(timeoutMs);
  const socket = await host.connect(address, port, { signal });
  try {
    const outgoing = httpRequest({
      ...{ host: address, port, path: `/${path}`, signal },
      createConnection: () => socket,
      headers: { Connection: 'close' },
    });
    outgoing.end();
    const response = await responseOf(outgoing);
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of response) {
      if (!Buffer.isBuffer(chunk) || (size += chunk.length) > maxBodyBytes) continue;
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString();
  } finally {
    socket.destroy();
  }
}

/** Waits for the head of the answer. Rejects with the transport's error. */
export async function responseOf(outgoing: ClientRequest): Promise<IncomingMessage> {
  return await new Promise((resolve, reject) => {
    outgoing.once('response', resolve);
    outgoing.once('error', reject);
  });
}

async function askUdp(host: Host, address: string, port: number, request: string): Promise<string> {
  const socket = await host.datagram(isIPv6(address) ? '::' : '0.0.0.0', 0);
  try {
    // A connected socket hears that the port is closed.
    socket.connect(port, address);
    await once(socket, 'connect');
    const answer = once(socket, 'message', { signal: AbortSignal.timeout(timeoutMs) });
    socket.send(request);
    const received: unknown[] = await answer;
    return String(received[0]);
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'AbortError';
    const why = isLate ? 'i/o timeout' : errorMessage(error);
    throw new Error(`reading from udp connection failed. err:'read udp ${address}:${port}: ${why}'`, {
      cause: error,
    });
  } finally {
    socket.close();
  }
}

/** Node.js has no SCTP sockets: the error of Linux without its module. */
function askSctp(): Promise<string> {
  return Promise.reject(new Error('sctp dial failed. err:protocol not supported'));
}
