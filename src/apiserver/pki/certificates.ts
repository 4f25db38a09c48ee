import type { KeyObject } from 'node:crypto';

/** A certificate and its key, PEM. */
export interface CertificatePair {
  readonly certificate: string;
  readonly key: string;
}

export interface CertificateAuthority {
  /** PEM. */
  readonly certificate: string;
  readonly commonName: string;
  readonly key: KeyObject;
}

export interface Validity {
  readonly now: Date;
  /** Default 365. */
  readonly days?: number;
}

/** A self-signed authority, ECDSA P-256. */
export function createCertificateAuthority(_commonName: string, _validity: Validity): CertificateAuthority {
  throw new Error('not built yet');
}

/** A server certificate; `hosts` are DNS names and IP addresses. */
export function issueServerCertificate(
  _ca: CertificateAuthority,
  _commonName: string,
  _hosts: readonly string[],
  _validity: Validity,
): CertificatePair {
  throw new Error('not built yet');
}

/** A client certificate: the user is its CN, its groups are its O. */
export function issueClientCertificate(
  _ca: CertificateAuthority,
  _user: string,
  _groups: readonly string[],
  _validity: Validity,
): CertificatePair {
  throw new Error('not built yet');
}
