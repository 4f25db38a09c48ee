import { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { badRequest } from '../../objects/status-errors.ts';
import { StatusError } from '../../objects/status.ts';

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
  check({ rawHeaders, headers: { host = '' }, url = '' }: IncomingMessage): void {
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
