/**
 * HTTP between two threads of one process: what a request and its answer say, without the bytes that a connection needs
 * and its parsers.
 */

/** What a client sends. */
export type ClientMessage = RequestMessage | { readonly kind: 'abort'; readonly id: number };

export interface RequestMessage {
  readonly kind: 'request';
  /** Unlike those of all other requests of the port. */
  readonly id: number;
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** Names and values, one after the other; names in lower case. */
  readonly headers: readonly string[];
  readonly body: string | null;
}

/** What a server sends, once for each request: the whole answer, or that it was cut off. */
export type ServerMessage = AnswerMessage | { readonly kind: 'cut'; readonly id: number };

export interface AnswerMessage {
  readonly kind: 'answer';
  readonly id: number;
  readonly status: number;
  /** As those of the request. */
  readonly headers: readonly string[];
  readonly body: string | ArrayBuffer;
}
