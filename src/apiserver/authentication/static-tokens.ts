import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { TokenAuthenticator } from './authenticator.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

/** A bearer token and its user. */
export interface StaticToken {
  readonly token: string;
  readonly user: UserInfo;
}

/**
 * Authenticates tokens known at start (`--token`, `--token-auth-file`). Only salted digests are kept, and each is
 * compared in constant time, so that neither the response time nor a heap dump reveals a token.
 */
export function staticTokens(tokens: readonly StaticToken[]): TokenAuthenticator {
  const salt = randomBytes(32).toString('base64');
  const digest = (token: string): Buffer => hash('sha256', salt + token, 'buffer');
  const known = tokens.map(({ token, user }) => ({ digest: digest(token), user }));
  return {
    lasting: true,
    authenticateToken(token) {
      const offered = digest(token);
      let owner: UserInfo | undefined;
      for (const entry of known) if (timingSafeEqual(entry.digest, offered)) owner = entry.user;
      return owner;
    },
  };
}
