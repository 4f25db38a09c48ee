import type { Logger } from 'pino';
import { StatusError } from '../objects/status.ts';
import { LogThrottle } from '../telemetry/log-throttle.ts';
import { connectionAdvice } from './connection-advice.ts';
import type { Clock } from './clock.ts';
import { errorWord } from './errors.ts';
import type { ApiResponse, ApiStream, RequestOptions, StreamOptions, Transport } from './transport.ts';

/**
 * A transport that notices when the API server cannot be reached, or does not know us (401), and when it answers again:
 * a line in the log for each reason, with what to do, and another one a minute while it lasts. Whoever asked gets the
 * error all the same: every cache, queue and lease fails at once, and none of them needs a line of its own.
 */
export class AvailabilityTracker implements Transport {
  readonly server: string;
  readonly #transport: Transport;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #throttle: LogThrottle;
  /** Since when, in monotonic milliseconds, as the log says; undefined while it answers. */
  #since: number | undefined;
  #problem: string | undefined;
  readonly #changed: ((problem: string | undefined) => void) | undefined;

  /** @param changed hears at once of every problem, with what to do, and of its end. */
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
    const detail = error instanceof Error ? error.message : String(error);
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
