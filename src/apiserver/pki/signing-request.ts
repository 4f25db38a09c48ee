import { createPublicKey, verify, X509Certificate } from 'node:crypto';
import type { CertificateReader } from '../../registry/certificates/certificatesigningrequest.ts';
import { errorMessage } from '../../objects/status.ts';
import {
  attributesOf,
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
}

/** @throws {Error} for an invalid request, with Go's message where there is one. */
function readRequest(pem: Uint8Array): SigningRequest {
  const [block] = pemBlocks(Buffer.from(pem).toString('latin1'));
  if (block?.type !== 'CERTIFICATE REQUEST') throw new Error('PEM block type must be CERTIFICATE REQUEST');
  const [outer, trailing] = derValues(block.bytes);
  if (outer?.tag !== sequenceTag) throw new Error("asn1: structure error: tags don't match");
  if (trailing !== undefined) throw new Error('asn1: syntax error: trailing data');
  const [content, algorithm, signature] = derValues(outer.content);
  if (content === undefined || algorithm === undefined || signature === undefined) {
    throw new Error('asn1: syntax error: sequence truncated');
  }
  const [, subject, key] = derValues(content.content);
  if (subject === undefined || key === undefined) throw new Error('asn1: syntax error: sequence truncated');
  checkSignature(content, algorithm, signature, key);
  return { organizations: attributesOf(subject.content, organization) };
}

function checkSignature(content: DerValue, algorithm: DerValue, signature: DerValue, key: DerValue): void {
  const [oid] = derValues(algorithm.content);
  const digest = oid === undefined ? undefined : signatureDigests.get(oidText(oid));
  if (digest === undefined) throw new Error('x509: cannot verify signature: algorithm unimplemented');
  const publicKey = createPublicKey({ key: key.whole, format: 'der', type: 'spki' });
  // The first octet of a BIT STRING is the number of unused bits.
  if (!verify(digest, content.whole, publicKey, signature.content.subarray(1))) {
    throw new Error('x509: invalid signature: parent certificate cannot sign this kind of certificate');
  }
}

/** The organizations in the subject of a request; none for an invalid request. */
export function requestedOrganizations(pem: Uint8Array): readonly string[] {
  try {
    return readRequest(pem).organizations;
  } catch {
    // The validation of the kind refuses it.
    return [];
  }
}

/** Validates the requests and certificates of CertificateSigningRequests. */
export const certificateReader: CertificateReader = {
  requestFault(pem) {
    try {
      readRequest(pem);
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
};
