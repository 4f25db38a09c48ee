import type { IncomingMessage } from 'node:http';
import { unauthorized } from '../../objects/status-errors.ts';
import type { UserInfo } from '../http/exchange.ts';
import { clientCertificateUser } from './client-certificate.ts';
import { anonymousUser, withAuthenticatedGroup } from './users.ts';

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
  /** Asked in this order. */
  readonly tokens: readonly TokenAuthenticator[];
  /** Requests without any credential are system:anonymous (`--anonymous-auth`). */
  readonly anonymous: boolean;
}

/**
 * Client certificates first, then bearer tokens, then anonymous: a wrong credential is refused even where
 * anonymous requests are allowed.
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  return {
    authenticate(request) {
      const certificate = clientCertificateUser(request.socket);
      if (certificate !== undefined) return certificate;
      const token = bearerToken(request.headers.authorization);
      if (token !== undefined) {
        for (const authenticator of options.tokens) {
          const user = authenticator.authenticateToken(token);
          if (user !== undefined) return withAuthenticatedGroup(user);
        }
        throw unauthorized();
      }
      if (options.anonymous) return anonymousUser;
      throw unauthorized();
    },
  };
}

/** The token of `Authorization: Bearer <token>`; undefined for other schemes, which nobody here knows. */
function bearerToken(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined;
  const header = authorization.trim();
  const space = header.indexOf(' ');
  if (space === -1 || header.slice(0, space).toLowerCase() !== 'bearer') return undefined;
  const token = header.slice(space + 1).trim();
  return token === '' ? undefined : token;
}
