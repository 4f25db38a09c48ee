import type { Clock, Timer } from '../../../src/client/clock.ts';
import {
  type ApiResponse,
  type ApiStream,
  ConnectionError,
  type RequestOptions,
  type StreamOptions,
  type Transport,
} from '../../../src/client/transport.ts';

/** What passes while it is open, and waits while it is not. */
class Gate {
  #waiting: PromiseWithResolvers<undefined> | undefined;

  get isOpen(): boolean {
    return this.#waiting === undefined;
  }

  close(): void {
    this.#waiting ??= Promise.withResolvers();
  }

  open(): void {
    this.#waiting?.resolve(undefined);
    this.#waiting = undefined;
  }

  async pass(): Promise<void> {
    // It may be closed again before those who waited go on.
    while (this.#waiting !== undefined) await this.#waiting.promise;
  }
}

/** The header that says whose a request is: for the trace only, it is not passed on. */
export const senderHeader = 'x-sender';

/**
 * What a process has of the world, its network and its clock, so that all it can do may be stopped and continued as
 * SIGSTOP and SIGCONT do, its news may come late, and its wall clock may be set.
 */
export class SimulatedProcess {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly #running = new Gate();
  readonly #news = new Gate();
  readonly #due = new Set<() => void>();
  /** Whose news do not come while {@link #news} is closed, by path. */
  #isUnheard: (path: string) => boolean = () => true;
  #isClosed = false;
  #isCutOff = false;
  /** Milliseconds by which its wall clock is wrong. */
  #offset = 0;
  readonly #sends: (method: string, path: string) => void;

  /** @param sends called for each request that it sends. */
  constructor(
    identity: string,
    network: Transport,
    world: Clock,
    sends: (method: string, path: string) => void,
  ) {
    this.#sends = sends;
    const sent = (options?: RequestOptions): RequestOptions => ({
      ...options,
      headers: { ...options?.headers, [senderHeader]: identity },
    });
    this.transport = {
      server: network.server,
      request: async (method, path, options) => this.#request(network, method, path, sent(options)),
      stream: async (path, options) => this.#stream(network, path, sent(options)),
      close: async () => {
        this.#isClosed = true;
        this.#news.open();
        this.continue('timers');
        await network.close();
      },
    };
    this.clock = {
      now: () => world.now() + this.#offset,
      monotonic: () => world.monotonic(),
      after: (milliseconds, callback) => this.#after(world, milliseconds, callback),
      sleep: (milliseconds, signal) => this.#sleep(milliseconds, signal),
    };
  }

  get isStopped(): boolean {
    return !this.#running.isOpen;
  }

  /** SIGSTOP: nothing is sent or heard, no timer fires, and time goes on. */
  stop(): void {
    if (!this.#isClosed) this.#running.close();
  }

  /** SIGCONT. @param first what it does first: what it was about to send, or what its timers say. */
  continue(first: 'requests' | 'timers'): void {
    if (first === 'requests') this.#running.open();
    const due = [...this.#due];
    this.#due.clear();
    const fire = (): void => {
      for (const callback of due) callback();
    };
    if (first === 'requests') setImmediate(fire);
    else fire();
    this.#running.open();
  }

  /** The network loses all that it asks for, until {@link connect}. */
  cutOff(): void {
    this.#isCutOff = true;
  }

  connect(): void {
    this.#isCutOff = false;
  }

  /** What its watches of some paths tell from now on is not heard until {@link hear}. */
  turnDeaf(to: (path: string) => boolean): void {
    this.#isUnheard = to;
    if (!this.#isClosed) this.#news.close();
  }

  hear(): void {
    this.#news.open();
  }

  /** Sets its wall clock forward or back. */
  setClock(offset: number): void {
    this.#offset = offset;
  }

  async #request(
    network: Transport,
    method: string,
    path: string,
    options?: RequestOptions,
  ): Promise<ApiResponse> {
    await this.#pass();
    if (options?.signal?.aborted !== true) this.#sends(method, path);
    try {
      return await network.request(method, path, options);
    } finally {
      await this.#running.pass();
    }
  }

  async #stream(network: Transport, path: string, options?: StreamOptions): Promise<ApiStream> {
    await this.#pass();
    const stream = await network.stream(path, options);
    const heard = async (): Promise<void> => {
      if (this.#isUnheard(path)) await this.#news.pass();
      await this.#running.pass();
    };
    async function* chunks(): AsyncGenerator<Buffer> {
      for await (const chunk of stream.chunks) {
        await heard();
        yield chunk;
      }
    }
    return { headers: stream.headers, chunks: chunks() };
  }

  async #pass(): Promise<void> {
    await this.#running.pass();
    if (this.#isClosed) throw new ConnectionError('ABORTED', 'the process is gone');
    if (this.#isCutOff) throw new ConnectionError('RESET', 'the process is cut off');
  }

  #after(world: Clock, milliseconds: number, callback: () => void): Timer {
    const fire = (): void => {
      if (this.#running.isOpen) callback();
      else this.#due.add(callback);
    };
    const timer = world.after(milliseconds, fire);
    return {
      cancel: () => {
        timer.cancel();
        this.#due.delete(callback);
      },
    };
  }

  #sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const finish = (): void => {
        timer.cancel();
        signal?.removeEventListener('abort', finish);
        resolve();
      };
      const timer = this.clock.after(milliseconds, finish);
      signal?.addEventListener('abort', finish, { once: true });
    });
  }
}
