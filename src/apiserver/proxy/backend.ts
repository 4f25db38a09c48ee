import {
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
  request as httpRequest,
} from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { isRecord } from '../../objects/json.ts';
import type { ProxyTarget } from './endpoint-resolver.ts';

/** kube-apiserver's dialer (`net.Dialer{Timeout: 30 * time.Second}`). */
const dialTimeoutMs = 30_000;

/** A request to a backend that can still be cut off. */
export function openRequest(target: ProxyTarget, options: RequestOptions): ClientRequest {
  const common: RequestOptions = { ...options, host: target.host, port: target.port, agent: false };
  // like kube-apiserver: the backend's certificate is for a name that nobody here knows
  const outgoing =
    target.scheme === 'https' ? httpsRequest({ ...common, rejectUnauthorized: false }) : httpRequest(common);
  const timer = setTimeout(() => {
    outgoing.destroy(Object.assign(new Error('dial timeout'), { code: 'ETIMEDOUT' }));
  }, dialTimeoutMs);
  const stop = (): void => clearTimeout(timer);
  outgoing.once('socket', (socket) => {
    if (!socket.connecting) stop();
    socket.once('connect', stop);
  });
  outgoing.once('close', stop);
  return outgoing;
}

/** How a backend answered: with a response, or by switching protocols. */
export interface BackendAnswer {
  readonly response: IncomingMessage;
  /** Present when the backend switched protocols. */
  readonly upgraded?: { readonly socket: Duplex; readonly head: Buffer };
}

/** Waits for the head of the answer. Rejects with the transport's error. */
export async function answerOf(outgoing: ClientRequest): Promise<BackendAnswer> {
  return new Promise((resolve, reject) => {
    outgoing.once('error', reject);
    outgoing.once('response', (response) => resolve({ response }));
    outgoing.once('upgrade', (response, socket, head) => resolve({ response, upgraded: { socket, head } }));
  });
}

const reasons: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'connect: connection refused'],
  ['EHOSTUNREACH', 'connect: no route to host'],
  ['ENETUNREACH', 'connect: network is unreachable'],
  ['EADDRNOTAVAIL', 'connect: cannot assign requested address'],
  ['ETIMEDOUT', 'i/o timeout'],
]);

/** A failure to reach a backend in the words of Go's net package. */
export function describeFailure(error: unknown, { host, port }: ProxyTarget): string {
  const code = isRecord(error) && typeof error['code'] === 'string' ? error['code'] : '';
  const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  const reason = reasons.get(code);
  if (reason !== undefined) return `dial tcp ${address}: ${reason}`;
  if (code === 'ECONNRESET') return 'EOF';
  return error instanceof Error ? error.message : String(error);
}
