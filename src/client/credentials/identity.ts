import { readFile } from 'node:fs/promises';
import type { ConnectionOptions } from 'node:tls';
import type { Clock } from '../clock.ts';
import type { EndpointSource } from '../transport.ts';

/** The credentials of a connection and of a request. */
export interface Credentials {
  /** Lower-case names: authorization, impersonate-user. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly tls: Pick<
    ConnectionOptions,
    'ca' | 'cert' | 'key' | 'pfx' | 'passphrase' | 'rejectUnauthorized' | 'servername'
  >;
}

/** A source of credentials, which change while the process runs. */
export interface ClientIdentity {
  readonly server: string;
  /** A proxy in front of the server; absent: none. */
  readonly proxy?: ProxySetting;
  /** The credentials for the next request; cheap to call. */
  credentials(): Promise<Credentials>;
  /** Call when the server refused the credentials with 401: the next call gets new ones. */
  refused(): void;
}

/** `uri`: one proxy for everything; `environment`: by HTTPS_PROXY and NO_PROXY. */
export type ProxySetting = { readonly kind: 'uri'; readonly uri: string } | { readonly kind: 'environment' };

/** client-go reads token files again every minute (`transport/token_source.go`). */
export const tokenLifetimeMs = 60_000;

/** A token in a file that is rotated by others, such as the kubelet. */
export class TokenFile {
  readonly #path: string;
  readonly #clock: Clock;
  #token: string | undefined;
  #readAt = 0;

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  /**
   * The token, at most a minute old. While the file cannot be read, the last token is used. @throws {Error} when there
   * never was one.
   */
  async token(): Promise<string> {
    const now = this.#clock.monotonic();
    if (this.#token !== undefined && now - this.#readAt < tokenLifetimeMs) return this.#token;
    try {
      const text = (await readFile(this.#path, 'utf8')).trim();
      if (text === '') throw new Error(`the token file ${this.#path} is empty`);
      this.#token = text;
      this.#readAt = now;
      return text;
    } catch (error) {
      if (this.#token === undefined) throw error;
      return this.#token;
    }
  }

  forget(): void {
    this.#readAt = Number.NEGATIVE_INFINITY;
  }
}

/** The identity for an {@link EndpointSource}. */
export function endpointIdentity(source: EndpointSource, clock: Clock): ClientIdentity {
  const { ca, cert, key, token, tokenFile } = source;
  const file = tokenFile === undefined ? undefined : new TokenFile(tokenFile, clock);
  const tls = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
  return {
    server: trimSlash(source.url),
    async credentials() {
      const bearer = file === undefined ? token : await file.token();
      return { headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }, tls };
    },
    refused: () => file?.forget(),
  };
}

/** URLs are joined with absolute paths. */
export function trimSlash(url: string): string {
  let end = url.length;
  while (end > 0 && url[end - 1] === '/') end--;
  return url.slice(0, end);
}
