import type { IncomingHttpHeaders, ClientRequest, IncomingMessage } from 'node:http';
import { posix } from 'node:path';
import type { ApiRequest, ReplyStream } from '../http/exchange.ts';
import { escapePath } from '../../objects/formats/go-url.ts';
import { withoutTrailingSlashes } from '../http/request.ts';
import { plainError } from '../../objects/status.ts';
import { answerOf } from './dial-pod.ts';

/**
 * The parts of a request that pass a proxy, and the parts of its response (Go's `httputil.ReverseProxy`, and
 * apimachinery `util/proxy`).
 */

/** They are about one connection, not about the request (RFC 9110, 7.6.1). */
const hopByHop = [
  'connection',
  'proxy-connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
];

/** Headers for the API server alone: credentials above all. */
const consumed = /^(authorization|impersonate-.*|x-forwarded-(host|proto|uri)|x-remote-.*)$/;

/** A backend cannot open this server to other origins. */
const originHeaders: ReadonlySet<string> = new Set([
  'access-control-allow-credentials',
  'access-control-allow-headers',
  'access-control-allow-methods',
  'access-control-allow-origin',
]);

/** The path in front of the proxied one: `/api/v1/namespaces/a/services/x/proxy`. */
export function proxyPrefixOf({ info }: ApiRequest): string {
  const tail = info.rest.length === 0 ? '' : `/${info.rest.join('/')}`;
  const path = withoutTrailingSlashes(info.path);
  return path.slice(0, path.length - tail.length);
}

/**
 * The path of the request to the backend, cleaned of `.` and `..` and encoded as Go encodes a path; "" when the request
 * ends in `/proxy`.
 */
export function backendPath({ info }: ApiRequest): string {
  const trailing = info.path.endsWith('/');
  if (info.rest.length === 0) return trailing ? '/' : '';
  const cleaned = posix.join('/', ...info.rest);
  const path = trailing && !cleaned.endsWith('/') ? `${cleaned}/` : cleaned;
  return escapePath(path);
}

/** The raw query with its `?`, or "". */
export function queryOf(url: string): string {
  const question = url.indexOf('?');
  return question === -1 ? '' : url.slice(question);
}

/** The headers of the request to the backend. */
export function headersToBackend(request: ApiRequest): Record<string, string | string[]> {
  const { headers, incoming } = request;
  const forwarded = endToEnd(headers, (name) => consumed.test(name));
  // The framing of the body is set here, as in the request, even if `Connection` names it: bytes after a body
  // without framing would be read as another request. Without a length, the encoding must be chunked.
  if (headers['content-length'] !== undefined) forwarded['content-length'] = headers['content-length'];
  if (headers['transfer-encoding'] !== undefined) forwarded['transfer-encoding'] = 'chunked';
  const client = incoming.socket.remoteAddress;
  if (client !== undefined) {
    const before = headers['x-forwarded-for'];
    const chain = [...(before === undefined ? [] : [before].flat()), client];
    forwarded['x-forwarded-for'] = chain.join(', ');
  }
  forwarded['x-forwarded-uri'] = escapePath(request.info.path);
  forwarded['x-forwarded-proto'] = 'https';
  if (headers.host !== undefined) forwarded['x-forwarded-host'] = headers.host;
  return forwarded;
}

/** The headers of the backend's answer that the client gets. */
export function headersToClient(
  headers: IncomingHttpHeaders,
  rewrite: (location: string) => string,
): Record<string, string | string[]> {
  const passed = endToEnd(headers, (name) => originHeaders.has(name));
  const { location } = headers;
  if (location !== undefined) passed['location'] = rewrite(location);
  return passed;
}

function endToEnd(
  headers: IncomingHttpHeaders,
  drop: (name: string) => boolean,
): Record<string, string | string[]> {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  const dropped = new Set([...hopByHop, ...named]);
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !dropped.has(name) && !drop(name)) kept[name] = value;
  }
  return kept;
}

/**
 * A redirect of the backend to itself, as a path through the proxy. Redirects to other hosts and relative ones stay
 * as they are (apimachinery `util/proxy/transport.go`, rewriteURL).
 *
 * @param hosts names that mean the backend: its own and the Host that the client sent.
 */
export function rewriteLocation(location: string, prefix: string, hosts: readonly string[]): string {
  let path = location;
  if (!location.startsWith('/') || location.startsWith('//')) {
    const base = URL.parse(location, 'http://relative.invalid/');
    if (base === null || !hosts.includes(base.host)) return location;
    path = `${base.pathname}${base.search}${base.hash}`;
  }
  return path.startsWith(prefix) ? path : `${prefix}${path}`;
}

/**
 * Forwards the body of a request and waits for the head of the answer.
 *
 * @param open begins the request to the backend.
 * @param unreachable reports to the client why there is no answer.
 */
export async function forward(
  request: ApiRequest,
  open: () => Promise<ClientRequest>,
  unreachable: (error: unknown) => never,
): Promise<IncomingMessage> {
  const { incoming, signal } = request;
  const outgoing = await open().catch(unreachable);
  const cut = (): void => void outgoing.destroy();
  if (signal.aborted) cut();
  else signal.addEventListener('abort', cut, { once: true });
  outgoing.once('close', () => signal.removeEventListener('abort', cut));
  const answered = answerOf(outgoing);
  // The answer may be complete while the body is still sent; failures after it are ignored.
  outgoing.on('error', () => incoming.unpipe(outgoing));
  incoming.pipe(outgoing);
  const { response, upgraded } = await answered.catch(unreachable);
  if (upgraded === undefined) return response;
  upgraded.socket.destroy();
  const protocol = JSON.stringify(response.headers.upgrade ?? '');
  throw plainError(`backend tried to switch protocol ${protocol} when "" was requested`);
}

/**
 * Copies the rest of the body to the client after the chunks in `read`, as fast as the client reads. A truncated body
 * is truncated for the client too.
 */
export async function copy(
  read: readonly Buffer[],
  response: IncomingMessage,
  stream: ReplyStream,
): Promise<void> {
  try {
    for (const chunk of read) if (!stream.write(chunk)) await stream.drained();
    for await (const chunk of response) {
      if (!Buffer.isBuffer(chunk)) continue;
      if (!stream.write(chunk)) await stream.drained();
    }
    stream.end();
  } catch {
    stream.destroy();
  }
}
