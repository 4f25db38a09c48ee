import type { ClientRequest, RequestOptions, IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { CertificatePair } from '../../tls/certificates.ts';
import type { ProxyTarget } from './endpoint-resolver.ts';
import type { Duplex } from 'node:stream';
import { isRecord } from '../../objects/json.ts';
import { joinHostPort } from '../../objects/address.ts';
import { errorMessage } from '../../objects/status.ts';

/**
 * Connects to a port of a Pod or a node through the cluster network, and resolves with the open connection.
 * Rejects with the transport's error (`code` as Node.js has it).
 *
 * A server without this function reaches no Pod: the address of a simulated Pod may be that of a host in the network
 * of the machine, and is never dialled there.
 */
export type DialPod = (address: string, port: number) => Promise<Socket>;

/** The message to clients when neither Pods nor nodes can be reached. */
export const noClusterNetwork =
  'Pods and nodes are simulated and the cluster network is off: none can be reached';

/** kube-apiserver's dialer (`net.Dialer{Timeout: 30 * time.Second}`). */
const dialTimeoutMs = 30_000;

/** Dials a Pod for one request. Rejects when it takes too long, or with the reason of `signal`. */
export async function dialInTime(
  dialPod: DialPod,
  { host, port }: Pick<ProxyTarget, 'host' | 'port'>,
  signal: AbortSignal,
): Promise<Socket> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  let over = false;
  const giveUp = (error: unknown): void => {
    over = true;
    reject(error instanceof Error ? error : new Error(String(error)));
  };
  const timer = setTimeout(() => {
    giveUp(Object.assign(new Error('dial timeout'), { code: 'ETIMEDOUT' }));
  }, dialTimeoutMs);
  const abort = (): void => giveUp(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  dialPod(host, port).then((socket) => {
    if (over) socket.destroy();
    else resolve(socket);
  }, giveUp);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

/**
 * Begins a request to a backend over a connection that was opened for it.
 *
 * @param client the client certificate of this server.
 */
export async function openRequest(
  dialPod: DialPod,
  target: ProxyTarget,
  options: RequestOptions,
  signal: AbortSignal,
  client?: CertificatePair,
): Promise<ClientRequest> {
  const { scheme, host, port } = target;
  const socket = await dialInTime(dialPod, target, signal);
  // An `error` event without a listener would end the process: the request reports it, too, as long as it has the socket.
  socket.on('error', () => socket.destroy());
  // The certificate of a Pod is for a name that is not known here: kube-apiserver does not check it either.
  const servername = isIP(host) === 0 ? { servername: host } : {};
  const connection =
    scheme === 'https'
      ? connectTls({
          socket,
          rejectUnauthorized: false,
          ...servername,
          cert: client?.certificate,
          key: client?.key,
        })
      : socket;
  connection.on('error', () => connection.destroy());
  // Not imported: that would load the fetch of Node.js too, 13 MiB.
  const { request } = process.getBuiltinModule('node:http');
  return request({
    ...options,
    host,
    port,
    defaultPort: scheme === 'https' ? 443 : 80,
    createConnection: () => connection,
  });
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
    outgoing.on('error', reject);
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
