import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import type { Socket } from 'node:net';
import {
  type AnswerHandler,
  BadAnswerError,
  type BackendExchange,
  type BackendRequest,
  Exchange,
  SilentBackendError,
} from './exchange.ts';

/** One session of HTTP/2 to a target for all requests, made again when it has ended. */
export class Http2Session {
  readonly #origin: string;
  readonly #connect: () => Promise<Socket>;
  #session: Promise<ClientHttp2Session> | undefined;

  /**
   * @param origin scheme, address and port.
   * @param connect connects to the target.
   */
  constructor(origin: string, connect: () => Promise<Socket>) {
    this.#origin = origin;
    this.#connect = connect;
  }

  /** Sends a request, as a stream. What happens is said to the handler, never before this returns. */
  send(request: BackendRequest, handler: AnswerHandler, onOver: () => void): BackendExchange {
    const exchange = new Exchange(request, handler, onOver);
    let stream: ClientHttp2Stream | undefined;
    const session = (this.#session ??= this.#open());
    session.then(
      (opened) => {
        if (exchange.isOver) return;
        try {
          stream = opened.request(http2Headers(request, opened.encrypted === true), {
            endStream: request.body === undefined,
          });
        } catch (error) {
          exchange.fail(error instanceof Error ? error : new Error(String(error)));
          return;
        }
        handler.onSent();
        follow(stream, exchange);
      },
      (error: unknown) => exchange.fail(error instanceof Error ? error : new Error(String(error))),
    );
    return {
      resume: () => void stream?.resume(),
      abort: () => {
        exchange.over();
        stream?.close(cancelCode);
      },
      get isBodyBegun() {
        return exchange.isBodyBegun;
      },
    };
  }

  /** Cuts it. */
  destroy(): void {
    this.#session?.then((opened) => opened.destroy()).catch(() => undefined);
  }

  #open(): Promise<ClientHttp2Session> {
    const session = this.#opened(() => {
      // An ended one closes later than the next one begins.
      if (this.#session === session) this.#session = undefined;
    });
    return session;
  }

  async #opened(onEnd: () => void): Promise<ClientHttp2Session> {
    try {
      const socket = await this.#connect();
      const opened = connect(this.#origin, {
        createConnection: () => socket,
        settings: { enablePush: false },
        // Headers that clients repeat are passed on as over HTTP/1.1.
        ...{ strictSingleValueFields: false },
      });
      // Its streams report what happens to it.
      opened.on('error', onEnd).on('close', onEnd).on('goaway', onEnd);
      return opened;
    } catch (error) {
      onEnd();
      throw error;
    }
  }
}

/** HTTP/2's CANCEL. */
const cancelCode = 8;

function follow(stream: ClientHttp2Stream, exchange: Exchange): void {
  const { handler, request } = exchange;
  let rawTrailers: readonly string[] = [];
  const fail = (error: Error): void => {
    exchange.fail(error);
    stream.close(cancelCode);
  };
  stream.on('error', fail);
  stream.on('close', () => {
    if (!exchange.isOver) fail(new BadAnswerError('the stream has ended without an answer'));
  });
  stream.setTimeout(request.timeoutMs);
  stream.on('timeout', () => {
    if (!stream.isPaused() && !exchange.waitsForClient(stream)) fail(new SilentBackendError());
    else stream.setTimeout(request.timeoutMs);
  });
  if (request.body !== undefined) {
    exchange.sendBody(
      stream,
      (chunk) => stream.write(chunk),
      () => stream.end(),
    );
  }
  stream.on('headers', (headers, _flags, rawHeaders) => {
    exchange.inform({ status: Number(headers[':status']), reason: '', rawHeaders });
  });
  stream.on('response', (headers, flags, rawHeaders) => {
    const status = Number(headers[':status']);
    const isWhole = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    if (status < 200 || status > 599) fail(new BadAnswerError(`the status ${status} is none`));
    else if (!exchange.isOver) handler.onHead({ status, reason: '', rawHeaders, isWhole });
  });
  stream.on('trailers', (_headers: object, _flags: number, raw: string[]) => {
    rawTrailers = raw;
  });
  stream.on('data', (chunk: Buffer) => {
    if (!exchange.isOver && !handler.onData(chunk)) stream.pause();
  });
  stream.on('end', () => {
    if (stream.rstCode !== 0 || stream.aborted) fail(new BadAnswerError('the answer is cut'));
    else if (exchange.over()) {
      if (!stream.writableFinished) stream.close();
      handler.onEnd(rawTrailers);
    }
  });
}

function http2Headers(
  { method, path, headers }: BackendRequest,
  isSecure: boolean,
): Record<string, string | string[]> {
  const kept = new Map<string, string[]>();
  let authority = '';
  for (const [name, value] of entries(headers)) {
    const lower = name.toLowerCase();
    if (lower === 'host') authority = value;
    else if (lower !== 'transfer-encoding') kept.set(lower, [...(kept.get(lower) ?? []), value]);
  }
  return {
    ...Object.fromEntries(kept),
    // Some servers of gRPC ask for it.
    ...{ te: 'trailers', ':method': method, ':path': path },
    ...{ ':scheme': isSecure ? 'https' : 'http', ':authority': authority },
  };
}

function entries(raw: readonly string[]): [string, string][] {
  const all: [string, string][] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) all.push([raw[i] ?? '', raw[i + 1] ?? '']);
  return all;
}
