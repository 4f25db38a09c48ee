import type { IncomingMessage } from 'node:http';
import type { UserInfo } from '../http/exchange.ts';

/** Says who sent a request. */
export interface Authenticator {
  /** @throws {StatusError} 401 when no accepted credential is present, or a wrong one. */
  authenticate(request: IncomingMessage): UserInfo;
}

/** Knows bearer tokens of one sort. */
export interface TokenAuthenticator {
  /** The owner of a token, or undefined when the token is not of this sort or is wrong. */
  authenticateToken(token: string): UserInfo | undefined;
}

export interface AuthenticatorOptions {
  readonly tokens: readonly TokenAuthenticator[];
  /** Requests without any credential are system:anonymous (`--anonymous-auth`). */
  readonly anonymous: boolean;
}

export function createAuthenticator(_options: AuthenticatorOptions): Authenticator {
  throw new Error('not built yet');
}
