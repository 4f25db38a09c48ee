import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** The Pod whose server answers. */
export interface PodIdentity {
  readonly pod: string;
  readonly namespace: string;
  readonly node: string;
  /** Whether its containers are ready; asked at each request. */
  readonly isReady: () => boolean;
}

/** Milliseconds: the longest that `/slow` waits. */
const slowest = 300_000;

/**
 * Answers a request:
 *
 * - `/hostname`: the name of the Pod
 * - `/clientip`: the client's address and port
 * - `/healthz`: 200 while the Pod is ready, else 503
 * - `/slow?ms=500`: after that many milliseconds, up to five minutes
 * - `/status/503`: with this status, 200 to 599
 * - everything else: JSON with the Pod, its node and namespace, the client, the path and the headers
 */
export async function answerHttp(
  identity: PodIdentity,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://pod');
  // The client's data is read to its end, so that its connection can be used again.
  request.resume();
  const plain = plainAnswer(identity, request, url.pathname);
  if (plain !== undefined) {
    response.writeHead(plain.status, { 'Content-Type': 'text/plain; charset=utf-8' });
    response.end(`${plain.text}\n`);
    return;
  }
  if (url.pathname === '/slow') await delay(pauseOf(url), undefined, { ref: false });
  const { pod, namespace, node } = identity;
  const body = {
    ...{ pod, namespace, node },
    client: clientOf(request),
    method: request.method,
    path: request.url,
    headers: request.headers,
  };
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.end(`${JSON.stringify(body)}\n`);
}

function plainAnswer(
  { pod, isReady }: PodIdentity,
  request: IncomingMessage,
  path: string,
): { status: number; text: string } | undefined {
  if (path === '/hostname') return { status: 200, text: pod };
  if (path === '/clientip') return { status: 200, text: joined(request) };
  if (path === '/healthz')
    return isReady() ? { status: 200, text: 'ok' } : { status: 503, text: 'not ready' };
  const [, status] = /^\/status\/([2-5]\d\d)$/.exec(path) ?? [];
  return status === undefined ? undefined : { status: Number(status), text: status };
}

/** Milliseconds. */
function pauseOf(url: URL): number {
  const wanted = Number(url.searchParams.get('ms') ?? '0');
  return Math.min(Math.max(0, Number.isFinite(wanted) ? wanted : 0), slowest);
}

function clientOf({ socket }: IncomingMessage): string {
  return socket.remoteAddress ?? '';
}

function joined(request: IncomingMessage): string {
  const address = clientOf(request);
  return `${address.includes(':') ? `[${address}]` : address}:${request.socket.remotePort ?? 0}`;
}
