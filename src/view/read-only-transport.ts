import type {
  ApiResponse,
  ApiStream,
  RequestOptions,
  StreamOptions,
  Transport,
} from '../client/transport.ts';

/** A transport for what looks and never writes: any method but GET throws, before anything is sent. */
export class ReadOnlyTransport implements Transport {
  readonly server: string;
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.server = transport.server;
    this.#transport = transport;
  }

  async request(method: string, path: string, options?: RequestOptions): Promise<ApiResponse> {
    if (method !== 'GET') throw new Error(`${method} ${path}: what shows a cluster only reads it`);
    return await this.#transport.request(method, path, options);
  }

  stream(path: string, options?: StreamOptions): Promise<ApiStream> {
    return this.#transport.stream(path, options);
  }

  close(): Promise<void> {
    return this.#transport.close();
  }
}
