import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { isRecord } from '../../objects/json.ts';
import type { ProxyTarget } from './endpoint-resolver.ts';
import { joinHostPort } from '../../objects/address.ts';
import { errorMessage } from '../../objects/error-message.ts';

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
export function describeDialFailure(
  error: unknown,
  { host, port }: Pick<ProxyTarget, 'host' | 'port'>,
): string {
  const code = isRecord(error) && typeof error['code'] === 'string' ? error['code'] : '';
  const address = joinHostPort(host, port);
  const reason = reasons.get(code);
  if (reason !== undefined) return `dial tcp ${address}: ${reason}`;
  if (code === 'ECONNRESET') return 'EOF';
  return errorMessage(error);
}
