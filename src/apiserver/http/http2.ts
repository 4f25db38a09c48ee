import type { IncomingHttpHeaders } from 'node:http';
import {
  constants,
  type OutgoingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { Readable, Writable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { boundHeads } from '../../tls/http2-heads.ts';
import type { IncomingRequest } from './exchange.ts';
import type { OutgoingAnswer } from './long-body.ts';

/** Requests of HTTP/2, as those of HTTP/1.1 are: the one has its streams, the other its connections. */

/** Resets a stream. Node's `close` would end it first, and a part be taken for the whole. */
function cut(stream: ServerHttp2Stream): void {
  if (!stream.destroyed) stream.destroy(new Error('the request is cut off'));
}

/** A request. Its body is read as fast as it is taken. */
class Http2Request extends Readable implements IncomingRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: string[];
  readonly socket: TLSSocket;
  complete: boolean;
  readonly #stream: ServerHttp2Stream;

  constructor(
    stream: ServerHttp2Stream,
    raw: readonly string[],
    headers: IncomingHttpHeaders,
    socket: TLSSocket,
  ) {
    super();
    this.#stream = stream;
    // Those of a stream that is cut; `close` follows.
    stream.on('error', () => undefined);
    this.socket = socket;
    this.method = String(headers[constants.HTTP2_HEADER_METHOD] ?? '');
    this.url = String(headers[constants.HTTP2_HEADER_PATH] ?? '');
    this.complete = stream.endAfterHeaders;
    this.rawHeaders = [];
    this.headers = {};
    const authority = headers[constants.HTTP2_HEADER_AUTHORITY];
    for (let i = 0; i < raw.length; i += 2) {
      const [name = '', value = ''] = [raw[i], raw[i + 1]];
      const isHost =
        name === constants.HTTP2_HEADER_AUTHORITY || (name === 'host' && authority === undefined);
      if (isHost) this.rawHeaders.push('host', value);
      else if (!name.startsWith(':') && name !== 'host') this.rawHeaders.push(name, value);
    }
    for (const [name, value] of Object.entries(headers))
      if (!name.startsWith(':')) this.headers[name] = value;
    if (authority !== undefined) this.headers.host = String(authority);
    // Tells a proxy that there is a body, as it would of HTTP/1.1.
    if (!this.complete && headers['content-length'] === undefined)
      this.headers['transfer-encoding'] = 'chunked';
    if (this.complete) {
      this.push(null);
      stream.resume();
      return;
    }
    stream
      .on('data', (chunk: Buffer) => {
        if (!this.destroyed && !this.push(chunk)) stream.pause();
      })
      .once('end', () => {
        // Also of a stream whose connection is lost.
        if (stream.aborted) return;
        this.complete = true;
        this.push(null);
      })
      .once('close', () => {
        if (!this.complete) this.destroy();
      })
      .pause();
  }

  override _read(): void {
    this.#stream.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (this.#stream.closed) this.#stream.resume();
    else if (!this.complete) cut(this.#stream);
    done(error);
  }
}

/** Headers about a connection have no place in HTTP/2 (RFC 9113, 8.2.2). */
const ofConnections: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'],
]);
const withoutBody: ReadonlySet<number> = new Set([204, 304]);

/** The answer to a request. */
class Http2Answer extends Writable implements OutgoingAnswer {
  statusCode = 200;
  shouldKeepAlive = true;
  readonly #stream: ServerHttp2Stream;
  readonly #isHead: boolean;
  #hasBody = true;

  constructor(stream: ServerHttp2Stream, isHead: boolean) {
    super();
    this.#stream = stream;
    this.#isHead = isHead;
    stream.once('close', () => this.destroy());
  }

