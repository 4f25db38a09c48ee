import { createHash, type X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { type PeerCertificate, TLSSocket } from 'node:tls';
import { credentialId, withAuthenticatedGroup } from './users.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

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
export function clientCertificateUser(socket: Socket, now: number): UserInfo | 'none' | 'refused' {
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
