import type { JsonWebKey } from 'node:crypto';
import { methodNotAllowed, resourceNotFound } from '../../objects/status-errors.ts';
import type { Handler } from '../http/exchange.ts';
import { replyNotFound } from '../http/router.ts';

/** The paths of OpenID Connect discovery for tokens of ServiceAccounts. */
export const openIdPaths = {
  configuration: '/.well-known/openid-configuration',
  keys: '/openid/v1/jwks',
} as const;

/** The options of {@link openIdProvider}. */
export interface OpenIdProviderOptions {
  /** The `iss` of the tokens. */
  readonly issuer: string;
  /** Public keys, each with `kid`, `alg` and `use`. */
  readonly keys: readonly JsonWebKey[];
  /** `host:port` as clients reach the server. */
  readonly address: () => string;
}

/**
 * Serves the OpenID configuration and the keys, with which relying parties verify ServiceAccount tokens on their own
 * (`pkg/routes/openidmetadata.go`).
 */
export function openIdProvider({ issuer, keys, address }: OpenIdProviderOptions): Handler {
  const documents: Readonly<Record<string, () => readonly [mediaType: string, body: unknown]>> = {
    [openIdPaths.configuration]: () => [
      'application/json',
      {
        issuer,
        jwks_uri: `https://${address()}${openIdPaths.keys}`,
        response_types_supported: ['id_token'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: [...new Set(keys.map(({ alg }) => alg))],
      },
    ],
    [openIdPaths.keys]: () => ['application/jwk-set+json', { keys }],
  };
  return async ({ method, info: { path } }, reply) => {
    await Promise.resolve();
    const endpoint = Object.values(openIdPaths).find((each) => path === each || path.startsWith(`${each}/`));
    if (endpoint === undefined) {
      replyNotFound(reply);
      return;
    }
    const document = documents[path.endsWith('/') ? path.slice(0, -1) : path];
    if (document === undefined) throw resourceNotFound();
    if (method !== 'GET') throw methodNotAllowed(['GET']);
    const [mediaType, body] = document();
    reply.sendAsIs(200, mediaType, JSON.stringify(body), { 'cache-control': 'public, max-age=3600' });
  };
}
