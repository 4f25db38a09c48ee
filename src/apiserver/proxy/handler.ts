import type { IncomingMessage } from 'node:http';
import { plainError, resourceNotFound, serviceUnavailable } from '../../objects/status-errors.ts';
import type { ApiRequest, Handler, ReplyStream } from '../http/exchange.ts';
import { answerOf, describeFailure, joinHostPort } from './backend.ts';
import { type DialPod, noClusterNetwork, openRequest } from './dial-pod.ts';
import type { EndpointResolver, ProxyTarget } from './endpoint-resolver.ts';
import {
  backendPath,
  prefixOf,
  queryOf,
  requestHeaders,
  responseHeaders,
  rewriteLocation,
} from './forwarding.ts';
import { rewriteLinks } from './html-links.ts';
import { readPage } from './page.ts';

/**
 * Serves `services/<id>/proxy/…` and `pods/<id>/proxy/…` for every method: the request goes to an endpoint, bodies
 * stream both ways (apimachinery `util/proxy/upgradeaware.go`). Without `dialPod` no Pod can be reached: 503.
 */
export function proxyHandler(resolver: EndpointResolver, dialPod: DialPod | undefined): Handler {
  return async (request, reply) => {
    const target = resolveTarget(resolver, request);
    const path = backendPath(request);
    const query = queryOf(request.url);
    if (path === '' && (request.method === 'GET' || request.method === 'HEAD')) {
      // relative links of the page would otherwise leave the proxy
      const location = `${prefixOf(request)}/${query}`;
      reply.send(301, 'text/html; charset=utf-8', '', { Location: location });
      return;
    }
    const response = await forward(dialPod, request, target, `${path === '' ? '/' : path}${query}`);
    const hosts = [hostOf(target), request.headers.host ?? ''];
    const prefix = prefixOf(request);
    const rewrite = (link: string): string => rewriteLocation(link, prefix, hosts);
    const status = response.statusCode ?? 502;
    const headers = responseHeaders(response.headers, rewrite);
    const { text, read } = await readPage(response, request.method);
    if (text === undefined) {
      await copy(read, response, reply.stream(status, headers));
      return;
    }
    const { 'content-length': _length, 'content-encoding': _encoding, ...kept } = headers;
    const stream = reply.stream(status, kept);
    stream.write(Buffer.from(rewriteLinks(text, rewrite), 'latin1'));
    stream.end();
  };
}

/** @throws {StatusError} */
export function resolveTarget(resolver: EndpointResolver, { info }: ApiRequest): ProxyTarget {
  if (info.group !== '' || info.subresource !== 'proxy') throw resourceNotFound();
  if (info.resource === 'services') return resolver.service(info.namespace, info.name);
  if (info.resource === 'pods') return resolver.pod(info.namespace, info.name);
  throw resourceNotFound();
}

/** The target as a URL names it; the default port is left out. */
function hostOf({ scheme, host, port }: ProxyTarget): string {
  return new URL(`${scheme}://${joinHostPort(host, port)}`).host;
}

async function forward(
  dialPod: DialPod | undefined,
  request: ApiRequest,
  target: ProxyTarget,
  path: string,
): Promise<IncomingMessage> {
  if (dialPod === undefined) throw serviceUnavailable(noClusterNetwork);
  const { incoming, signal, method } = request;
  const unreachable = (error: unknown): never => {
    throw serviceUnavailable(`error trying to reach service: ${describeFailure(error, target)}`);
  };
  const asked = { method, path, headers: requestHeaders(request) };
  const outgoing = await openRequest(dialPod, target, asked, signal).catch(unreachable);
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
 * Hands the body on as fast as the client takes it, behind what was `read` of it already. A body that breaks off
 * breaks off for the client too.
 */
async function copy(read: readonly Buffer[], response: IncomingMessage, stream: ReplyStream): Promise<void> {
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
