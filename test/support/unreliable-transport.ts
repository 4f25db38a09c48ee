import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ApiResponse,
  type ApiStream,
  ConnectionError,
  type RequestOptions,
  type StreamOptions,
  type Transport,
} from '../../src/client/transport.ts';

/** What may go wrong with requests, as shares of all writes, or of all reads. */
export interface Unreliability {
  /** It never arrives. */
  readonly dropped: number;
  /** It happens, but its answer is lost. */
  readonly unanswered: number;
  /** It is given up here, and happens later. */
  readonly late: number;
  /** An answer to a read, or a piece of a watch, comes late. */
  readonly slow?: number;
}

/** A transport that loses writes and answers. Reads arrive. */
export class UnreliableTransport implements Transport {
  readonly server: string;
  writes = 0;
  readonly #inner: Transport;
  readonly #faults: Unreliability;
  readonly #random: () => number;
  readonly #late = new Set<Promise<unknown>>();

  constructor(inner: Transport, faults: Unreliability, random: () => number) {
    this.server = inner.server;
    this.#inner = inner;
    this.#faults = faults;
    this.#random = random;
  }

  async request(method: string, path: string, options?: RequestOptions): Promise<ApiResponse> {
    if (method === 'GET') {
      const answer = await this.#inner.request(method, path, options);
      await this.#delay();
      return answer;
    }
    this.writes++;
    const { dropped, unanswered, late } = this.#faults;
    const luck = this.#random();
    if (luck < dropped) throw new ConnectionError('ECONNRESET', 'dropped by the test');
    if (luck < dropped + unanswered) {
      await this.#inner.request(method, path, options);
      throw new ConnectionError('ECONNRESET', 'the answer is lost by the test');
    }
    if (luck < dropped + unanswered + late) {
      const { signal: _, ...unstoppable } = options ?? {};
      const sending = sleep(20 + 100 * this.#random())
        .then(() => this.#inner.request(method, path, unstoppable))
        .catch(() => undefined)
        .finally(() => this.#late.delete(sending));
      this.#late.add(sending);
      throw new ConnectionError('TIMEOUT', 'sent late by the test');
    }
    return this.#inner.request(method, path, options);
  }

  async stream(path: string, options?: StreamOptions): Promise<ApiStream> {
    const { headers, chunks } = await this.#inner.stream(path, options);
    return { headers, chunks: this.#slowed(chunks) };
  }

  async *#slowed(chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
    for await (const chunk of chunks) {
      await this.#delay();
      yield chunk;
    }
  }

  async #delay(): Promise<void> {
    if (this.#random() < (this.#faults.slow ?? 0)) await sleep(150 * this.#random());
  }

  /** Resolves when nothing that was sent late is under way. */
  async calm(): Promise<void> {
    await Promise.all(this.#late);
  }

  async close(): Promise<void> {
    await this.calm();
  }
}
