/**
 * Issues the certificates of the embedded server: X.509 v3 (RFC 5280), ECDSA P-256 with SHA-256.
 */
import ipaddr from 'ipaddr.js';
import {
  type KeyObject,
  createHash,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
} from 'node:crypto';
import { isIP } from 'node:net';
import * as der from './der.ts';

/** A certificate and its key, PEM. */
export interface CertificatePair {
  readonly certificate: string;
  readonly key: string;
}

/** A CA that signs certificates. */
export interface CertificateAuthority {
  /** PEM. */
  readonly certificate: string;
  readonly commonName: string;
  readonly key: KeyObject;
}

/** The validity of a certificate. */
export interface Validity {
  readonly now: Date;
  /** Default 365; 3650 for an authority. */
  readonly days?: number;
}

const oids = {
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
} as const;

/** keyUsage (RFC 5280, 4.2.1.3). */
const digitalSignature = der.bitString(Buffer.from([0x80]), 7);
const digitalSignatureAndCertSign = der.bitString(Buffer.from([0x84]), 2);

const dayMs = 86_400_000;
/** Certificates are valid from before now, since clocks of clients may be behind. */
const backdateMs = 5 * 60_000;

interface CertificateTemplate {
  readonly subject: Buffer;
  readonly issuer: Buffer;
  readonly publicKey: KeyObject;
  readonly signer: KeyObject;
  readonly signerKeyId: Buffer;
  readonly validity: Validity;
  readonly extensions: readonly Buffer[];
}

function attribute(type: string, value: string): Buffer {
  return der.setOfOne(der.sequence(der.oid(type), der.utf8String(value)));
}

function distinguishedName(
  commonName: string,
  organizations: readonly string[] = [],
  attributes: readonly Buffer[] = [],
): Buffer {
  const groups = organizations.map((name) => attribute(oids.organization, name));
  return der.sequence(...groups, ...attributes, attribute(oids.commonName, commonName));
}

function extension(type: string, value: Buffer, critical = false): Buffer {
  return der.sequence(der.oid(type), ...(critical ? [der.boolean(true)] : []), der.octetString(value));
}

function publicKeyBytes(key: KeyObject): Buffer {
  return key.export({ type: 'spki', format: 'der' });
}

/** The subject key identifier: any value that is unique to the key (RFC 5280, 4.2.1.2). */
function keyId(key: KeyObject): Buffer {
  return createHash('sha256').update(publicKeyBytes(key)).digest().subarray(0, 20);
}

/** A block of PEM. */
export function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').replaceAll(/.{64}(?=.)/g, '$&\n');
  return `-----BEGIN ${label}-----\n${lines}\n-----END ${label}-----\n`;
}

function signCertificate(request: CertificateTemplate): string {
  const algorithm = der.sequence(der.oid(oids.ecdsaWithSha256));
  const start = request.validity.now.getTime() - backdateMs;
  const end = request.validity.now.getTime() + (request.validity.days ?? 365) * dayMs;
  const version3 = der.explicit(0, der.integer(Buffer.from([2])));
  const toBeSigned = der.sequence(
    version3,
    der.integer(randomBytes(16)),
    algorithm,
    request.issuer,
    der.sequence(der.time(new Date(start)), der.time(new Date(end))),
    request.subject,
    publicKeyBytes(request.publicKey),
    der.explicit(
      3,
      der.sequence(
        ...request.extensions,
        extension(oids.subjectKeyIdentifier, der.octetString(keyId(request.publicKey))),
        extension(oids.authorityKeyIdentifier, der.sequence(der.implicit(0, request.signerKeyId))),
      ),
    ),
  );
  const signature = sign('sha256', toBeSigned, request.signer);
  return pem('CERTIFICATE', der.sequence(toBeSigned, algorithm, der.bitString(signature)));
}

function generateKey(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
}

/** A self-signed authority. */
export function createCertificateAuthority(commonName: string, validity: Validity): CertificateAuthority {
  const { publicKey, privateKey } = generateKey();
  const name = distinguishedName(commonName);
  const certificate = signCertificate({
    subject: name,
    issuer: name,
    publicKey,
    signer: privateKey,
    signerKeyId: keyId(publicKey),
    validity: { now: validity.now, days: validity.days ?? 3650 },
    extensions: [
      extension(oids.basicConstraints, der.sequence(der.boolean(true)), true),
      extension(oids.keyUsage, digitalSignatureAndCertSign, true),
    ],
  });
  return { certificate, commonName, key: privateKey };
}

function issue(
  ca: CertificateAuthority,
  subject: Buffer,
  usage: string,
  extensions: readonly Buffer[],
  validity: Validity,
): CertificatePair {
  const { publicKey, privateKey } = generateKey();
  const certificate = signCertificate({
    subject,
    issuer: distinguishedName(ca.commonName),
    publicKey,
    signer: ca.key,
    signerKeyId: keyId(createPublicKey(ca.key)),
    validity,
    extensions: [
      extension(oids.basicConstraints, der.sequence(), true),
      extension(oids.keyUsage, digitalSignature, true),
      extension(oids.extendedKeyUsage, der.sequence(der.oid(usage))),
      ...extensions,
    ],
  });
  return { certificate, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

/** A server certificate; `hosts` are DNS names and IP addresses, at least one. */
export function issueServerCertificate(
  ca: CertificateAuthority,
  commonName: string,
  hosts: readonly string[],
  validity: Validity,
): CertificatePair {
  const names = hosts.map((host) =>
    isIP(host) === 0 ? der.implicit(2, Buffer.from(host, 'latin1')) : der.implicit(7, ipBytes(host)),
  );
  const subjectAltName = extension(oids.subjectAltName, der.sequence(...names));
  return issue(ca, distinguishedName(commonName), oids.serverAuth, [subjectAltName], validity);
}

/** A client certificate: CN is the user, every O a group (apiserver `request/x509`). */
export function issueClientCertificate(
  ca: CertificateAuthority,
  user: string,
  groups: readonly string[],
  validity: Validity,
  /** DER of further attributes of the subject. */
  attributes: readonly Buffer[] = [],
): CertificatePair {
  return issue(ca, distinguishedName(user, groups, attributes), oids.clientAuth, [], validity);
}

/** The 4 or 16 bytes of an address that `net.isIP` accepts. */
function ipBytes(address: string): Buffer {
  return Buffer.from(ipaddr.parse(address).toByteArray());
}
