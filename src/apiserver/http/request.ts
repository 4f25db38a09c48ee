import type { IncomingHttpHeaders } from 'node:http';
import type { Writable } from 'node:stream';
import { badRequest, tooLarge } from '../../objects/status.ts';
import type { ApiRequest, IncomingRequest, RequestInfo } from './exchange.ts';
import { turnForLongWork } from '../../telemetry/time-slice.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

/** kube-apiserver's limit of a request body (apiserver `server/config.go`, MaxRequestBodyBytes). */
const maxBodyBytes = 3 * 1024 * 1024;
/** A body that takes a millisecond and more to parse. */
const largeBodyBytes = 64 * 1024;

function overLimit(): Error {
  return tooLarge(`Request entity too large: limit is ${maxBodyBytes}`);
}

/**
 * Reads a body into memory, at most {@link maxBodyBytes} of it: a client that announces or sends more is refused at that
 * point, and what still comes is thrown away unread.
 *
 * @throws {StatusError} 413, or 400 when the client ends in the middle.
 */
async function readBody(incoming: IncomingRequest): Promise<Buffer> {
  if (Number(incoming.headers['content-length'] ?? 0) > maxBodyBytes) throw overLimit();
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    // The listeners stay until the message is freed; they ignore what still arrives.
    let settled = false;
    const onClose = (): void => {
      if (settled) return;
      settled = true;
      reject(badRequest('unexpected EOF'));
    };
    incoming
      .on('data', (chunk: Buffer) => {
        if (settled) return;
        length += chunk.length;
        if (length <= maxBodyBytes) {
          chunks.push(chunk);
          return;
        }
        settled = true;
        reject(overLimit());
      })
      .on('end', () => {
        if (settled) return;
        settled = true;
        const [first] = chunks;
        resolve(first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks, length));
      })
      .on('close', onClose)
      .on('error', onClose);
  });
}

const namespaceSubresources: ReadonlySet<string> = new Set(['status', 'finalize']);

const verbs: ReadonlyMap<string, string> = new Map([
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['POST', 'create'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
]);

const nothing: readonly string[] = [];

/**
 * The verb, resource and name of a request: the rules of kube-apiserver's RequestInfoFactory (apiserver
 * `pkg/endpoints/request/requestinfo.go`). Slashes at both ends of the path do not count.
 *
 * @param path the decoded path, without the query.
 */
export function requestInfo(method: string, path: string, query: URLSearchParams): RequestInfo {
  const parts = segments(path);
  const prefixLength = parts[0] === 'api' ? 2 : parts[0] === 'apis' ? 3 : Infinity;
  if (parts.length <= prefixLength) return nonResource(method, path);

  const group = prefixLength === 3 ? (parts[1] ?? '') : '';
  const version = parts[prefixLength - 1] ?? '';
  let index = prefixLength;
  let verb = verbs.get(method) ?? '';
  if (parts[index] === 'watch' || parts[index] === 'proxy') {
    verb = parts[index] ?? '';
    index++;
    if (index >= parts.length) return nonResource(method, path);
  }

  let namespace = '';
  if (parts[index] === 'namespaces' && parts.length > index + 1) {
    namespace = parts[index + 1] ?? '';
    // namespaces/x/services is a resource of its own; namespaces/x/status belongs to the namespace
    const third = parts[index + 2];
    if (third !== undefined && !namespaceSubresources.has(third)) index += 2;
  }

  const resource = parts[index] ?? '';
  let name = parts[index + 1] ?? '';
  const subresource = verb === 'proxy' ? '' : (parts[index + 2] ?? '');
  if (name === '' && verb === 'get') {
    verb = isTrue(query.get('watch')) ? 'watch' : 'list';
    name = nameOfFieldSelector(query.get('fieldSelector'));
  } else if (name === '' && verb === 'delete') {
    verb = 'deletecollection';
  }
  const rest = parts.length > index + 3 ? parts.slice(index + 3) : nothing;
  return { isResource: true, verb, path, group, version, namespace, resource, subresource, name, rest };
}

function nonResource(method: string, path: string): RequestInfo {
  return {
    isResource: false,
    verb: method.toLowerCase(),
    path,
    group: '',
    version: '',
    namespace: '',
    resource: '',
    subresource: '',
    name: '',
    rest: nothing,
  };
}

function segments(path: string): readonly string[] {
  let start = 0;
  let end = path.length;
  while (start < end && path.charCodeAt(start) === 0x2f) start++;
  while (end > start && path.charCodeAt(end - 1) === 0x2f) end--;
  return start === end ? nothing : path.slice(start, end).split('/');
}

/**
 * A boolean query parameter: `0` and `false` in any case are false, everything else is true (apimachinery
 * `runtime/conversion.go`, Convert_Slice_string_To_bool).
 */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== '0' && value.toLowerCase() !== 'false';
}