  writeHead(status: number, flat: readonly string[]): void {
    this.statusCode = status;
    this.#hasBody = !this.#isHead && !withoutBody.has(status);
    const headers: OutgoingHttpHeaders = { [constants.HTTP2_HEADER_STATUS]: status };
    for (let i = 0; i < flat.length; i += 2) {
      const name = (flat[i] ?? '').toLowerCase();
      const value = flat[i + 1] ?? '';
      if (ofConnections.has(name)) continue;
      const before = headers[name];
      headers[name] = before === undefined ? value : [before, value].flat().map(String);
    }
    if (!this.#stream.closed && !this.#stream.destroyed)
      this.#stream.respond(headers, { endStream: !this.#hasBody });
  }

  /** Nothing to do: a head is sent when it is written. */
  flushHeaders(): void {
    // See above.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (!this.#hasBody || chunk.length === 0 || this.#stream.closed) {
      done();
      return;
    }
    // In the next tick it is known whether this was all: then it is one frame.
    process.nextTick(() => {
      if (this.#stream.destroyed) done();
      else if (this.writableEnded && this.writableLength === chunk.length)
        this.#stream.end(chunk, () => done());
      else this.#stream.write(chunk, done);
    });
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.#stream.writableEnded || this.#stream.destroyed) done();
    else this.#stream.end(() => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.writableFinished) cut(this.#stream);
    done(error);
  }
}

/** The limits of a connection. */
export interface Http2Limits {
  /** Milliseconds from the end of the TLS handshake to the client's first frame, and for a head without requests. */
  readonly headersTimeoutMs: number;
  /** Milliseconds between two looks for heads that have not ended. */
  readonly checkIntervalMs: number;
  /** Milliseconds that a connection without requests is kept. */
  readonly keepAliveTimeoutMs: number;
  /** Of one request. */
  readonly maxHeaders: number;
  readonly maxHeaderBytes: number;
}

/** Requests of one connection at the same time, as many as Go's server allows (`golang.org/x/net/http2`). */
const maxConcurrentStreams = 250;
/** MB of what a connection keeps: heads, and answers that were not taken. Beyond it, new requests are refused. */
const maxSessionMemory = 64;

/**
 * Serves a connection that has agreed on HTTP/2. Floods (resets, settings, pings, CONTINUATION) end it by nghttp2's own
 * limits.
 *
 * @param serve is called for each request.
 * @returns ends the connection once its requests are answered.
 */
export function serveHttp2(
  socket: TLSSocket,
  limits: Http2Limits,
  serve: (request: IncomingRequest, answer: OutgoingAnswer) => void,
): () => void {
  const session: ServerHttp2Session = performServerHandshake(socket, {
    settings: { maxConcurrentStreams, maxHeaderListSize: limits.maxHeaderBytes, enablePush: false },
    // Pseudo-headers count.
    maxHeaderListPairs: limits.maxHeaders + 8,
    maxSessionMemory,
  });
  let open = 0;
  let idle: NodeJS.Timeout | undefined;
  const wait = (): void => {
    clearTimeout(idle);
    if (!session.closed) idle = setTimeout(() => session.close(), limits.keepAliveTimeoutMs).unref();
  };
  wait();
  boundHeads(session, {
    timeoutMs: limits.headersTimeoutMs,
    checkIntervalMs: limits.checkIntervalMs,
    after(milliseconds, callback) {
      const timer = setTimeout(callback, milliseconds).unref();
      return { cancel: () => clearTimeout(timer) };
    },
    // A client that stands still keeps its watches, and a head beside them takes no more.
    isExempt: () => open > 0,
  });
  session.on('error', () => socket.destroy());
  session.once('close', () => clearTimeout(idle));
  session.on('stream', (stream, headers, _flags, raw) => {
    clearTimeout(idle);
    open++;
    stream.once('close', () => {
      if (--open === 0) wait();
    });
    if (headers.expect?.toLowerCase() === '100-continue') stream.additionalHeaders({ ':status': 100 });
    const request = new Http2Request(stream, raw, headers, socket);
    const answer = new Http2Answer(stream, request.method === 'HEAD');
    // The client need not send the rest of a body that is not read (RFC 9113, 8.1).
    answer.once('finish', () => {
      if (request.complete) return;
      stream.close(constants.NGHTTP2_NO_ERROR);
      // What has come is dropped: a stream with something to read stays open, and counts.
      request.destroy();
    });
    serve(request, answer);
  });
  return () => session.close();
}
