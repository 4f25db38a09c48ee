import { resourceNotFound, serviceUnavailable } from '../../objects/status-errors.ts';
import type { ApiRequest, Handler } from '../http/exchange.ts';
import { describeDialFailure } from './backend.ts';
import { type DialPod, noClusterNetwork, openRequest } from './dial-pod.ts';
import type { CertificatePair } from '../pki/certificates.ts';
import type { EndpointResolver, ProxyTarget } from './endpoint-resolver.ts';
import { copy, forward } from './exchange.ts';
import {
  backendPath,
  proxyPrefixOf,
  queryOf,
  headersToBackend,
  headersToClient,
  rewriteLocation,
} from './forwarding.ts';
import { rewriteLinks } from './html-links.ts';
import { joinHostPort } from '../../objects/address.ts';
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';

/**
 * Serves `services/<id>/proxy/…`, `pods/<id>/proxy/…` and `nodes/<id>/proxy/…` for every method: the request goes to an
 * endpoint, bodies stream both ways (apimachinery `util/proxy/upgradeaware.go`). Without `dialPod` none can be reached: 503.
 */
export function proxyHandler(
  resolver: EndpointResolver,
  dialPod: DialPod | undefined,
  kubeletClient?: CertificatePair,
): Handler {
  return async (request, reply) => {
    const target = resolveTarget(resolver, request);
    const path = backendPath(request);
    const query = queryOf(request.url);
    if (path === '' && (request.method === 'GET' || request.method === 'HEAD')) {
      // relative links of the page would otherwise leave the proxy
      const location = `${proxyPrefixOf(request)}/${query}`;
      reply.send(301, 'text/html; charset=utf-8', '', { Location: location });
      return;
    }
    if (dialPod === undefined) throw serviceUnavailable(noClusterNetwork);
    const asked = {
      method: request.method,
      path: `${path === '' ? '/' : path}${query}`,
      headers: headersToBackend(request),
    };
    const response = await forward(
      request,
      async () =>
        openRequest(
          dialPod,
          target,
          asked,
          request.signal,
          target.isKubelet === true ? kubeletClient : undefined,
        ),
      (error) => {
        throw serviceUnavailable(`error trying to reach service: ${describeDialFailure(error, target)}`);
      },
    );
    const hosts = [hostOf(target), request.headers.host ?? ''];
    const prefix = proxyPrefixOf(request);
    const rewrite = (link: string): string => rewriteLocation(link, prefix, hosts);
    const status = response.statusCode ?? 502;
    const headers = headersToClient(response.headers, rewrite);
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
  if (info.resource === 'nodes') return resolver.node(info.name);
  throw resourceNotFound();
}

/** The target as a URL names it; the default port is left out. */
function hostOf({ scheme, host, port }: ProxyTarget): string {
  return new URL(`${scheme}://${joinHostPort(host, port)}`).host;
}

/** The start of a response, read to see whether its links can be rewritten. */
interface Page {
  /**
   * The whole page, one character for each byte: links are ASCII, and whatever the page is encoded in stays so.
   * Undefined when the answer is no page or cannot be read as one.
   */
  readonly text?: string;
  /** The chunks that were read. */
  readonly read: readonly Buffer[];
}

/** Longer pages go through as they are. */
const maxBytes = 4 * 1024 * 1024;
const unzip = promisify(gunzip);

/** Reads an answer that is an HTML page, so that its links can lead through the proxy; leaves any other alone. */
async function readPage(response: IncomingMessage, method: string): Promise<Page> {
  const [type = ''] = (response.headers['content-type'] ?? '').split(';');
  const encoding = response.headers['content-encoding'] ?? '';
  const readable = encoding === '' || encoding === 'gzip';
  if (type.trim() !== 'text/html' || !readable || method === 'HEAD') return { read: [] };
  const read: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of response.iterator({ destroyOnReturn: false })) {
      if (!Buffer.isBuffer(chunk)) continue;
      read.push(chunk);
      length += chunk.length;
      if (length > maxBytes) return { read };
    }
    const body = Buffer.concat(read);
    const plain = encoding === 'gzip' ? await unzip(body, { maxOutputLength: 4 * maxBytes }) : body;
    return { text: plain.toString('latin1'), read };
  } catch {
    // Truncated or mislabelled content: the client gets it unchanged.
    return { read };
  }
}
