import { StatusError, errorMessage } from '../objects/status.ts';
import {
  ConnectionError,
  type ApiResponse,
  type ApiStream,
  type RequestOptions,
  type StreamOptions,
  type Transport,
} from './transport.ts';
import type { Logger } from 'pino';
import { LogThrottle } from '../telemetry/log.ts';
import type { Clock } from './clock.ts';
import { errorWord } from './errors.ts';

const silent =
  'the API server does not answer: check that it runs, and the network, firewalls and NetworkPolicies in between';
const unknownName = 'the name of the API server cannot be resolved: check the name, and DNS';
const untrusted =
  'the certificate of the API server is not trusted: give its CA, in the kubeconfig or with --certificate-authority';
const noTls = 'what listens there does not speak TLS: check the scheme and the port';

/** By the codes of {@link ConnectionError}. */
const advices: ReadonlyMap<string, string> = new Map([
  [
    'ECONNREFUSED',
    'nothing listens at the address of the API server: check that it runs, and the address and port',
  ],
  ['TIMEOUT', silent],
  ['ETIMEDOUT', silent],
  ['EHOSTUNREACH', silent],
  ['ENETUNREACH', silent],
  ['ENOTFOUND', unknownName],
  ['EAI_AGAIN', unknownName],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', untrusted],
  ['SELF_SIGNED_CERT_IN_CHAIN', untrusted],
  ['UNABLE_TO_GET_ISSUER_CERT', untrusted],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', untrusted],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', untrusted],
  ['CERT_SIGNATURE_FAILURE', untrusted],
  ['CERT_HAS_EXPIRED', 'the certificate of the API server has expired: renew it'],
  ['CERT_NOT_YET_VALID', 'the certificate of the API server is not valid yet: check the clocks'],
  [
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'the certificate of the API server is for other names: use one of them, or set tls-server-name',
  ],
  ['EPROTO', noTls],
  ['ERR_SSL_WRONG_VERSION_NUMBER', noTls],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', noTls],
  [
    'CREDENTIALS',
    'no credentials can be had: check the token file, exec plugin or auth provider of the kubeconfig',
  ],
]);
const broken = 'the connection to the API server broke off: check it, and what is in between';
const unknown = 'the API server does not accept the credentials: renew the token or certificate';

/**
 * Advice for operators when the API server is unreachable or refuses the credentials (401); undefined for other
 * errors, and for requests that were aborted.
 */
export function connectionAdvice(error: unknown): string | undefined {
  if (error instanceof StatusError) return error.code === 401 ? unknown : undefined;
  if (!(error instanceof ConnectionError) || error.code === 'ABORTED' || error.code === 'CLOSED') {
    return undefined;
  }
  return advices.get(error.code) ?? broken;
}

/** Milliseconds that a busy server may take. Renewals of Leases give up sooner, requests without a time of their own later. */
const patienceMs = 5000;

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
  /** Since when requests have had no answer in time; they may be shorter than {@link patienceMs}. */
  #silentSince: number | undefined;
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
    return this.#note(this.#transport.request(method, path, options), options.timeoutMs);
  }

  stream(path: string, options: StreamOptions = {}): Promise<ApiStream> {
    return this.#note(this.#transport.stream(path, options));
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  async #note<R>(answer: Promise<R>, timeoutMs = patienceMs): Promise<R> {
    try {
      const result = await answer;
      this.#answered();
      return result;
    } catch (error) {
      const advice = connectionAdvice(error);
      if (advice !== undefined) this.#failed(error, advice, timeoutMs);
      else if (error instanceof StatusError) this.#answered();
      throw error;
    }
  }

  #failed(error: unknown, advice: string, timeoutMs: number): void {
    const now = this.#clock.monotonic();
    if (error instanceof ConnectionError && error.code === 'TIMEOUT') {
      this.#silentSince ??= now - timeoutMs;
      if (now - this.#silentSince < patienceMs) return;
    }
    this.#set(advice);
    const reason = errorWord(error);
    if (!this.#throttle.isDue(reason)) return;
    this.#since ??= now;
    const seconds = Math.round((now - this.#since) / 1000);
    const detail = errorMessage(error);
    this.#log.error({ server: this.server, reason, detail, seconds }, `${advice}; trying again`);
  }

  #answered(): void {
    this.#silentSince = undefined;
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
