import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { unauthorized } from '../../objects/status-errors.ts';
import type { UserInfo } from './user-info.ts';
import { clientCertificateUser } from './client-certificate.ts';
import { anonymousUser, withAuthenticatedGroup } from './users.ts';
import { webSocketToken } from './web-socket-token.ts';

/** Says who sent a request. */
export interface Authenticator {
  /** @throws {StatusError} 401 when no accepted credential is present, or a wrong one. */
  authenticate(request: IncomingMessage): UserInfo;
}

/** Knows bearer tokens of one sort. */
export interface TokenAuthenticator {
  /** The owner of a token, or undefined when the token is not of this sort or is wrong. */
  authenticateToken(token: string): UserInfo | undefined;
  /** What is right once stays right as long as the server runs. */
  readonly lasting: boolean;
}

export interface AuthenticatorOptions {
  /** Asked in this order. */
  readonly tokens: readonly TokenAuthenticator[];
  /** Requests without any credential are system:anonymous (`--anonymous-auth`). */
  readonly anonymous: boolean;
  /** Milliseconds since 1970. */
  now(): number;
}

/**
 * Client certificates first, then bearer tokens, then those of WebSockets, then anonymous: a wrong credential is refused
 * even where anonymous requests are allowed, but a right one counts beside another that is worth nothing (apiserver
 * `request/union`).
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  /** What each open connection showed last: a client shows the same token with every request. */
  const shown = new WeakMap<Socket, { readonly authorization: string; readonly user: UserInfo }>();
  return {
    authenticate({ socket, headers }) {
      const { authorization } = headers;
      const certificate = clientCertificateUser(socket, options.now());
      if (typeof certificate === 'object') return certificate;
      const before = shown.get(socket);
      if (before !== undefined && before.authorization === authorization) return before.user;
      const token = bearerToken(authorization);
      const bearer = ownerOf(options.tokens, token);
      if (authorization !== undefined && bearer !== undefined) {
        const { user, lasting } = bearer;
        if (lasting) shown.set(socket, { authorization, user });
        return user;
      }
      const offered = webSocketToken(headers);
      if (typeof offered === 'object') {
        const owner = ownerOf(options.tokens, offered.token);
        if (owner === undefined) throw unauthorized();
        // a backend behind `/proxy` is to choose among the others, and not to read the token
        headers['sec-websocket-protocol'] = offered.protocols;
        return owner.user;
      }
      const isBare = certificate === 'none' && token === undefined && offered === 'none';
      if (options.anonymous && isBare) return anonymousUser;
      throw unauthorized();
    },
  };
}

interface Owner {
  readonly user: UserInfo;
  readonly lasting: boolean;
}

function ownerOf(tokens: readonly TokenAuthenticator[], token: string | undefined): Owner | undefined {
  if (token === undefined) return undefined;
  for (const authenticator of tokens) {
    const owner = authenticator.authenticateToken(token);
    if (owner !== undefined) return { user: withAuthenticatedGroup(owner), lasting: authenticator.lasting };
  }
  return undefined;
}

/** The token of `Authorization: Bearer <token>`; undefined for other schemes, which are not supported. */
function bearerToken(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined;
  const header = authorization.trim();
  const space = header.indexOf(' ');
  if (space === -1 || header.slice(0, space).toLowerCase() !== 'bearer') return undefined;
  const token = header.slice(space + 1).trim();
  return token === '' ? undefined : token;
}
