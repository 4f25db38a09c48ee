import { createPublicKey, type KeyObject, verify, X509Certificate } from 'node:crypto';
import type {
  CertificateFacts,
  CertificateReader,
  RequestFacts,
} from '../../registry/certificates/certificate-reader.ts';
import { errorMessage } from '../../objects/status.ts';
import {
  attributesOf,
  certificateParts,
  type DerValue,
  derValues,
  oidText,
  pemBlocks,
  sequenceTag,
  signatureDigests,
} from '../../tls/x509.ts';

/**
 * Validates PKCS#10 requests and PEM certificates (crypto/x509 ParseCertificateRequest,
 * `apis/certificates/helpers.go`).
 */

const organization = '2.5.4.10';

interface SigningRequest {
  /** Organizations of the subject: the groups that the certificate would give. */
  readonly organizations: readonly string[];
  readonly publicKey: KeyObject;
  /** @throws {Error} with Go's message where the request is not signed with its own key. */
  checkSignature(): void;
}

/** @throws {Error} for an invalid request, with Go's message where there is one. */
function readRequest(pem: Uint8Array): SigningRequest {
  const [block] = pemBlocks(Buffer.from(pem).toString('latin1'));
  if (block?.type !== 'CERTIFICATE REQUEST') throw new Error('PEM block type must be CERTIFICATE REQUEST');
  return parseRequest(block.bytes);
}

/** @throws {Error} */
function parseRequest(der: Buffer): SigningRequest {
  const [outer, trailing] = derValues(der);
  if (outer?.tag !== sequenceTag) throw new Error("asn1: structure error: tags don't match");
  if (trailing !== undefined) throw new Error('asn1: syntax error: trailing data');
  const [content, algorithm, signature] = derValues(outer.content);
  if (content === undefined || algorithm === undefined || signature === undefined) {
    throw new Error('asn1: syntax error: sequence truncated');
  }
  const [, subject, key] = derValues(content.content);
  if (subject === undefined || key === undefined) throw new Error('asn1: syntax error: sequence truncated');
  const publicKey = createPublicKey({ key: key.whole, format: 'der', type: 'spki' });
  return {
    organizations: attributesOf(subject.content, organization),
    publicKey,
    checkSignature: () => checkSignature(content, algorithm, signature, publicKey),
  };
}

function checkSignature(
  content: DerValue,
  algorithm: DerValue,
  signature: DerValue,
  publicKey: KeyObject,
): void {
  const [oid] = derValues(algorithm.content);
  const digest = oid === undefined ? undefined : signatureDigests.get(oidText(oid));
  if (digest === undefined) throw new Error('x509: cannot verify signature: algorithm unimplemented');
  // The first octet of a BIT STRING is the number of unused bits.
  if (!verify(digest, content.whole, publicKey, signature.content.subarray(1))) {
    throw new Error('x509: invalid signature: parent certificate cannot sign this kind of certificate');
  }
}

/** Go's names of the curves that its certificates may have. */
const curves = new Map([
  ['secp224r1', 'P-224'],
  ['prime256v1', 'P-256'],
  ['secp384r1', 'P-384'],
  ['secp521r1', 'P-521'],
]);

/** @throws {Error} for a curve that Go does not read. */
function keyOf({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): RequestFacts['key'] {
  switch (asymmetricKeyType) {
    case 'ed25519':
      return { type: 'ed25519' };
    case 'ec': {
      const curve = curves.get(asymmetricKeyDetails.namedCurve ?? '');
      if (curve === undefined) throw new Error('x509: unsupported elliptic curve');
      return { type: 'ec', curve };
    }
    case 'rsa':
      return { type: 'rsa', bits: asymmetricKeyDetails.modulusLength ?? 0 };
    default:
      return { type: 'other' };
  }
}

function encodedKey(key: KeyObject): string {
  return key.export({ format: 'der', type: 'spki' }).toString('base64');
}

function isThrown(check: () => void): boolean {
  try {
    check();
    return false;
  } catch {
    return true;
  }
}

/** @throws {Error} for what is no certificate. */
function certificateFacts(der: Buffer): CertificateFacts {
  const certificate = new X509Certificate(der);
  const { basicConstraints, names } = certificateParts(certificate.raw);
  return {
    isCA: basicConstraints?.isCA === true,
    dnsNames: names?.dns ?? [],
    emailAddresses: names?.email ?? [],
    // Read lazily: the rules of a bundle, which may have thousands of certificates, need neither keys nor times.
    get notBeforeMs() {
      return certificate.validFromDate.getTime();
    },
    get notAfterMs() {
      return certificate.validToDate.getTime();
    },
    get publicKey() {
      return encodedKey(certificate.publicKey);
    },
  };
}

/** The organizations in the subject of a request; none for an invalid request. */
export function requestedOrganizations(pem: Uint8Array): readonly string[] {
  try {
    const request = readRequest(pem);
    request.checkSignature();
    return request.organizations;
  } catch {
    // The validation of the kind refuses it.
    return [];
  }
}

/** Reads the requests and certificates in objects of certificates.k8s.io. */
export const certificateReader: CertificateReader = {
  requestFault(pem) {
    try {
      readRequest(pem).checkSignature();
      return undefined;
    } catch (error) {
      return errorMessage(error);
    }
  },
  certificateFault(pem) {
    let blocks = 0;
    for (const block of pemBlocks(Buffer.from(pem).toString('latin1'))) {
      if (block.type !== 'CERTIFICATE') {
        return `only CERTIFICATE PEM blocks are allowed, found ${JSON.stringify(block.type)}`;
      }
      if (block.hasHeaders) return 'no PEM block headers are permitted';
      try {
        new X509Certificate(block.bytes);
      } catch {
        return 'x509: malformed certificate';
      }
      blocks++;
    }
    return blocks === 0 ? 'must contain at least one CERTIFICATE PEM block' : undefined;
  },
  blocks: pemBlocks,
  certificate({ bytes }) {
    try {
      return certificateFacts(bytes);
    } catch {
      return undefined;
    }
  },
  request(der) {
    try {
      const request = parseRequest(Buffer.from(der));
      const { publicKey } = request;
      return {
        publicKey: encodedKey(publicKey),
        key: keyOf(publicKey),
        isSigned: !isThrown(() => request.checkSignature()),
      };
    } catch {
      return undefined;
    }
  },
};
