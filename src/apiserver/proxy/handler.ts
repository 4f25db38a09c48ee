import { resourceNotFound, serviceUnavailable } from '../../objects/status.ts';
import type { ApiRequest, Handler } from '../http/exchange.ts';
import { describeDialFailure, type DialPod, noClusterNetwork, openRequest } from './dial-pod.ts';
import type { CertificatePair } from '../../tls/certificates.ts';
import type { EndpointResolver, ProxyTarget } from './endpoint-resolver.ts';
import {
  copy,
  forward,
  backendPath,
  proxyPrefixOf,
  queryOf,
  headersToBackend,
  headersToClient,
  rewriteLocation,
} from './forwarding.ts';
import { joinHostPort } from '../../objects/address.ts';
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';

/** Which attributes of which elements hold addresses (apimachinery `util/proxy/transport.go`, atomsToAttrs). */
const linkAttributes: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    a: 'href',
    applet: 'codebase',
    area: 'href',
    audio: 'src',
    base: 'href',
    blockquote: 'cite',
    body: 'background',
    button: 'formaction',
    command: 'icon',
    del: 'cite',
    embed: 'src',
    form: 'action',
    frame: 'longdesc src',
    head: 'profile',
    html: 'manifest',
    iframe: 'longdesc src',
    img: 'longdesc src usemap',
    input: 'src usemap formaction',
    ins: 'cite',
    link: 'href',
    object: 'classid codebase data usemap',
    q: 'cite',
    script: 'src',
    source: 'src',
    video: 'poster src',
  }).map(([element, attributes]) => [element, new Set(attributes.split(' '))]),
);

/** Elements whose content is always text, and how they end. */
const rawText: ReadonlyMap<string, RegExp> = new Map(
  ['script', 'style', 'textarea', 'title', 'xmp', 'iframe', 'noscript'].map((name) => [
    name,
    new RegExp(`</${name}`, 'gi'),
  ]),
);

/** Rewrites every link of a page and leaves all other bytes as they are, in one pass over the text. */
export function rewriteLinks(html: string, rewrite: (link: string) => string): string {
  let result = '';
  let copied = 0;
  let position = 0;
  for (;;) {
    const start = html.indexOf('<', position);
    if (start === -1) return result + html.slice(copied);
    if (html.startsWith('<!--', start)) {
      position = after(html, '-->', start + 4);
      continue;
    }
    const name = wordAt(html, start + 1);
    if (name === '') {
      position = start + 1;
      continue;
    }
    const tag = readTag(html, start + 1 + name.length);
    const links = linkAttributes.get(name.toLowerCase());
    for (const attribute of tag.attributes) {
      if (links?.has(attribute.name) !== true) continue;
      const link = html.slice(attribute.from, attribute.to);
      result += html.slice(copied, attribute.from) + rewrite(link);
      copied = attribute.to;
    }
    position = tag.end;
    const ending = rawText.get(name.toLowerCase());
    if (ending !== undefined) {
      ending.lastIndex = position;
      position = ending.exec(html)?.index ?? html.length;
    }
  }
}

interface Attribute {
  /** In lower case. */
  readonly name: string;
  /** The range of its value, without quotes. */
  readonly from: number;
  readonly to: number;
}

/** The attributes of a tag from behind its name on, and the position behind the tag. */
function readTag(html: string, start: number): { attributes: Attribute[]; end: number } {
  const attributes: Attribute[] = [];
  let position = start;
  while (position < html.length) {
    const character = html[position] ?? '';
    if (character === '>') return { attributes, end: position + 1 };
    if (isSpace(character) || character === '/') {
      position++;
      continue;
    }
    const nameEnd = until(
      html,
      position + 1,
      (next) => isSpace(next) || next === '=' || next === '/' || next === '>',
    );
    const name = html.slice(position, nameEnd).toLowerCase();
    const equals = until(html, nameEnd, (next) => !isSpace(next));
    if (html[equals] !== '=') {
      position = nameEnd;
      continue;
    }
    const from = until(html, equals + 1, (next) => !isSpace(next));
    const quote = html[from];
    if (quote === '"' || quote === "'") {
      const to = html.indexOf(quote, from + 1);
      if (to === -1) return { attributes, end: html.length };
      attributes.push({ name, from: from + 1, to });
      position = to + 1;
    } else {
      const to = until(html, from, (next) => isSpace(next) || next === '>');
      attributes.push({ name, from, to });
      position = to;
    }
  }
  return { attributes, end: html.length };
}

/** The position behind a text, the end where there is none. */
function after(html: string, text: string, start: number): number {
  const index = html.indexOf(text, start);
  return index === -1 ? html.length : index + text.length;
}

/** The letters and digits from a position on; a tag name begins with a letter. */
function wordAt(html: string, start: number): string {
  if (!/[a-z]/i.test(html[start] ?? '')) return '';
  return html.slice(
    start,
    until(html, start, (next) => !/[a-z0-9]/i.test(next)),
  );
}

function until(html: string, start: number, stop: (character: string) => boolean): number {
  let position = start;
  while (position < html.length && !stop(html[position] ?? '')) position++;
  return position;
}

function isSpace(character: string): boolean {
  return (
    character === ' ' || character === '\n' || character === '\t' || character === '\r' || character === '\f'
  );
}

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
