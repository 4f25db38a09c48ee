import { createHash, type X509Certificate, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import { type PeerCertificate, TLSSocket } from 'node:tls';
import { credentialId, withAuthenticatedGroup, anonymousUser } from './users.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';
import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { unauthorized } from '../../objects/status.ts';
import { decodeBase64Url } from '../../objects/formats/go-text.ts';

/** The user of a connection's certificate. */
interface CertificateUser {
  readonly user: UserInfo | 'none' | 'refused';
  /** The end of the certificate's validity, in milliseconds since 1970. */
  readonly expires: number;
}

/** By connection: its certificate never changes, and parsing it costs more than the rest of a small request. */
const users = new WeakMap<Socket, CertificateUser>();
/** The OID of the subject attribute with the uid of the user (`asn1util.X509UID`). */
const uidOid = '1.3.6.1.4.1.57683.2';

/**
 * The user of a client certificate: CN is the name, every O a group (apiserver `request/x509`). `none` without a
 * certificate, or for one without a name; `refused` for a certificate that the authority did not sign for clients, or
 * that has expired, even if it was valid when the connection was made.
 *
 * @param now milliseconds since 1970.
 */
function clientCertificateUser(socket: Socket, now: number): UserInfo | 'none' | 'refused' {
  let known = users.get(socket);
  if (known === undefined) users.set(socket, (known = readUser(socket)));
  return now < known.expires ? known.user : 'refused';
}

function readUser(socket: Socket): CertificateUser {
  const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  if (!(socket instanceof TLSSocket) || certificate === undefined) return { user: 'none', expires: Infinity };
  const expires = certificate.validToDate.getTime();
  if (!socket.authorized) return { user: 'refused', expires };
  return { user: userOf(certificate, socket.getPeerCertificate().subject), expires };
}

function userOf(
  { raw }: X509Certificate,
  subject: PeerCertificate['subject'],
): UserInfo | 'none' | 'refused' {
  const name = listOf(subject.CN).at(-1) ?? '';
  if (name === '') return 'none';
  const uids = listOf(Reflect.get(subject, uidOid));
  if (uids.length > 1 || uids.includes('')) return 'refused';
  const fingerprint = createHash('sha256').update(raw).digest('hex');
  return withAuthenticatedGroup({
    name,
    uid: uids[0] ?? '',
    groups: listOf(subject.O),
    extra: { [credentialId]: [`X509SHA256=${fingerprint}`] },
  });
}

/** The values of an attribute: Node gives a string for one, a list for several. */
function listOf(value: unknown): string[] {
  return [value].flat().filter((text) => typeof text === 'string');
}

/** Finds the user of a request. */
export interface Authenticator {
  /** @throws {StatusError} 401 when no accepted credential is present, or a wrong one. */
  authenticate(request: Pick<IncomingMessage, 'socket' | 'headers' | 'url'>): UserInfo;
}

/** Authenticates bearer tokens of one kind. */
export interface TokenAuthenticator {
  /**
   * The user of a token; undefined when the token is of another kind or invalid.
   *
   * @param audiences it must be for one of these; absent: for this server.
   */
  authenticateToken(token: string, audiences?: readonly string[]): UserInfo | undefined;
  /** Whether an accepted token stays valid while the server runs. */
  readonly lasting: boolean;
}

/** The options of an {@link Authenticator}. */
export interface AuthenticatorOptions {
  /** Tried in this order. */
  readonly tokens: readonly TokenAuthenticator[];
  /**
   * The paths on which requests without a credential are system:anonymous (`anonymous.conditions` of an
   * AuthenticationConfiguration; KEP-4633).
   */
  readonly anonymousPaths: 'all' | readonly string[];
  /** Milliseconds since 1970. */
  now(): number;
}

/**
 * Tries the client certificate, the bearer token, the one of a WebSocket, then anonymous access. One valid credential
 * suffices, whatever the others; without any, an invalid one is refused even where anonymous requests are allowed
 * (apiserver `request/union`).
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  /** The last accepted token of each connection: clients send the same one with every request. */
  const accepted = new WeakMap<Socket, { readonly authorization: string; readonly user: UserInfo }>();
  return {
    authenticate({ socket, headers, url = '/' }) {
      const { authorization } = headers;
      const certificate = clientCertificateUser(socket, options.now());
      if (typeof certificate === 'object') return certificate;
      const before = accepted.get(socket);
      if (before !== undefined && before.authorization === authorization) return before.user;
      const token = bearerToken(authorization);
      const bearer = ownerOf(options.tokens, token);
      if (authorization !== undefined && bearer !== undefined) {
        const { user, lasting } = bearer;
        if (lasting) accepted.set(socket, { authorization, user });
        return user;
      }
      const subprotocol = webSocketToken(headers);
      if (typeof subprotocol === 'object') {
        const owner = ownerOf(options.tokens, subprotocol.token);
        if (owner === undefined) throw unauthorized();
        // A backend behind `/proxy` gets this header: it must not read the token.
        headers['sec-websocket-protocol'] = subprotocol.protocols;
        return owner.user;
      }
      const hasNoCredential = certificate === 'none' && token === undefined && subprotocol === 'none';
      if (hasNoCredential && isAnonymousPath(options.anonymousPaths, url)) return anonymousUser;
      throw unauthorized();
    },
  };
}

