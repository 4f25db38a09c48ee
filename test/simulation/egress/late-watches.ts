import { setTimeout as sleep } from 'node:timers/promises';
import type {
  ApiResponse,
  ApiStream,
  RequestOptions,
  StreamOptions,
  Transport,
} from '../../../src/client/transport.ts';

/** A transport whose watches are late, each piece by another time: caches do not know of the last writes. */
export class LateWatches implements Transport {
  readonly server: string;
  readonly #inner: Transport;
  readonly #lateMs: () => number;

  constructor(inner: Transport, lateMs: () => number) {
    this.server = inner.server;
    this.#inner = inner;
    this.#lateMs = lateMs;
  }

  request(method: string, path: string, options?: RequestOptions): Promise<ApiResponse> {
    return this.#inner.request(method, path, options);
  }

  async stream(path: string, options?: StreamOptions): Promise<ApiStream> {
    const { headers, chunks } = await this.#inner.stream(path, options);
    const lateMs = this.#lateMs;
    return {
      headers,
      chunks: (async function* () {
        for await (const chunk of chunks) {
          await sleep(lateMs());
          yield chunk;
        }
      })(),
    };
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}
