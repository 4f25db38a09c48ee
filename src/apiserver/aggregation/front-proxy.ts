import { type CertificateAuthority, issueClientCertificate } from '../pki/certificates.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

/** The identity of this server to extension API servers, which trust the user in its headers. */
export interface FrontProxy {
  /** PEM; published in `kube-system/extension-apiserver-authentication`. */
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

/** The name in the certificate, as kubeadm has it. */
const commonName = 'front-proxy-client';

/** Headers that carry the user (apiserver `authentication/request/headerrequest`). */
const userHeader = 'X-Remote-User';
const uidHeader = 'X-Remote-Uid';
const groupHeader = 'X-Remote-Group';
const extraPrefix = 'X-Remote-Extra-';

/** The members of the ConfigMap that extension API servers read (`pkg/controlplane` `clusterauthenticationtrust`). */
export function requestHeaderMembers({ ca }: FrontProxy): Record<string, string> {
  return {
    'requestheader-allowed-names': JSON.stringify([commonName]),
    'requestheader-client-ca-file': ca,
    'requestheader-extra-headers-prefix': JSON.stringify([extraPrefix]),
    'requestheader-group-headers': JSON.stringify([groupHeader]),
    'requestheader-uid-headers': JSON.stringify([uidHeader]),
    'requestheader-username-headers': JSON.stringify([userHeader]),
  };
}

/**
 * The front proxy of a run.
 *
 * @param authority not that of the cluster: every client certificate that a CertificateSigningRequest gives could be a
 *   proxy's then.
 */
export function createFrontProxy(authority: CertificateAuthority, now: Date): FrontProxy {
  return { ca: authority.certificate, ...issueClientCertificate(authority, commonName, [], { now }) };
}

/** The headers that name a user (client-go `transport.SetAuthProxyHeaders`). */
export function userHeaders(user: UserInfo): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = { [userHeader]: user.name };
  if (user.uid !== '') headers[uidHeader] = user.uid;
  if (user.groups.length > 0) headers[groupHeader] = [...user.groups];
  for (const [key, values] of Object.entries(user.extra)) {
    headers[`${extraPrefix}${escapeHeaderKey(key)}`] = [...values];
  }
  return headers;
}

/** Escapes characters that a header name may not have, and the percent sign (`transport.headerKeyEscape`). */
function escapeHeaderKey(key: string): string {
  return Array.from(Buffer.from(key), (byte) => {
    const character = String.fromCharCode(byte);
    return /[A-Za-z0-9!#$&'*+\-.^_`|~]/.test(character)
      ? character
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }).join('');
}
