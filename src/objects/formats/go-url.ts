/** Paths of URLs as Go reads, joins and writes them (`net/url`, `path`): WHATWG's URLs differ. */

const keptByGo: ReadonlyMap<string, string> = new Map(
  Array.from('$&+,:;=@', (character) => [encodeURIComponent(character), character]),
);

/** A path as `URL.EscapedPath` writes it. Halves of surrogate pairs become U+FFFD. */
export function escapePath(path: string): string {
  return path
    .split('/')
    .map((segment) =>
      encodeURIComponent(segment.toWellFormed())
        .replaceAll(/%(24|26|2B|2C|3A|3B|3D|40)/g, (escape) => keptByGo.get(escape) ?? escape)
        .replaceAll(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`),
    )
    .join('/');
}

/** `path.Join` of absolute paths: without `.`, `..`, repeated slashes, and a slash at the end. */
export function joinPath(...parts: readonly string[]): string {
  const clean: string[] = [];
  for (const step of parts.join('/').split('/')) {
    if (step === '..') clean.pop();
    else if (step !== '' && step !== '.') clean.push(step);
  }
  return `/${clean.join('/')}`;
}

/** The parts of a URL, or of a reference to one. */
interface SplitUrl {
  /** As it was written. */
  readonly path: string;
  /** With its `?`, or "". */
  readonly query: string;
}

function splitUrl(url: string): SplitUrl {
  const [, path = '', query = ''] =
    /^(?:[A-Za-z][A-Za-z0-9+.-]*:(?=\/))?(?:\/\/(?!\/)[^/?#]*)?([^?#]*)(\?[^#]*)?/.exec(url) ?? [];
  return { path, query };
}

/** The path of a URL, unescaped (`URL.Path`); as it was written where an escape is wrong or no UTF-8. */
export function pathOfUrl(url: string): string {
  const { path } = splitUrl(url);
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** What Go keeps of a path whose escapes are right: it is sent as it was written. */
const validPath = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/[\]]|%[0-9A-Fa-f]{2})*$/;

/**
 * What is asked of a server for a path that a user wrote, with a query if it has one (kubelet `probe/http/request.go`,
 * `formatURL`): a host in it is dropped, what cannot be read is a path as a whole.
 */
export function requestPath(written: string): string {
  const isUrl = !hasControl(written) && !/%(?![0-9A-Fa-f]{2})/.test(splitUrl(written).path);
  const { path, query } = isUrl ? splitUrl(written) : { path: written, query: '' };
  const escaped = validPath.test(path) && isUrl ? path : escapePath(isUrl ? pathOfUrl(path) : path);
  const absolute = escaped.startsWith('/') ? escaped : `/${escaped}`;
  return `${absolute}${query.toWellFormed().replaceAll(/[^\u0021-\u007e]/gu, encodeURIComponent)}`;
}

/** `url.Parse` refuses them. */
function hasControl(text: string): boolean {
  return Array.from(text).some((character) => character < ' ' || character === '\u007f');
}

/** The parts of a request's target. */
export interface RequestTarget {
  /** As it was sent: not decoded, `.` and `..` kept. Begins with `/`, or is `*`. */
  readonly pathname: string;
  /** From the question mark on; empty without one. */
  readonly search: string;
  readonly searchParams: URLSearchParams;
}

/**
 * Reads the target of a request (RFC 9112, 3.2) as Go's server does (net/url `ParseRequestURI`): of the absolute form, the
 * path; `//` is a path. It never throws, as `new URL` does for what clients may send.
 *
 * @returns undefined for what is no target.
 */
export function readTarget(text = ''): RequestTarget | undefined {
  const [, authority, path = ''] = /^[a-z][a-z\d+.-]*:\/\/([^/?]*)(.*)$/is.exec(text) ?? [];
  if (authority !== undefined && !URL.canParse(`http://${authority}/`)) return undefined;
  const origin = authority === undefined ? text : path.startsWith('/') ? path : `/${path}`;
  const question = origin.indexOf('?');
  const pathname = question === -1 ? origin : origin.slice(0, question);
  if (!(pathname.startsWith('/') || pathname === '*') || /%(?![\da-f]{2})/i.test(pathname)) return undefined;
  const search = question === -1 ? '' : origin.slice(question);
  return { pathname, search, searchParams: new URLSearchParams(search) };
}
