import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import { Readable } from 'node:stream';

/**
 * The body of a client's request, for a backend. Nothing is taken from the client before it is asked for: a request whose
 * connection to a backend fails can still be sent to another one. Its end by an error leaves the client's connection open
 * for the answer.
 */
export class RequestBody extends Readable {
  readonly #request: IncomingMessage | Http2ServerRequest;
  /** Whether any of it was asked for. */
  isBegun = false;

  constructor(request: IncomingMessage | Http2ServerRequest) {
    super();
    this.#request = request;
  }

  override _read(): void {
    if (!this.isBegun) {
      this.isBegun = true;
      this.#request.on('data', this.#take);
      this.#request.on('end', this.#end);
      this.#request.on('error', this.#fail);
    }
    this.#request.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#request.off('data', this.#take);
    this.#request.off('end', this.#end);
    this.#request.off('error', this.#fail);
    done(error);
  }

  readonly #take = (chunk: Buffer): void => {
    if (!this.push(chunk)) this.#request.pause();
  };
  readonly #end = (): void => {
    this.push(null);
  };
  readonly #fail = (error: Error): void => {
    this.destroy(error);
  };
}

/** Whether a request has a body, or may have one. */
export function hasBody(request: IncomingMessage | Http2ServerRequest): boolean {
  if ('stream' in request) return !request.stream.endAfterHeaders;
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers;
  return encoding !== undefined || Number(length) !== 0;
}
