import type { ApiRequest, Reply } from '../http/exchange.ts';

/** A document with its validators for caches. */
export interface Content {
  /** A media type, or a text that is one by its looks. */
  readonly contentType: string;
  readonly body: Buffer;
  /** In quotes; undefined when the document has none. */
  readonly etag?: string;
  /** When the document was written. */
  readonly modified: Date;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Answers as Go's `http.ServeContent` does, but for ranges: the document as it is, 304 without its type when the client
 * has this one.
 */
export function serveContent(request: ApiRequest, reply: Reply, content: Content): void {
  const { contentType, body, etag, modified } = content;
  const headers = { ...content.headers, ...(etag === undefined ? {} : { Etag: etag }) };
  const lastModified = { 'Last-Modified': modified.toUTCString() };
  if (isKnown(request, content)) {
    reply.sendAsIs(304, '', '', etag === undefined ? { ...headers, ...lastModified } : headers);
  } else reply.sendAsIs(200, contentType, body, { ...headers, ...lastModified });
}

/** An ETag decides alone; the time only without one. */
function isKnown({ headers }: ApiRequest, { etag = '', modified }: Content): boolean {
  const tags = headers['if-none-match'];
  if (tags !== undefined && tags !== '') {
    const known = tags.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
    return known.includes('*') || (etag !== '' && known.includes(etag));
  }
  const since = Date.parse(headers['if-modified-since'] ?? '');
  return Math.floor(modified.getTime() / 1000) * 1000 <= since;
}
