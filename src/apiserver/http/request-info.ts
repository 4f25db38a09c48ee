import type { RequestInfo } from './exchange.ts';

/** What a request asks for. `path` is the decoded-by-segment request path without the query. */
export function requestInfo(_method: string, _path: string, _query: URLSearchParams): RequestInfo {
  throw new Error('not built yet');
}
