import { type CertificateAuthority, issueClientCertificate } from '../../tls/certificates.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

/** The identity of this server to extension API servers, which trust the user headers of its requests. */
export interface FrontProxy {
  /** PEM; published in `kube-system/extension-apiserver-authentication`. */
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

/** The common name of the certificate, as in kubeadm. */
const commonName = 'front-proxy-client';

/** Headers with the user (apiserver `authentication/request/headerrequest`). */
const userHeader = 'X-Remote-User';
const uidHeader = 'X-Remote-Uid';
const groupHeader = 'X-Remote-Group';
const extraPrefix = 'X-Remote-Extra-';

/** The keys of the ConfigMap that extension API servers read (`pkg/controlplane/controller/clusterauthenticationtrust`). */
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
 * @param authority not the one of the cluster, whose client certificates come from CertificateSigningRequests too, and
 *   could then be used as the front proxy's.
 */
export function createFrontProxy(authority: CertificateAuthority, now: Date): FrontProxy {
  return { ca: authority.certificate, ...issueClientCertificate(authority, commonName, [], { now }) };
}

/** The headers that name a user (client-go `transport.SetAuthProxyHeaders`). */
export function userHeaders(user: UserInfo): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = { [userHeader]: headerValue(user.name) };
  if (user.uid !== '') headers[uidHeader] = headerValue(user.uid);
  if (user.groups.length > 0) headers[groupHeader] = user.groups.map(headerValue);
  for (const [key, values] of Object.entries(user.extra)) {
    headers[`${extraPrefix}${escapeHeaderKey(key)}`] = values.map(headerValue);
  }
  return headers;
}

/** Go sends header values as UTF-8; Node sends one byte for each character, and refuses those above U+00FF. */
function headerValue(text: string): string {
  return Buffer.from(text).toString('latin1');
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