function isAnonymousPath(paths: AuthenticatorOptions['anonymousPaths'], url: string): boolean {
  const [path = '/'] = url.split('?', 1);
  return paths === 'all' || paths.includes(path);
}

interface TokenOwner {
  readonly user: UserInfo;
  readonly lasting: boolean;
}

function ownerOf(tokens: readonly TokenAuthenticator[], token: string | undefined): TokenOwner | undefined {
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
  // Further blanks end it: behind two there is none (apiserver `request/bearertoken`).
  const [scheme = '', token = ''] = header.split(' ', 2);
  return scheme.toLowerCase() !== 'bearer' || token === '' ? undefined : token;
}

const protocolPrefix = 'base64url.bearer.authorization.k8s.io.';

/** A bearer token among the subprotocols of a WebSocket. */
interface WebSocketToken {
  readonly token: string;
  /** The other subprotocols, for the handshake. */
  readonly protocols: string;
}

/**
 * The bearer token of a WebSocket, sent as the subprotocol `base64url.bearer.authorization.k8s.io.<token>`, since
 * browsers cannot set headers (apiserver `pkg/authentication/request/websocket/protocol.go`).
 *
 * @returns `none` without a token; `refused` for one that cannot be decoded, for a second one, and for one without
 *   another subprotocol that the server could select.
 */
export function webSocketToken(headers: IncomingHttpHeaders): WebSocketToken | 'none' | 'refused' {
  const { upgrade = '', connection = '', 'sec-websocket-protocol': sent = '' } = headers;
  if (upgrade.toLowerCase() !== 'websocket' || !connection.toLowerCase().includes('upgrade')) return 'none';
  const protocols = sent.split(',').map((protocol) => protocol.trim());
  const [encoded, second] = protocols
    .filter((protocol) => protocol.startsWith(protocolPrefix))
    .map((protocol) => protocol.slice(protocolPrefix.length));
  if (second !== undefined) return 'refused';
  if (encoded === undefined || encoded === '') return 'none';
  const token = decode(encoded);
  const others = protocols.filter((protocol) => !protocol.startsWith(protocolPrefix));
  if (token === undefined || others.length === 0) return 'refused';
  return { token, protocols: others.join(',') };
}

/** The text in base64url; undefined where it is not base64url or not UTF-8. */
function decode(encoded: string): string | undefined {
  const bytes = decodeBase64Url(encoded);
  return typeof bytes !== 'number' && isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}

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
    authenticateToken(token, audiences) {
      // They are for this server alone.
      if (audiences !== undefined) return undefined;
      const offered = digest(token);
      let owner: UserInfo | undefined;
      for (const entry of known) if (timingSafeEqual(entry.digest, offered)) owner = entry.user;
      return owner;
    },
  };
}
