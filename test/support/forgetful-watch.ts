import type { ApiStream, RequestOptions, StreamOptions, Transport } from '../../src/client/transport.ts';

/** Shows no events of one kind on demand, and is too old once so many have passed: its reader lists again. */
export class ForgetfulWatch implements Transport {
  readonly server: string;
  readonly #inner: Transport;
  readonly #path: string;
  #hidden = 0;
  #delivered = '';

  constructor(inner: Transport, path: string) {
    this.server = inner.server;
    this.#inner = inner;
    this.#path = path;
  }

  /** Whether the reader has taken an event of an object of this name that holds the text. */
  hasDelivered(name: string, text: string): boolean {
    const lines = this.#delivered.split('\n');
    return lines.some((line) => line.includes(`"name":"${name}"`) && line.includes(text));
  }

  hideEdits(count: number): void {
    this.#hidden = count;
  }

  request(method: string, path: string, options?: RequestOptions) {
    return this.#inner.request(method, path, options);
  }

  async stream(path: string, options?: StreamOptions): Promise<ApiStream> {
    const stream = await this.#inner.stream(path, options);
    return path.endsWith(this.#path) ? { ...stream, chunks: this.#seen(stream.chunks) } : stream;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async *#seen(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      if (this.#hidden === 0) {
        yield chunk;
        this.#delivered += chunk.toString();
        continue;
      }
      this.#hidden -= chunk.toString().split('"type":"MODIFIED"').length - 1;
      if (this.#hidden > 0) continue;
      this.#hidden = 0;
      const status = { kind: 'Status', status: 'Failure', code: 410, reason: 'Expired', message: 'too old' };
      yield Buffer.from(`${JSON.stringify({ type: 'ERROR', object: status })}\n`);
      return;
    }
  }
}
