import type { MessagePort } from 'node:worker_threads';

/** How requests reach an API server: one implementation over HTTP (`http-transport.ts`), fakes in tests. */

/** Query parameters; `undefined` members are left out. */
export type QueryParameters = Readonly<Record<string, string | number | boolean | undefined>>;

/** Options of {@link Transport.request}. */
export interface RequestOptions {
  readonly query?: QueryParameters;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Default `application/json`. */
  readonly contentType?: string;
  /** Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Milliseconds until the whole answer must have arrived, waiting for Retry-After included; default 60,000. */
  readonly timeoutMs?: number;
  /** How often the request is sent again after 429 or 503 with Retry-After; default 10. */
  readonly maxRetries?: number;
}

/** Options of {@link Transport.stream}. */
export interface StreamOptions {
  readonly query?: QueryParameters;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** A whole answer with a status below 400. */
export interface ApiResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: ResponseHeaders;
  readonly bytes: Buffer;
  /** The body as JSON. @throws {UnexpectedAnswer} when it is not. */
  json(): unknown;
}

export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** An answer that is read in pieces. Leaving the iteration early, or aborting the signal, closes the connection. */
export interface ApiStream {
  readonly headers: ResponseHeaders;
  readonly chunks: AsyncIterable<Buffer>;
}

/** Sends requests to one API server with one identity. */
export interface Transport {
  /** The server's URL without a trailing slash; for messages. */
  readonly server: string;
  /**
   * Sends one request and reads the whole answer. It is sent again only where the server has done nothing yet: when it
   * refused the credentials once, and when it answered 429 or 503 with `Retry-After`, after that time and if that is
   * before the timeout (client-go `rest/with_retry.go`). Other retries are up to the caller.
   *
   * @param path absolute, e.g. `/api/v1/services`; segments must be encoded already.
   * @throws {StatusError} for an answer of 400 and above, parsed from its Status or made from its code.
   * @throws {ConnectionError} when no complete answer came; a write may have been applied.
   */
  request(method: string, path: string, options?: RequestOptions): Promise<ApiResponse>;
  /** Opens a GET whose answer is read in pieces (a watch), on a connection of its own. Throws as `request`. */
  stream(path: string, options?: StreamOptions): Promise<ApiStream>;
  /** Closes all connections; running requests fail. */
  close(): Promise<void>;
}

/** No complete answer came: refused, reset, timed out, aborted, or broken TLS. `cause` has the reason. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  /** The code for metrics and decisions: an errno (`ECONNREFUSED`), or `TIMEOUT`, `ABORTED`, `RESET`, `CREDENTIALS`. */
  readonly code: string;
  constructor(code: string, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** The server's answer is not one of the Kubernetes API. */
export class UnexpectedAnswer extends Error {
  override readonly name = 'UnexpectedAnswer';
}

/** The address of the API server and the identity of the client. */
export type ClusterSource = KubeConfigSource | EndpointSource;

/**
 * By kubeconfig: file, exec plugin, OIDC, client certificate, proxy. Without a path: `$KUBECONFIG`, then
 * `~/.kube/config`, then the Pod's service account.
 */
export interface KubeConfigSource {
  readonly kind: 'kubeconfig';
  readonly path?: string;
  readonly context?: string;
}

/** Given directly, without client-node: what `up` uses for its own controllers. */
export interface EndpointSource {
  readonly kind: 'endpoint';
  /** `https://127.0.0.1:6443` or `http://…`. */
  readonly url: string;
  /** PEM. Absent: the system's authorities. */
  readonly ca?: string | Buffer;
  readonly token?: string;
  /** Read again every minute and after a 401, as service account tokens are rotated. */
  readonly tokenFile?: string;
  /** PEM of a client certificate and its key. */
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** A Unix socket that leads to the server without TLS, in the place of the URL's host and port. */
  readonly socketPath?: string | undefined;
  /** Leads to the server in another thread of this process. Watches go by the socket or the URL. */
  readonly thread?: MessagePort | undefined;
  /** Requests in flight at once, watches aside; default 32. Others wait, which counts into their timeouts. */
  readonly connections?: number;
}
