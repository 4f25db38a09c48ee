/** ID tokens of an OpenID Connect provider (client-go's `plugin/pkg/client/auth/oidc`). */
import { Agent, request } from 'undici';
import { z } from 'zod';
import { isRecord } from '../../objects/json.ts';
import type { Credential } from './login.ts';

/** `users[].user.auth-provider.config` of a kubeconfig. */
const oidcSettings = z.object({
  'idp-issuer-url': z.url(),
  'client-id': z.string().min(1),
  'client-secret': z.string().nullish(),
  'id-token': z.string().nullish(),
  'refresh-token': z.string().nullish(),
  /** A file, PEM. */
  'idp-certificate-authority': z.string().nullish(),
  /** Base64 of PEM. */
  'idp-certificate-authority-data': z.string().nullish(),
});

/** See {@link oidcSettings}. */
type OidcSettings = z.infer<typeof oidcSettings>;

/** @throws {Error} when it is malformed. */
export function parseOidcSettings(value: unknown): OidcSettings {
  const parsed = oidcSettings.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Error(`the oidc provider of the kubeconfig is not valid: ${z.prettifyError(parsed.error)}`);
}

/** Milliseconds that a provider has to answer. */
const timeoutMs = 30_000;
/** Milliseconds before its expiry from which an ID token counts as expired (`expiryDelta` of oauth2). */
const margin = 10_000;

const discovered = z.object({ token_endpoint: z.url() });
const granted = z.object({ id_token: z.string().min(1), refresh_token: z.string().nullish() });

/**
 * Provides the ID token of the kubeconfig until it expires, and then new ones for the refresh token. They are kept in
 * memory only: the kubeconfig is not written.
 */
export class OidcProvider {
  readonly #settings: OidcSettings;
  readonly #ca: string | Buffer | undefined;
  readonly #now: () => number;
  #idToken: string | undefined;
  #refreshToken: string | undefined;

  /**
   * @param ca the authorities of the provider in PEM; absent: the system's.
   * @param now milliseconds since 1970.
   */
  constructor(settings: OidcSettings, ca: string | Buffer | undefined, now: () => number) {
    this.#settings = settings;
    this.#ca = ca;
    this.#now = now;
    this.#idToken = settings['id-token'] ?? undefined;
    this.#refreshToken = settings['refresh-token'] ?? undefined;
  }

  /** @throws {Error} when there is no refresh token, or the provider refuses it. */
  async obtain(): Promise<Credential> {
    // A token that the server refused is not used again.
    const first = this.#idToken;
    this.#idToken = undefined;
    if (first !== undefined && expiryOf(first) > this.#now())
      return { token: first, expiresAt: expiryOf(first) };
    const token = await this.#refresh();
    return { token, expiresAt: expiryOf(token) };
  }

  async #refresh(): Promise<string> {
    const { 'idp-issuer-url': issuer, 'client-id': id, 'client-secret': secret } = this.#settings;
    if (this.#refreshToken === undefined) {
      throw new Error(`the ID token of ${issuer} has expired, and the kubeconfig has no refresh-token`);
    }
    const agent = new Agent(this.#ca === undefined ? {} : { connect: { ca: this.#ca } });
    try {
      const base = issuer.endsWith('/') ? issuer.slice(0, -1) : issuer;
      const place = await ask(agent, `${base}/.well-known/openid-configuration`, undefined, discovered);
      const grant = new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: this.#refreshToken,
        client_id: id,
        ...(secret === undefined || secret === null || secret === '' ? {} : { client_secret: secret }),
      });
      const answer = await ask(agent, place.token_endpoint, grant, granted);
      // Providers that do not rotate refresh tokens return none.
      this.#refreshToken = answer.refresh_token ?? this.#refreshToken;
      return answer.id_token;
    } finally {
      await agent.close();
    }
  }
}

/** Sends a GET, or a POST of a form. */
async function ask<T>(
  agent: Agent,
  url: string,
  form: URLSearchParams | undefined,
  schema: z.ZodType<T>,
): Promise<T> {
  const { statusCode, body } = await request(url, {
    dispatcher: agent,
    method: form === undefined ? 'GET' : 'POST',
    signal: AbortSignal.timeout(timeoutMs),
    ...(form === undefined
      ? {}
      : { body: form.toString(), headers: { 'content-type': 'application/x-www-form-urlencoded' } }),
  });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`${url} answered ${statusCode}: ${text.slice(0, 200)}`);
  const parsed = schema.safeParse(jsonOf(text));
  if (!parsed.success) throw new Error(`${url} returned an invalid answer: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

/** When an ID token expires, less the margin, in milliseconds since 1970; 0 for a text that is not an ID token. */
function expiryOf(token: string): number {
  const payload = jsonOf(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
  const seconds = isRecord(payload) ? payload['exp'] : undefined;
  return typeof seconds === 'number' ? seconds * 1000 - margin : 0;
}

/** Parsed JSON; undefined for other texts. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
