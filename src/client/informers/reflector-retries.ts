import type { Logger } from 'pino';
import { StatusError } from '../../objects/status.ts';
import { LoopBackoff, type Clock, type Random, type Timer } from '../clock.ts';
import { isEarlyEnd, isExpired, isForbidden, isUnreached, retryAfterOf } from '../errors.ts';

/** Watches in a row that end too soon before a line is logged. */
const maxEarlyEnds = 3;
/** Milliseconds between tries after 401 or 403: an operator must act first. */
const refusedDelayMs = 30_000;

/**
 * A resource that is not served may be soon, once its CustomResourceDefinition is established: milliseconds between
 * tries, and the number of tries before a line is logged, after about 11 s: `up` makes definitions while it starts, which
 * takes seconds on a busy machine.
 */
const unserved = { base: 100, max: 5000, maxLooks: 8 };

/** The delays of a reflector after failures, and its log lines about them. */
export class ReflectorRetries {
  readonly #resource: string;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #backoff: LoopBackoff;
  readonly #unserved: LoopBackoff;
  #earlyEnds = 0; // one after the other
  #looks = 0; // for a resource that is not served

  constructor(
    resource: string,
    { log, clock, random }: { readonly log: Logger; readonly clock: Clock; readonly random: Random },
  ) {
    this.#resource = resource;
    this.#log = log;
    this.#clock = clock;
    this.#backoff = new LoopBackoff(clock, random);
    this.#unserved = new LoopBackoff(clock, random, unserved);
  }

  /** The resource is served. */
  served(): void {
    this.#looks = 0;
  }

  /** A watch lasted as long as it should. */
  watched(): void {
    this.#earlyEnds = 0;
  }

  /** Logs why a list or watch ended, and waits until the next try. */
  async afterFailure(error: unknown, signal: AbortSignal): Promise<void> {
    const refused = error instanceof StatusError && (error.code === 401 || error.code === 403);
    const delayMs = Math.max(this.#backoff.next(), retryAfterOf(error) ?? 0, refused ? refusedDelayMs : 0);
    // Missing permissions and an unreachable server are logged once by the transport (permission-tracker.ts,
    // availability-tracker.ts).
    const isSaid = isForbidden(error) || isUnreached(error);
    // A server that stops closes new watches early, too.
    const isUsual = isEarlyEnd(error) && ++this.#earlyEnds < maxEarlyEnds;
    const level = isSaid || isUsual ? 'debug' : isExpired(error) ? 'info' : 'warn';
    this.#log[level](
      { resource: this.#resource, err: error, retryIn: Math.round(delayMs) },
      'list or watch ended, will retry',
    );
    await this.#clock.sleep(delayMs, signal);
  }

  /** Waits until it is worth to look again for an optional resource that is not served. */
  async forOptional(signal: AbortSignal): Promise<void> {
    await this.#clock.sleep(this.#unserved.next(), signal);
  }

  /** The same for a resource that must be served. @param advice how to define it, after a colon; or "". */
  async forDefinition(advice: string, signal: AbortSignal): Promise<void> {
    this.#looks++;
    if (this.#looks === unserved.maxLooks) {
      const name = this.#resource;
      this.#log.warn({ resource: name }, `the server does not serve ${name}${advice}; waiting for it`);
    }
    await this.#clock.sleep(this.#unserved.next(), signal);
  }
}

/** Aborts a request when {@link feed} is not called in time, or when the outer signal aborts. */
export class Watchdog {
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal;
  readonly #onAbort = (): void => this.#controller.abort();
  #timer: Timer | undefined;
  #fedAt = 0;
  #limit = 0;
  #starved = false;

  constructor(clock: Clock, outer: AbortSignal) {
    this.#clock = clock;
    this.#outer = outer;
    if (outer.aborted) this.#controller.abort();
    else outer.addEventListener('abort', this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** True when the watchdog ended the request. */
  get starved(): boolean {
    return this.#starved;
  }

  /** Restarts the time limit, in milliseconds. */
  feed(limit: number): void {
    this.#fedAt = this.#clock.monotonic();
    // One timer per limit, not per chunk: when it fires it checks the time of the last sign of life.
    if (limit === this.#limit) return;
    this.#limit = limit;
    this.#timer?.cancel();
    this.#wait(limit);
  }

  end(): void {
    this.#timer?.cancel();
    this.#outer.removeEventListener('abort', this.#onAbort);
  }

  #wait(milliseconds: number): void {
    this.#timer = this.#clock.after(milliseconds, () => {
      const left = this.#fedAt + this.#limit - this.#clock.monotonic();
      if (left > 0) {
        this.#wait(left);
        return;
      }
      this.#starved = true;
      this.#controller.abort();
    });
  }
}
