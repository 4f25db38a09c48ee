/**
 * Tokens of ServiceAccounts: JWTs that `serviceaccounts/token` (TokenRequest) issues (`pkg/serviceaccount/jwt.go`),
 * signed with ES256.
 */
import {
  type JsonWebKey,
  type KeyObject,
  createHash,
  createPublicKey,
  randomUUID,
  sign,
  verify,
} from 'node:crypto';
import { decodeBase64Url } from '../../objects/formats/go-text.ts';
import { isRecord, isStringList, type JsonRecord, recordAt } from '../../objects/json.ts';
import { credentialId, serviceAccountGroups, serviceAccountUserName } from './users.ts';
import type { TokenAuthenticator } from './authenticator.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

/** The options of {@link serviceAccountTokens}. */
export interface ServiceAccountTokensOptions {
  /** EC P-256, private. */
  readonly key: KeyObject;
  /** `--service-account-issuer`. */
  readonly issuer: string;
  /** Milliseconds since 1970. */
  now(): number;
  /** The uid of a ServiceAccount now, undefined when there is none: tokens of a deleted account are invalid. */
  accountUid(namespace: string, name: string): string | undefined;
  /** The uid of an object that a token is bound to, undefined when there is none. */
  boundUid(kind: BoundObject['kind'], namespace: string, name: string): string | undefined;
}

/** The object whose deletion invalidates a token. */
export interface BoundObject {
  readonly kind: 'Pod' | 'Secret' | 'Node';
  readonly name: string;
  readonly uid: string;
  /** That of a Pod, if it has one: the token names it. `uid` is "" where there is no such Node. */
  readonly node?: { readonly name: string; readonly uid: string };
}

interface TokenRequest {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Empty for the issuer itself. */
  readonly audiences: readonly string[];
  readonly expirationSeconds: number;
  readonly boundObject?: BoundObject;
}

interface IssuedToken {
  readonly token: string;
  /** RFC 3339, UTC, whole seconds. */
  readonly expirationTimestamp: string;
}

/** Issues and authenticates tokens of ServiceAccounts. */
export interface ServiceAccountTokens extends TokenAuthenticator {
  /** The `iss` of the tokens. */
  readonly issuer: string;
  /** The public keys that verify them. */
  readonly keys: readonly JsonWebKey[];
  issue(request: TokenRequest): IssuedToken;
}

const algorithm = 'ES256';
const signatureFormat = 'ieee-p1363';

/** Tokens signed with the key of the options. */
export function serviceAccountTokens(options: ServiceAccountTokensOptions): ServiceAccountTokens {
  const publicKey = createPublicKey(options.key);
  const kid = createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64url');
  const header = encodePart({ alg: algorithm, kid });
  return {
    lasting: false,
    issuer: options.issuer,
    keys: [{ use: 'sig', kid, alg: algorithm, ...publicKey.export({ format: 'jwk' }) }],
    issue(request) {
      const issuedAt = Math.floor(options.now() / 1000);
      const expires = issuedAt + request.expirationSeconds;
      const { boundObject: bound } = request;
      const claims = {
        aud: request.audiences.length === 0 ? [options.issuer] : request.audiences,
        exp: expires,
        iat: issuedAt,
        iss: options.issuer,
        jti: randomUUID(),
        'kubernetes.io': {
          namespace: request.namespace,
          ...(bound === undefined
            ? {}
            : { [bound.kind.toLowerCase()]: { name: bound.name, uid: bound.uid } }),
          ...(bound?.node === undefined ? {} : { node: bound.node }),
          serviceaccount: { name: request.name, uid: request.uid },
        },
        nbf: issuedAt,
        sub: serviceAccountUserName(request.namespace, request.name),
      };
      const signed = `${header}.${encodePart(claims)}`;
      const signature = sign('sha256', Buffer.from(signed), {
        key: options.key,
        dsaEncoding: signatureFormat,
      });
      return {
        token: `${signed}.${signature.toString('base64url')}`,
        expirationTimestamp: new Date(expires * 1000).toISOString().replace(/\.\d+Z$/, 'Z'),
      };
    },
    authenticateToken(token, audiences = [options.issuer]) {
      const [head, payload, signature, ...more] = token.split('.');
      if (head !== header || payload === undefined || signature === undefined || more.length > 0)
        return undefined;
      const signed = Buffer.from(`${head}.${payload}`);
      const key = { key: publicKey, dsaEncoding: signatureFormat } as const;
      const signatureBytes = decodeBase64Url(signature);
      if (typeof signatureBytes === 'number' || !verify('sha256', signed, key, signatureBytes))
        return undefined;
      const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
      return isRecord(claims) ? userOf(claims, options, audiences) : undefined;
    },
  };
}

/** The user of claims that this server signed; undefined for expired ones, and if one of their objects is gone. */
function userOf(
  claims: JsonRecord,
  options: ServiceAccountTokensOptions,
  audiences: readonly string[],
): UserInfo | undefined {
  const seconds = options.now() / 1000;
  const { exp, nbf, aud, jti } = claims;
  if (typeof exp !== 'number' || typeof nbf !== 'number' || seconds >= exp || seconds < nbf) return undefined;
  if (!isStringList(aud) || !aud.some((each) => audiences.includes(each))) return undefined;
  const kubernetes = recordAt(claims, 'kubernetes.io');
  const { namespace } = kubernetes;
  const { name, uid } = recordAt(kubernetes, 'serviceaccount');
  if (typeof namespace !== 'string' || typeof name !== 'string' || typeof uid !== 'string') return undefined;
  if (options.accountUid(namespace, name) !== uid) return undefined;
  const extra: Record<string, readonly string[]> = {};
  if (typeof jti === 'string') extra[credentialId] = [`JTI=${jti}`];
  const isOfPod = isRecord(kubernetes['pod']);
  for (const kind of ['Pod', 'Secret', 'Node'] as const) {
    const bound = recordAt(kubernetes, kind.toLowerCase());
    if (typeof bound['name'] !== 'string' || typeof bound['uid'] !== 'string') continue;
    // A Pod's token only names the Node.
    const isChecked = kind !== 'Node' || !isOfPod;
    if (isChecked && options.boundUid(kind, namespace, bound['name']) !== bound['uid']) return undefined;
    const key = `authentication.kubernetes.io/${kind.toLowerCase()}`;
    if (kind !== 'Secret') {
      extra[`${key}-name`] = [bound['name']];
      if (bound['uid'] !== '') extra[`${key}-uid`] = [bound['uid']];
    }
  }
  return {
    name: serviceAccountUserName(namespace, name),
    uid,
    groups: serviceAccountGroups(namespace),
    extra,
  };
}

function encodePart(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
