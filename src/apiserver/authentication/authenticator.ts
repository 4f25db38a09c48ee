import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { unauthorized } from '../../objects/status-errors.ts';
import { anonymousUser, withAuthenticatedGroup } from './users.ts';
import { clientCertificateUser } from './client-certificate.ts';
import { isUtf8 } from 'buffer';
import type { IncomingHttpHeaders } from 'http';
import { decodeBase64Url } from '../../objects/base64url.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

/** Finds the user of a request. */
export interface Authenticator {
  /** @throws {StatusError} 401 when no accepted credential is present, or a wrong one. */
  authenticate(request: IncomingMessage): UserInfo;
}

/** Authenticates bearer tokens of one sort. */
export interface TokenAuthenticator {
  /** The owner of a token, or undefined when the token is not of this sort or is wrong. */
  authenticateToken(token: string): UserInfo | undefined;
  /** A token that was accepted stays valid while the server runs. */
  readonly lasting: boolean;
}

export interface AuthenticatorOptions {
  /** Tried in this order. */
  readonly tokens: readonly TokenAuthenticator[];
  /**
   * On which paths requests without any credential are system:anonymous (`anonymous.conditions` of an
   * AuthenticationConfiguration; KEP-4633).
   */
  readonly anonymousPaths: 'all' | readonly string[];
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
    authenticate({ socket, headers, url = '/' }) {
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
        // a backend behind `/proxy` chooses among the others, and must not read the token
        headers['sec-websocket-protocol'] = offered.protocols;
        return owner.user;
      }
      const isBare = certificate === 'none' && token === undefined && offered === 'none';
      if (isBare && isAnonymousPath(options.anonymousPaths, url)) return anonymousUser;
      throw unauthorized();
    },
  };
}

function isAnonymousPath(paths: AuthenticatorOptions['anonymousPaths'], url: string): boolean {
  const [path = '/'] = url.split('?', 1);
  return paths === 'all' || paths.includes(path);
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

const prefix = 'base64url.bearer.authorization.k8s.io.';

/** A bearer token among the subprotocols of a WebSocket. */
interface WebSocketToken {
  readonly token: string;
  /** The other subprotocols, for the handshake. */
  readonly protocols: string;
}

/**
 * The bearer token that a WebSocket shows as the subprotocol `base64url.bearer.authorization.k8s.io.<token>`, since
 * browsers can set no headers (apiserver `pkg/authentication/request/websocket/protocol.go`).
 *
 * @returns `none` when it shows none, `refused` for one that cannot be read, a second one, or one without another
 *   subprotocol that could be answered.
 */
export function webSocketToken(headers: IncomingHttpHeaders): WebSocketToken | 'none' | 'refused' {
  const { upgrade = '', connection = '', 'sec-websocket-protocol': sent = '' } = headers;
  if (upgrade.toLowerCase() !== 'websocket' || !connection.toLowerCase().includes('upgrade')) return 'none';
  const protocols = sent.split(',').map((protocol) => protocol.trim());
  const [encoded, second] = protocols
    .filter((protocol) => protocol.startsWith(prefix))
    .map((protocol) => protocol.slice(prefix.length));
  if (second !== undefined) return 'refused';
  if (encoded === undefined || encoded === '') return 'none';
  const token = decode(encoded);
  const others = protocols.filter((protocol) => !protocol.startsWith(prefix));
  if (token === undefined || others.length === 0) return 'refused';
  return { token, protocols: others.join(',') };
}

/** Base64url of UTF-8. */
function decode(encoded: string): string | undefined {
  const bytes = decodeBase64Url(encoded);
  return typeof bytes !== 'number' && isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}
