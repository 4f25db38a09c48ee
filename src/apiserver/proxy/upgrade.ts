import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { plainError, serviceUnavailable } from '../../objects/status.ts';
import type { ApiRequest, UpgradeHandler } from '../http/exchange.ts';
import { type BackendAnswer, answerOf, describeDialFailure } from './dial-pod.ts';
import { type DialPod, noClusterNetwork, openRequest } from './dial-pod.ts';
import type { CertificatePair } from '../../tls/certificates.ts';
import type { EndpointResolver } from './endpoint-resolver.ts';
import { backendPath, queryOf, headersToBackend } from './forwarding.ts';
import { resolveTarget } from './handler.ts';

/**
 * Serves upgrades (WebSocket) through `/proxy`: once the backend has switched protocols, bytes go both ways until
 * one side ends. A refusal of the backend is handed on. Without `dialPod` no Pod can be reached: 503.
 */
export function proxyUpgradeHandler(
  resolver: EndpointResolver,
  dialPod: DialPod | undefined,
  kubeletClient?: CertificatePair,
): UpgradeHandler {
  return async (request, client, head) => {
    const target = resolveTarget(resolver, request);
    if (dialPod === undefined) throw serviceUnavailable(noClusterNetwork);
    const asked = {
      method: request.method,
      path: `${backendPath(request) || '/'}${queryOf(request.url)}`,
      headers: upgradeHeaders(request),
    };
    await forwardUpgrade(
      client,
      head,
      async (signal) =>
        openRequest(dialPod, target, asked, signal, target.isKubelet === true ? kubeletClient : undefined),
      (error) => {
        throw plainError(`error dialing backend: ${describeDialFailure(error, target)}`);
      },
    );
  };
}

/** The headers of an upgrade that the backend gets. */
export function upgradeHeaders(request: ApiRequest): Record<string, string | string[]> {
  const { connection = 'Upgrade', upgrade = '' } = request.headers;
  return { ...headersToBackend(request), connection, upgrade };
}

/**
 * Forwards an upgrade. Once the backend has switched protocols, bytes pass both ways; a refusal is passed to the
 * client.
 *
 * @param open begins the request to the backend; the signal aborts when the client is gone.
 * @param unreachable reports to the client why there is no answer.
 */
export async function forwardUpgrade(
  client: Duplex,
  head: Buffer,
  open: (signal: AbortSignal) => Promise<ClientRequest>,
  unreachable: (error: unknown) => never,
): Promise<void> {
  const gone = new AbortController();
  client.once('close', () => gone.abort());
  let answer: BackendAnswer;
  try {
    const outgoing = await open(gone.signal);
    client.once('close', () => outgoing.destroy());
    outgoing.end();
    answer = await answerOf(outgoing);
  } catch (error) {
    return unreachable(error);
  }
  const { response, upgraded } = answer;
  const status = response.statusCode ?? 0;
  if (upgraded !== undefined) {
    client.write(headOf(response), 'latin1');
    connect(client, upgraded.socket, head, upgraded.head);
  } else if (status >= 400) {
    client.write(headOf(response, ['Connection', 'close']), 'latin1');
    response.pipe(client);
  } else {
    response.destroy();
    throw plainError(`invalid upgrade response: status code ${status}`);
  }
}

/**
 * The backend's status line and headers as text, a character for each byte; Node has checked that no value can end a
 * line.
 */
function headOf(response: IncomingMessage, more: readonly [string, string] | [] = []): string {
  const lines = [`HTTP/1.1 ${response.statusCode ?? 0} ${response.statusMessage ?? ''}`];
  const { rawHeaders } = response;
  const replaced = more.length === 0 ? [] : ['connection', 'transfer-encoding', 'content-length'];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (!replaced.includes(name.toLowerCase())) lines.push(`${name}: ${rawHeaders[i + 1] ?? ''}`);
  }
  if (more.length === 2) lines.push(more.join(': '));
  return `${lines.join('\r\n')}\r\n\r\n`;
}

function connect(client: Duplex, backend: Duplex, clientHead: Buffer, backendHead: Buffer): void {
  if (backendHead.length > 0) client.write(backendHead);
  if (clientHead.length > 0) backend.write(clientHead);
  backend.on('error', () => client.destroy());
  client.once('close', () => backend.destroy());
  backend.once('close', () => {
    if (backend.readableEnded) finish(client);
    else client.destroy();
  });
  client.pipe(backend);
  backend.pipe(client);
}

/** Milliseconds that a client has to close its side after everything was sent to it. */
const closeTimeoutMs = 10_000;

/** Ends a client's connection once it has taken what it was sent, however long that takes. */
function finish(client: Duplex): void {
  // Nobody takes what it still sends.
  client.unpipe();
  client.resume();
  client.end(() => {
    const late = setTimeout(() => client.destroy(), closeTimeoutMs).unref();
    client.once('close', () => clearTimeout(late));
  });
}