/**
 * The name that a list or watch is bound to by `metadata.name=<name>` in its field selector, so that an
 * authorizer can grant it by resource name; "" where there is none.
 */
function nameOfFieldSelector(selector: string | null): string {
  if (selector === null || !selector.includes('metadata.name')) return '';
  for (const term of selector.split(',')) {
    const match = /^metadata\.name==?([^=!\\]+)$/.exec(term);
    const name = match?.[1];
    // a name that cannot be one path segment names nothing (api/validation/path)
    if (name !== undefined && name !== '.' && name !== '..' && !/[/%]/.test(name)) return name;
  }
  return '';
}

/** A path without the slashes at its end; "/" stays. One pass, for any number of them. */
export function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (end > 1 && path.charCodeAt(end - 1) === 0x2f) end--;
  return path.slice(0, end);
}

/** A request target, taken apart. */
export interface Target {
  /** Decoded. */
  readonly path: string;
  /** Without the `?`. */
  readonly query: string;
}

/**
 * Parses a request target: origin form, or absolute form as sent to a proxy.
 *
 * @throws {StatusError} 400 for a path whose percent encoding is broken.
 */
export function parseTarget(url: string): Target {
  let origin = url;
  if (!url.startsWith('/')) {
    const path = /^https?:\/\/[^/?]*(.*)$/is.exec(url)?.[1] ?? '';
    origin = path.startsWith('/') ? path : `/${path}`;
  }
  const question = origin.indexOf('?');
  const raw = question === -1 ? origin : origin.slice(0, question);
  return { path: decode(raw), query: question === -1 ? '' : origin.slice(question + 1) };
}

function decode(raw: string): string {
  if (!raw.includes('%')) return raw;
  try {
    return decodeURIComponent(raw);
  } catch {
    throw badRequest('the request path is not validly encoded');
  }
}

/** Shared by all requests without one; never changed. */
const noQuery = new URLSearchParams();

/** Parameters in one query, as in Go (`net/url`, urlmaxqueryparams). */
const maxParameters = 10_000;

/** @throws {StatusError} 400 for more parameters than Go reads. */
function parseQuery(query: string): URLSearchParams {
  if (query === '') return noQuery;
  let parameters = 1;
  for (let at = query.indexOf('&'); at !== -1; at = query.indexOf('&', at + 1)) parameters++;
  if (parameters > maxParameters) throw badRequest('number of URL query parameters exceeded limit');
  return new URLSearchParams(query);
}

/** A request, whose signal and query are made at the first use: most requests need neither. */
export class HttpRequest implements ApiRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly info: RequestInfo;
  readonly user: UserInfo;
  readonly incoming: IncomingRequest;
  readonly query: URLSearchParams;
  readonly #onSignal: () => AbortSignal;
  #madeSignal: AbortSignal | undefined;

  /** @throws {StatusError} 400 for a query of too many parameters. */
  constructor(
    incoming: IncomingRequest,
    target: Target,
    user: UserInfo,
    /** Called at most once. */
    onSignal: () => AbortSignal,
  ) {
    this.incoming = incoming;
    this.method = incoming.method ?? '';
    this.url = incoming.url ?? '';
    this.headers = incoming.headers;
    this.query = parseQuery(target.query);
    this.info = requestInfo(this.method, target.path, this.query);
    this.user = user;
    this.#onSignal = onSignal;
  }

  get signal(): AbortSignal {
    this.#madeSignal ??= this.#onSignal();
    return this.#madeSignal;
  }

  async body(): Promise<Buffer> {
    const body = await readBody(this.incoming);
    if (body.length > largeBodyBytes) await turnForLongWork();
    return body;
  }
}

/** A signal that is aborted when the answer's connection closes before the answer is complete. */
export function abortWithClient(response: Writable, controller: AbortController): void {
  response.once('close', () => {
    if (!response.writableFinished) controller.abort();
  });
}
