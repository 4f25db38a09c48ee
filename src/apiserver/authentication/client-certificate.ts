import { createHash, type X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { type PeerCertificate, TLSSocket } from 'node:tls';
import { credentialId, withAuthenticatedGroup } from './users.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

/** The user in a connection's certificate. */
interface Shown {
  readonly user: UserInfo | 'none' | 'refused';
  /** Milliseconds since 1970 from which on the certificate is worth nothing. */
  readonly ends: number;
}

/** A connection's certificate never changes, and parsing it costs more than the rest of a small request. */
const shown = new WeakMap<Socket, Shown>();
/** The attribute with the uid of the user (`asn1util.X509UID`). */
const uidOid = '1.3.6.1.4.1.57683.2';

/**
 * The user of a client certificate: CN is the name, every O a group (apiserver `request/x509`). `none` when the client
 * showed none, or one without a name; `refused` for a certificate that the authority did not sign for clients, or whose
 * time is over, also if it was not when the connection was made.
 *
 * @param now milliseconds since 1970.
 */
export function clientCertificateUser(socket: Socket, now: number): UserInfo | 'none' | 'refused' {
  let before = shown.get(socket);
  if (before === undefined) shown.set(socket, (before = readUser(socket)));
  return now < before.ends ? before.user : 'refused';
}

function readUser(socket: Socket): Shown {
  const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  if (!(socket instanceof TLSSocket) || certificate === undefined) return { user: 'none', ends: Infinity };
  const ends = certificate.validToDate.getTime();
  if (!socket.authorized) return { user: 'refused', ends };
  return { user: userOf(certificate, socket.getPeerCertificate().subject), ends };
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

/** Node gives one attribute as a string, several of one type as a list. */
function listOf(value: unknown): string[] {
  return [value].flat().filter((text) => typeof text === 'string');
}
