import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { badRequest, headersTooLarge, StatusError, tooManyRequests } from '../../objects/status.ts';
import type { IncomingRequest, RequestInfo } from './exchange.ts';

/**
 * Refuses requests for another server (RFC 9110, 15.5.20): a web page whose name resolves to this server (DNS
 * rebinding) sends that name in `Host`. Addresses are always accepted: they cannot be rebound.
 */
export class HostCheck {
  readonly #certificate: X509Certificate;
  /** Nearly all requests name the same host. */
  #lastServed = '';

  /** @param certificate of the server, in PEM. */
  constructor(certificate: string) {
    this.#certificate = new X509Certificate(certificate);
  }

  /**
   * @throws {StatusError} 400 for more than one Host or one that is none (Go's `net/http` readRequest), 421 for a name that
   *   the certificate does not have. HTTP/1.0 needs no Host.
   */
  check({ rawHeaders, headers: { host = '' }, url = '' }: IncomingRequest): void {
    let hosts = 0;
    for (let i = 0; i < rawHeaders.length; i += 2) {
      if (rawHeaders[i]?.length === 4 && rawHeaders[i]?.toLowerCase() === 'host') hosts++;
    }
    if (hosts > 1) throw badRequest('too many Host headers');
    if (host !== this.#lastServed) {
      this.#checkName(host);
      this.#lastServed = host;
    }
    // A target in absolute form, as sent to a proxy, counts instead of the header.
    if (!url.startsWith('/')) this.#checkName(/^https?:\/\/([^/?]*)/i.exec(url)?.[1] ?? '');
  }

  #checkName(host: string): void {
    const parts = /^(?:\[([\da-f:.%\w]*)\]|([^:[\]]*))(?::\d*)?$/i.exec(host);
    if (parts === null) throw badRequest('malformed Host header');
    const name = (parts[1] ?? parts[2] ?? '').replace(/\.$/, '');
    if (name === '' || isIP(name) !== 0 || this.#certificate.checkHost(name) !== undefined) return;
    const names = this.#certificate.subjectAltName ?? '';
    const message = `the request is for ${JSON.stringify(name)}, which is no address and no name of this server (${names})`;
    throw new StatusError(421, '', message);
  }
}

/**
 * The limit of headers of one request. Some versions of Node drop further ones, and those by which a proxy impersonates
 * users may come last: requests with more are refused, here or by Node.
 */
export const maxHeaders = 2000;

/** @throws {StatusError} 431 */
export function checkHeaderCount({ rawHeaders }: IncomingRequest): void {
  if (rawHeaders.length > 2 * maxHeaders) {
    throw headersTooLarge(`the request has more than ${maxHeaders} headers`);
  }
}

const units: ReadonlySet<string> = new Set(['ns', 'us', 'µs', 'μs', 'ms', 's', 'm', 'h']);
/** A text longer than this is not parsed. */
const maxLength = 64;

/**
 * The `timeout` parameter of every request that does not last (apiserver `filters/request_deadline.go`). Only
 * whether it is a duration is looked at: every request gets the longest time that there is.
 *
 * @throws {StatusError} 400 in the words of Go's `time.ParseDuration`.
 */
export function checkRequestTimeout(query: URLSearchParams, info: RequestInfo): void {
  const text = query.get('timeout') ?? '';
  if (text === '' || isLongRunning(info)) return;
  const problem = durationProblem(text);
  if (problem !== undefined) {
    throw badRequest(`invalid timeout specified in the request URL - time: ${problem}`);
  }
}

function durationProblem(text: string): string | undefined {
  const quoted = JSON.stringify(text);
  const invalid = `invalid duration ${quoted}`;
  let rest = text.replace(/^[+-]/, '');
  if (rest === '0') return undefined;
  if (rest === '' || text.length > maxLength) return invalid;
  while (rest !== '') {
    const number = /^(?:\d+(?:\.\d*)?|\.\d+)/.exec(rest)?.[0];
    if (number === undefined) return invalid;
    rest = rest.slice(number.length);
    const unit = /^[^.\d]*/.exec(rest)?.[0] ?? '';
    if (unit === '') return `missing unit in duration ${quoted}`;
    if (!units.has(unit)) return `unknown unit ${JSON.stringify(unit)} in duration ${quoted}`;
    rest = rest.slice(unit.length);
  }
  return undefined;
}

const verbs: ReadonlySet<string> = new Set(['watch', 'proxy']);

const subresources: ReadonlySet<string> = new Set(['attach', 'exec', 'proxy', 'log', 'portforward']);

/**
 * Whether a request is exempt from the limits of time and number (apiserver `server/filters/longrunning.go`,
 * BasicLongRunningRequestCheck).
 */
export function isLongRunning({ verb, subresource }: RequestInfo): boolean {
  return verbs.has(verb) || subresources.has(subresource);
}

export interface InFlightLimits {
  /** `--max-requests-inflight`. */
  readonly readOnly: number;
  /** `--max-mutating-requests-inflight`. */
  readonly mutating: number;
}

/** Ends the count of a request. */
export type Release = () => void;

const readOnlyVerbs: ReadonlySet<string> = new Set(['get', 'list', 'head', 'options']);

/** For requests that are not counted. */
const unlimited: Release = () => undefined;

/**
 * Bounds the requests that are served at the same time, reads and writes apart, so that many of one kind cannot
 * starve the other (apiserver `server/filters/maxinflight.go`). Watches and other long-running requests do not
 * count.
 */
export class InFlight {
  readonly #limits: InFlightLimits;
  #reading = 0;
  #writing = 0;
  readonly #releaseReading: Release = () => {
    this.#reading--;
  };
  readonly #releaseWriting: Release = () => {
    this.#writing--;
  };

  constructor(limits: InFlightLimits) {
    this.#limits = limits;
  }

  /** @throws {StatusError} 429 */
  enter(info: RequestInfo): Release {
    if (isLongRunning(info)) return unlimited;
    if (readOnlyVerbs.has(info.verb)) {
      if (this.#reading >= this.#limits.readOnly) throw refused();
      this.#reading++;
      return this.#releaseReading;
    }
    if (this.#writing >= this.#limits.mutating) throw refused();
    this.#writing++;
    return this.#releaseWriting;
  }
}

function refused(): Error {
  return tooManyRequests('Too many requests, please try again later.', 1);
}
