import type { Logger } from 'pino';
import { StatusError } from '../objects/status.ts';
import { Seldom } from '../telemetry/seldom.ts';
import type { Clock } from './clock.ts';
import { errorWord } from './errors.ts';
import {
  type ApiResponse,
  type ApiStream,
  ConnectionError,
  type RequestOptions,
  type StreamOptions,
  type Transport,
} from './transport.ts';

/**
 * A transport that notices when the API server cannot be reached, or does not know us (401), and when it answers again:
 * a line in the log for each reason, with what to do, and another one a minute while it lasts. Whoever asked gets the
 * error all the same: every cache, queue and lease fails at once, and none of them needs a line of its own.
 */
export class ServerWatch implements Transport {
  readonly server: string;
  readonly #transport: Transport;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #seldom: Seldom;
  /** Since when, in monotonic milliseconds, as the log says; undefined while it answers. */
  #since: number | undefined;

  constructor(transport: Transport, log: Logger, clock: Clock) {
    this.server = transport.server;
    this.#transport = transport;
    this.#log = log;
    this.#clock = clock;
    this.#seldom = new Seldom(() => clock.monotonic());
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
      const advice = adviceFor(error);
      if (advice !== undefined) this.#failed(error, advice);
      else if (error instanceof StatusError) this.#answered();
      throw error;
    }
  }

  #failed(error: unknown, advice: string): void {
    const reason = errorWord(error);
    if (!this.#seldom.isDue(reason)) return;
    const now = this.#clock.monotonic();
    this.#since ??= now;
    const seconds = Math.round((now - this.#since) / 1000);
    const detail = error instanceof Error ? error.message : String(error);
    this.#log.error({ server: this.server, reason, detail, seconds }, `${advice}; trying again`);
  }

  #answered(): void {
    if (this.#since === undefined) return;
    const seconds = Math.round((this.#clock.monotonic() - this.#since) / 1000);
    this.#since = undefined;
    this.#log.info({ server: this.server, seconds }, 'the API server answers again');
  }
}

const silent =
  'the API server does not answer: check that it runs, and the network, firewalls and NetworkPolicies in between';
const unknownName = 'nobody knows the name of the API server: check the name, and DNS';
const untrusted =
  'the certificate of the API server is not trusted: give its CA, in the kubeconfig or with --certificate-authority';
const noTls = 'what listens there does not speak TLS: check the scheme and the port';

/** By the words of {@link ConnectionError}. */
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

/** What a person can do about it; undefined where the server answered, or nobody waited for it. */
function adviceFor(error: unknown): string | undefined {
  if (error instanceof StatusError) return error.code === 401 ? unknown : undefined;
  if (!(error instanceof ConnectionError) || error.code === 'ABORTED' || error.code === 'CLOSED') {
    return undefined;
  }
  return advices.get(error.code) ?? broken;
}
