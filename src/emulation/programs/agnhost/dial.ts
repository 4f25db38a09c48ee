/** `/dial` of netexec: asks another netexec, and says what came. */
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { isIPv6 } from 'node:net';
import type { Host } from '../../../host/host.ts';

/** Milliseconds that one attempt has. */
const patience = 5000;
/** Most bytes of an answer. */
const longest = 1024 * 1024;
const mostTries = 1000;

/** @param value of a query parameter: `host`, `port`, `request`, `protocol`, `tries`. */
export async function dial(
  host: Host,
  value: (name: string) => string,
): Promise<{ status: number; body: { responses?: string[]; errors?: string[] } | string }> {
  const [address, port, request, protocol] = ['host', 'port', 'request', 'protocol'].map(value);
  if (!address || !port || !request) return { status: 400, body: 'host, port and request must be given' };
  const tries = Math.min(Number(value('tries')) || 1, mostTries);
  const responses: string[] = [];
  const errors: string[] = [];
  for (let i = 0; i < tries; i++) {
    try {
      const ask = protocol === 'udp' ? askUdp : askHttp;
      responses.push(await ask(host, address, Number(port), request));
    } catch (error) {
      errors.push(error instanceof Error ? error.message : String(error));
    }
  }
  return {
    status: 200,
    body: { ...(responses.length > 0 ? { responses } : {}), ...(errors.length > 0 ? { errors } : {}) },
  };
}

async function askHttp(host: Host, address: string, port: number, path: string): Promise<string> {
  const signal = AbortSignal.timeout(patience);
  const socket = await host.connect(address, port, { signal });
  try {
    const outgoing = httpRequest({
      ...{ host: address, port, path: `/${path.replace(/^\//, '')}`, signal },
      createConnection: () => socket,
      headers: { Connection: 'close' },
    });
    outgoing.end();
    const response = await responseOf(outgoing);
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of response) {
      if (!Buffer.isBuffer(chunk) || (size += chunk.length) > longest) continue;
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString().trim();
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
    const answer = new Promise<string>((resolve) => {
      socket.once('message', (message) => resolve(message.toString().trim()));
    });
    const late = once(AbortSignal.timeout(patience), 'abort').then(() => {
      throw new Error(`read udp ${address}:${port}: i/o timeout`);
    });
    socket.send(request.replace(/\?msg=/, ' '), port, address);
    return await Promise.race([answer, late]);
  } finally {
    socket.close();
  }
}
