import { StatusError, errorMessage } from '../objects/status.ts';
import {
  ConnectionError,
  UnexpectedAnswer,
  type ApiResponse,
  type ApiStream,
  type QueryParameters,
  type RequestOptions,
  type ResponseHeaders,
  type StreamOptions,
  type Transport,
} from './transport.ts';
import type { Credentials, ClientIdentity } from './credentials/identity.ts';
import type { DispatcherFactory, HttpAnswer, HttpRequests } from './dispatchers.ts';
import { createHash } from 'node:crypto';
import type { Metrics } from '../telemetry/metrics.ts';
import { version } from '../telemetry/version.ts';
import { type Clock, systemClock } from './clock.ts';
import { errorFromResponse, retryAfterSeconds } from './errors.ts';
import { escapePath, joinPath, pathOfUrl } from '../objects/formats/go-url.ts';

/** A time limit and the caller's signal in one; both are removed when the request is over. */
class Deadline {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort: () => void;
  readonly #end: number;
  #timedOut = false;

  constructor(milliseconds: number, outer: AbortSignal | undefined) {
    this.#outer = outer;
    this.#end = performance.now() + milliseconds;
    this.#onAbort = () => this.#controller.abort();
    this.#timer = setTimeout(() => {
      this.#timedOut = true;
      this.#controller.abort();
    }, milliseconds);
    if (outer?.aborted === true) this.#controller.abort();
    else outer?.addEventListener('abort', this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Milliseconds that are left. */
  get left(): number {
    return this.#end - performance.now();
  }

  /** Ends the time limit: from now on only the caller's signal counts. */
  extend(): void {
    clearTimeout(this.#timer);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener('abort', this.#onAbort);
  }

  /** Turns a failure without an answer into a {@link ConnectionError}. Other errors stay as they are. */
  explain(error: unknown, what: string): unknown {
    if (answered(error)) return error;
    if (this.#timedOut) return new ConnectionError('TIMEOUT', `${what}: no answer in time`, error);
    if (this.#outer?.aborted === true) return new ConnectionError('ABORTED', `${what}: stopped`, error);
    const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
    if (typeof code !== 'string') return error;
    const word = code.startsWith('UND_ERR_') ? (undiciWords.get(code) ?? 'RESET') : code;
    const why = error instanceof Error && error.message !== '' ? error.message : word;
    return new ConnectionError(word, `${what}: ${why}`, error);
  }
}

/** Errors that are about an answer already. */
function answered(error: unknown): boolean {
  return (
    error instanceof StatusError || error instanceof ConnectionError || error instanceof UnexpectedAnswer
  );
}

const undiciWords = new Map([
  ['UND_ERR_CONNECT_TIMEOUT', 'TIMEOUT'],
  ['UND_ERR_HEADERS_TIMEOUT', 'TIMEOUT'],
  ['UND_ERR_BODY_TIMEOUT', 'TIMEOUT'],
  ['UND_ERR_ABORTED', 'ABORTED'],
  ['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'TOO_LARGE'],
  ['UND_ERR_CLOSED', 'CLOSED'],
  ['UND_ERR_DESTROYED', 'CLOSED'],
]);

const requestTimeoutMs = 60_000;
const streamTimeoutMs = 30_000;
/** client-go `rest/request.go`, `maxRetries`. */
const defaultMaxRetries = 10;

interface Pools {
  /** The credentials that the pools were made with. */
  readonly tls: Credentials['tls'];
  readonly fingerprint: string;
  readonly unary: HttpRequests;
  readonly streams: HttpRequests;
}

/** {@link Transport} over HTTP/1.1 with one pool of kept-alive connections for requests, and one per watch. */
export class HttpTransport implements Transport {
  readonly server: string;
  readonly #identity: ClientIdentity;
  readonly #dispatcher: DispatcherFactory;
  readonly #metrics: Metrics | undefined;
  readonly #clock: Clock;
  readonly #host: string;
  readonly #prefix: string;
  readonly #origin: string;
  #pools: Pools | undefined;
  /** Dispatchers of earlier certificates. Only their open connections refer to them. */
  #retired: readonly WeakRef<HttpRequests>[] = [];
  #closed = false;

  constructor(
    identity: ClientIdentity,
    dispatcher: DispatcherFactory,
    { metrics, clock = systemClock }: { readonly metrics?: Metrics | undefined; readonly clock?: Clock } = {},
  ) {
    this.server = identity.server;
    this.#identity = identity;
    this.#dispatcher = dispatcher;
    this.#metrics = metrics;
    this.#clock = clock;
    const url = new URL(identity.server);
    this.#host = url.host;
    this.#origin = url.origin;
    // Rancher and others serve the API under a path.
    const path = joinPath(pathOfUrl(identity.server));
    this.#prefix = path === '/' ? '' : escapePath(path);
  }

  async request(method: string, path: string, options: RequestOptions = {}): Promise<ApiResponse> {
    const deadline = new Deadline(options.timeoutMs ?? requestTimeoutMs, options.signal);
    const started = performance.now();
    let code = '<error>';
    try {
      const response = await this.#sendUntilAnswered(method, path, options, deadline, 'unary');
      const bytes = Buffer.from(await response.body.arrayBuffer());
      code = String(response.statusCode);
      if (response.statusCode >= 400) {
        throw errorFromResponse(`${method} ${path}`, response.statusCode, response.headers, bytes);
      }
      return new BufferedResponse(`${method} ${path}`, response.statusCode, response.headers, bytes);
    } catch (error) {
      throw deadline.explain(error, `${method} ${this.server}${path}`);
    } finally {
      deadline.end();
      this.#metrics?.requests.inc({ code, method, host: this.#host });
      this.#metrics?.requestSeconds.observe(
        { verb: method, host: this.#host },
        (performance.now() - started) / 1000,
      );
    }
  }

  async stream(path: string, options: StreamOptions = {}): Promise<ApiStream> {
    const what = `GET ${this.server}${path}`;
    const deadline = new Deadline(streamTimeoutMs, options.signal);
    let code = '<error>';
    try {
      const response = await this.#sendUntilAnswered('GET', path, options, deadline, 'streams');
      code = String(response.statusCode);
      if (response.statusCode >= 400) {
        const bytes = Buffer.from(await response.body.arrayBuffer());
        throw errorFromResponse(`GET ${path}`, response.statusCode, response.headers, bytes);
      }
      deadline.extend();
      return { headers: response.headers, chunks: chunksOf(response.body, deadline, what) };
    } catch (error) {
      deadline.end();
      throw deadline.explain(error, what);
    } finally {
      this.#metrics?.requests.inc({ code, method: 'WATCH', host: this.#host });
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    const present = this.#pools === undefined ? [] : [this.#pools.unary, this.#pools.streams];
    this.#pools = undefined;
    const earlier = this.#retired.flatMap((one) => one.deref() ?? []);
    await Promise.all([...present, ...earlier].map((dispatcher) => dispatcher.destroy()));
  }

  /**
   * Sends again after 429 and 503 with `Retry-After`, reads and writes alike, as the server has done nothing yet
   * (client-go `rest/with_retry.go`). When the wait would pass the deadline, that answer is returned.
   */
  async #sendUntilAnswered(
    method: string,
    path: string,
    options: RequestOptions,
    deadline: Deadline,
    pool: 'unary' | 'streams',
  ): Promise<HttpAnswer> {
    const { maxRetries = defaultMaxRetries } = options;
    for (let retries = 0; ; retries++) {
      const response = await this.#send(method, path, options, deadline.signal, pool);
      const { statusCode, headers } = response;
      const seconds = statusCode === 429 || statusCode === 503 ? retryAfterSeconds(headers) : undefined;
      if (seconds === undefined || retries >= maxRetries || seconds * 1000 >= deadline.left) return response;
      await response.body.dump();
      const verb = pool === 'streams' ? 'WATCH' : method;
      this.#metrics?.requests.inc({ code: String(statusCode), method: verb, host: this.#host });
      await this.#clock.sleep(seconds * 1000, deadline.signal);
    }
  }

  /** Sends once, and a second time when the first was refused with 401: the server has done nothing then. */
  async #send(
    method: string,
    path: string,
    options: RequestOptions,
    signal: AbortSignal,
    pool: 'unary' | 'streams',
  ): Promise<HttpAnswer> {
    const body = options.body === undefined ? null : JSON.stringify(options.body);
    for (let attempt = 1; ; attempt++) {
      const credentials = await this.#credentials();
      const response = await this.#poolsFor(credentials)[pool].request({
        origin: this.#origin,
        path: `${this.#prefix}${path}${queryText(options.query)}`,
        method,
        headers: {
          accept: 'application/json',
          'user-agent': `servicenet/${version()}`,
          ...(body !== null && { 'content-type': options.contentType ?? 'application/json' }),
          ...options.headers,
          ...credentials.headers,
        },
        body,
        signal,
        // Without this undici closes the connection after each DELETE with a body.
        reset: false,
        // Only the deadline above applies: undici's own limits would cut watches and long lists.
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      if (response.statusCode !== 401 || attempt > 1) return response;
      await response.body.dump();
      this.#identity.refused();
    }
  }

  async #credentials(): Promise<Credentials> {
    try {
      return await this.#identity.credentials();
    } catch (error) {
      throw new ConnectionError('CREDENTIALS', errorMessage(error), error);
    }
  }

  /** Certificates rotate too: new ones need new connections, while the old connections finish their requests. */
  #poolsFor({ tls }: Credentials): Pools {
    if (this.#closed) throw new ConnectionError('CLOSED', 'the transport is closed');
    const present = this.#pools;
    if (present?.tls === tls) return present;
    const fingerprint = fingerprintOf(tls);
    if (present?.fingerprint === fingerprint) {
      this.#pools = { ...present, tls };
      return this.#pools;
    }
    const pools = { tls, fingerprint, ...this.#openPools(tls) };
    this.#pools = pools;
    if (present !== undefined) this.#retire(present);
    return pools;
  }

  /** @throws {ConnectionError} where the certificates cannot be read. */
  #openPools(tls: Credentials['tls']): Pick<Pools, 'unary' | 'streams'> {
    try {
      return { unary: this.#dispatcher(tls, 'requests'), streams: this.#dispatcher(tls, 'watches') };
    } catch (error) {
      throw new ConnectionError('CREDENTIALS', errorMessage(error), error);
    }
  }

  /**
   * Lets pools finish their requests: a watch may take minutes. They are not closed here, since undici's `destroy`
   * has no effect on a pool that is closing; idle connections end after some seconds.
   */
  #retire({ unary, streams }: Pools): void {
    const alive = this.#retired.filter((one) => one.deref() !== undefined);
    this.#retired = [...alive, new WeakRef(unary), new WeakRef(streams)];
  }
}

class BufferedResponse implements ApiResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly bytes: Buffer;
  readonly #what: string;

  constructor(what: string, status: number, headers: ResponseHeaders, bytes: Buffer) {
    this.#what = what;
    this.status = status;
    this.headers = headers;
    this.bytes = bytes;
  }

  json(): unknown {
    try {
      return JSON.parse(this.bytes.toString('utf8'));
    } catch (error) {
      throw new UnexpectedAnswer(`${this.#what}: the answer is not JSON`, { cause: error });
    }
  }
}

async function* chunksOf(
  body: AsyncIterable<unknown>,
  deadline: Deadline,
  what: string,
): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of body) if (Buffer.isBuffer(chunk)) yield chunk;
  } catch (error) {
    throw deadline.explain(error, what);
  } finally {
    deadline.end();
  }
}

function queryText(query: QueryParameters | undefined): string {
  if (query === undefined) return '';
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}

function fingerprintOf(tls: Credentials['tls']): string {
  const hash = createHash('sha256');
  for (const part of [tls.ca, tls.cert, tls.key, tls.pfx, tls.passphrase]) {
    for (const piece of [part].flat()) {
      if (typeof piece === 'string' || Buffer.isBuffer(piece)) hash.update(piece);
      hash.update('\0');
    }
    hash.update('\n');
  }
  hash.update(`${tls.servername ?? ''} ${tls.rejectUnauthorized ?? true}`);
  return hash.digest('base64');
}
