import { plainHost } from '../network/http/rules.ts';
import type { ClientRequest } from './http/exchange.ts';

/** The target that a request names, read once: the backend gets what was decided on. */
export interface Asked {
  /** As the client wrote it, with its port. */
  readonly host: string;
  /** With the query. */
  readonly path: string;
}

/**
 * What a request asks for; else the status of its refusal: 400 for no or several hosts, a target of another form, a length
 * in doubt (RFC 9112, 3.2 and 6.3), 501 for CONNECT and for codings other than chunked (RFC 9112, 6.1).
 */
export function readAsked(request: ClientRequest): Asked | 400 | 501 {
  const { rawHeaders, url = '', httpVersion } = request;
  let host: string | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const isHost = name === ':authority' || (name.length === 4 && name.toLowerCase() === 'host');
    if (!isHost) continue;
    const value = rawHeaders[i + 1] ?? '';
    // HTTP/2 may have both, if they are the same (RFC 9113, 8.3.1).
    if (host !== undefined && (host !== value || request.httpVersionMajor === 1)) return 400;
    host = value;
  }
  if (request.method === 'CONNECT') return 501;
  const codingRefusal = refusedCoding(request);
  if (codingRefusal !== undefined) return codingRefusal;
  if (url.includes('#')) return 400;
  // HTTP/1.0 knows no Host: such a request is for rules without one.
  if (host === undefined && httpVersion === '1.0') host = '';
  if (url.startsWith('/')) {
    if (host === undefined || !(isHost(host) || (httpVersion === '1.0' && host === ''))) return 400;
    return { host, path: url };
  }
  // The absolute form: it goes before the header.
  const [, authority = '', path = ''] = /^https?:\/\/([^/?]+)(.*)$/i.exec(url) ?? [];
  if (!isHost(authority)) return 400;
  return { host: authority, path: path.startsWith('/') ? path : `/${path}` };
}

/** Undefined: the body has no coding, or is in chunks. */
function refusedCoding({ headers, httpVersion }: ClientRequest): 400 | 501 | undefined {
  const coding = headers['transfer-encoding']?.toLowerCase();
  if (coding === undefined || httpVersion === '2.0') return undefined;
  // Its length is in doubt (RFC 9112, 6.1).
  if (httpVersion === '1.0') return 400;
  if (coding === 'chunked') return undefined;
  const codings = coding.split(',').map((one) => one.trim());
  return codings.at(-1) === 'chunked' && codings.indexOf('chunked') === codings.length - 1 ? 501 : 400;
}

/** A name or address, and a port: no user, no blanks, no list. */
function isHost(host: string): boolean {
  return /^(?:[\w.~%!$&'()*+;=-]{1,255}|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i.test(host);
}

/** The port in a host; undefined: the scheme's own. */
export function portOf(host: string): number | undefined {
  const [, port = ''] = /:(\d+)$/.exec(host) ?? [];
  return port === '' ? undefined : Number(port);
}

export function withoutQuery(path: string): string {
  const query = path.indexOf('?');
  return query === -1 ? path : path.slice(0, query);
}

/** Where the same is asked for by TLS. */
export function secureUrl({ host, path }: Asked): string {
  return `https://${plainHost(host)}${path}`;
}
