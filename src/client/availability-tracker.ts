import type { Logger } from 'pino';
import { StatusError } from '../objects/status.ts';
import { LogThrottle } from '../telemetry/log-throttle.ts';
import { connectionAdvice } from './connection-advice.ts';
import type { Clock } from './clock.ts';
import { errorWord } from './errors.ts';
import type { ApiResponse, ApiStream, RequestOptions, StreamOptions, Transport } from './transport.ts';
import { errorMessage } from '../objects/error-message.ts';

/**
 * A transport that notices when the API server cannot be reached or refuses the credentials (401), and when it answers
 * again. It logs a line for each reason with what to do, and one a minute while it lasts. Callers still get the error,
 * and need not log it: all caches, queues and leases fail at once.
 */
export class AvailabilityTracker implements Transport {
  readonly server: string;
  readonly #transport: Transport;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #throttle: LogThrottle;
  /** Start of the outage in monotonic milliseconds; undefined while the server answers. */
  #since: number | undefined;
  #problem: string | undefined;
  readonly #changed: ((problem: string | undefined) => void) | undefined;

  /** @param changed called with every problem and what to do, and with undefined when it is over. */
  constructor(
    transport: Transport,
    log: Logger,
    clock: Clock,
    changed?: (problem: string | undefined) => void,
  ) {
    this.server = transport.server;
    this.#transport = transport;
    this.#log = log;
    this.#clock = clock;
    this.#changed = changed;
    this.#throttle = new LogThrottle(() => clock.monotonic());
  }

  request(method: string, path: string, options: RequestOptions = {}): Promise<ApiResponse> {
    return this.#note(this.#transport.request(method, path, options));
  }

  stream(path: string, options: StreamOptions = {}): Promise<ApiStream> {
    return this.#note(this.#transport.stream(path, options));
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  async #note<R>(answer: Promise<R>): Promise<R> {
    try {
      const result = await answer;
      this.#answered();
      return result;
    } catch (error) {
      const advice = connectionAdvice(error);
      if (advice !== undefined) this.#failed(error, advice);
      else if (error instanceof StatusError) this.#answered();
      throw error;
    }
  }

  #failed(error: unknown, advice: string): void {
    this.#set(advice);
    const reason = errorWord(error);
    if (!this.#throttle.isDue(reason)) return;
    const now = this.#clock.monotonic();
    this.#since ??= now;
    const seconds = Math.round((now - this.#since) / 1000);
    const detail = errorMessage(error);
    this.#log.error({ server: this.server, reason, detail, seconds }, `${advice}; trying again`);
  }

  #answered(): void {
    this.#set(undefined);
    if (this.#since === undefined) return;
    const seconds = Math.round((this.#clock.monotonic() - this.#since) / 1000);
    this.#since = undefined;
    this.#log.info({ server: this.server, seconds }, 'the API server answers again');
  }

  #set(problem: string | undefined): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#changed?.(problem);
  }
}
