import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../client/clock.ts';

/** What is let in: of the requests that any program of this machine, and any page of its browsers, may send. */

/** An answer that ends a request. */
export interface Refusal {
  readonly status: number;
  /** A word. */
  readonly reason: string;
  readonly message: string;
}

/** Forwarded ports differ. A name that was bound to a loopback address (DNS rebinding) is none of these. */
const allowedHost = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?$/i;

/** Whether a request is for a name of the loopback interface, named once. */
export function isForLoopback({ headersDistinct, url = '' }: IncomingMessage): boolean {
  const hosts = headersDistinct['host'] ?? [];
  // A target of the absolute form has a host of its own.
  return hosts.length === 1 && allowedHost.test(hosts[0] ?? '') && url.startsWith('/');
}

/**
 * Refuses what another page may have sent: browsers say where it is from. Without cookies nothing of a user goes along
 * with such a request; this is the second lock.
 *
 * @param needsOrigin of methods with which browsers send it always.
 */
export function refuseOtherOrigin(
  { headers: { host = '', origin, 'sec-fetch-site': site } }: IncomingMessage,
  needsOrigin: boolean,
): Refusal | undefined {
  const isOwn = origin === undefined ? !needsOrigin : origin.toLowerCase() === `http://${host.toLowerCase()}`;
  if (isOwn && (site === undefined || site === 'same-origin')) return undefined;
  return { status: 403, reason: 'NotAllowedOrigin', message: 'the request is not from this page' };
}

/** A session and the key that it is had with, 128 bits or more each. They are valid while the process runs that made them. */
export interface Credentials {
  readonly key: string;
  readonly session: string;
}

/** So many wrong keys within a minute make each answer wait. */
const mostWrong = 20;
const minuteMs = 60_000;
const delayMs = 1000;

/** Who has the key, and whose session is known. */
export class Gate {
  readonly #credentials: Credentials;
  readonly #clock: Clock;
  /** When wrong keys came, in monotonic milliseconds; the newest. */
  #wrong: number[] = [];

  constructor(credentials: Credentials, clock: Clock) {
    this.#credentials = credentials;
    this.#clock = clock;
  }

  /** The session of a key; undefined for a wrong one. After many wrong ones it takes a second. */
  async sessionFor(key: string): Promise<string | undefined> {
    const now = this.#clock.monotonic();
    this.#wrong = this.#wrong.filter((time) => now - time < minuteMs);
    const isLate = this.#wrong.length >= mostWrong;
    const isRight = isEqual(key, this.#credentials.key);
    if (!isRight && this.#wrong.length < mostWrong) this.#wrong.push(now);
    if (isLate) await this.#clock.sleep(delayMs);
    return isRight ? this.#credentials.session : undefined;
  }

  isKnown(session: string): boolean {
    return isEqual(session, this.#credentials.session);
  }

  /** Whether a request has the session in `Authorization: Bearer`. */
  isAuthorized({ headers: { authorization = '' } }: IncomingMessage): boolean {
    const [, session = ''] = /^Bearer ([\w-]+)$/.exec(authorization) ?? [];
    return session !== '' && this.isKnown(session);
  }
}

/** In a time that does not tell how much is equal. */
function isEqual(a: string, b: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}

/** Headers of each answer. */
export const safetyHeaders: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};
