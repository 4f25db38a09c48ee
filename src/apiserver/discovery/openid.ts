import { fullVersion, kubernetesVersion } from '../../objects/kubernetes-version.ts';
import type { JsonWebKey } from 'node:crypto';
import { methodNotAllowed, resourceNotFound } from '../../objects/status.ts';
import { type Handler, replyNotFound } from '../http/exchange.ts';
import { requireProducible } from '../http/negotiation.ts';

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
  /** `host:port` as clients reach the server that do not know it by the name in `issuer`. */
  readonly address: () => string;
}

/**
 * Serves the OpenID configuration and the keys, with which relying parties verify ServiceAccount tokens on their own
 * (`pkg/routes/openidmetadata.go`).
 */
export function openIdProvider({ issuer, keys, address }: OpenIdProviderOptions): Handler {
  const issuerHost = URL.canParse(issuer) ? new URL(issuer).host : undefined;
  const documents: Readonly<Record<string, (host: string) => readonly [mediaType: string, body: unknown]>> = {
    [openIdPaths.configuration]: (host) => [
      'application/json',
      {
        issuer,
        // The address may be the loopback of the machine: a Pod, which asks the issuer, does not reach it.
        jwks_uri: `https://${host === issuerHost ? host : address()}${openIdPaths.keys}`,
        response_types_supported: ['id_token'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: [...new Set(keys.map(({ alg }) => alg))],
      },
    ],
    [openIdPaths.keys]: () => ['application/jwk-set+json', { keys }],
  };
  return async ({ method, headers, info: { path } }, reply) => {
    await Promise.resolve();
    const endpoint = Object.values(openIdPaths).find((each) => path === each || path.startsWith(`${each}/`));
    if (endpoint === undefined) {
      replyNotFound(reply);
      return;
    }
    const document = documents[path.endsWith('/') ? path.slice(0, -1) : path];
    if (document === undefined) throw resourceNotFound();
    if (method !== 'GET') throw methodNotAllowed(['GET']);
    const [mediaType, body] = document(headers.host ?? '');
    reply.sendAsIs(200, mediaType, JSON.stringify(body), { 'cache-control': 'public, max-age=3600' });
  };
}

/** Fields of `/version` besides the Kubernetes version. */
export interface BuildInfo {
  /** The version of servicenet, as in package.json. */
  readonly version: string;
  /** With Go's names: `linux/amd64`. */
  readonly platform: string;
}

/** Serves `/version` (apimachinery `version/types.go`). The build metadata of the version names servicenet. */
export function versionHandler(build: BuildInfo): Handler {
  const { major, minor } = kubernetesVersion;
  const body = {
    major,
    minor,
    emulationMajor: major,
    emulationMinor: minor,
    minCompatibilityMajor: major,
    minCompatibilityMinor: String(Number(minor) - 1),
    gitVersion: `${fullVersion}+servicenet.${build.version}`,
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: 'none',
    compiler: 'gc',
    platform: build.platform,
  };
  return async ({ info, method, headers }, reply) => {
    await Promise.resolve();
    if (info.path !== '/version' && info.path !== '/version/') throw resourceNotFound();
    if (method !== 'GET') throw methodNotAllowed(['GET']);
    requireProducible(headers.accept, ['application/json']);
    reply.send(200, 'application/json', JSON.stringify(body, null, 2));
  };
}
