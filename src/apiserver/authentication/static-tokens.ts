import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { TokenAuthenticator } from './authenticator.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

export interface StaticToken {
  readonly token: string;
  readonly user: UserInfo;
}

/**
 * Tokens known at start (`--token`, `--token-auth-file`). Only their salted digests are kept; a guess is compared with
 * every one of them in constant time, so that neither the time nor a heap dump reveals a token.
 */
export function staticTokens(tokens: readonly StaticToken[]): TokenAuthenticator {
  // The salt: 256 random bits.
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
