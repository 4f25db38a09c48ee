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
