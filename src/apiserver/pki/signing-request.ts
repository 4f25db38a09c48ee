import { createPublicKey, verify, X509Certificate } from 'node:crypto';
import type { CertificateReader } from '../../registry/certificates/certificatesigningrequest.ts';
import { errorMessage } from '../../objects/status.ts';

/**
 * - DER (X.690).
 * - Validates PKCS#10 requests and PEM certificates (crypto/x509 ParseCertificateRequest,
 *   `apis/certificates/helpers.go`).
 */

/** A DER value (X.690). */
export interface DerValue {
  readonly tag: number;
  readonly content: Buffer;
  /** Tag and length included. */
  readonly whole: Buffer;
}

const truncated = 'asn1: syntax error: data truncated';

/** The value that starts at `at`. @throws {Error} with Go's message when it is truncated. */
function derValue(bytes: Buffer, at: number): DerValue {
  const tag = bytes[at];
  const first = bytes[at + 1];
  if (tag === undefined || first === undefined) throw new Error(truncated);
  let length = first;
  let start = at + 2;
  if (first >= 0x80) {
    const octets = first & 0x7f;
    if (octets === 0 || octets > 4) throw new Error('asn1: structure error: length too large');
    length = 0;
    for (const octet of bytes.subarray(start, start + octets)) length = length * 256 + octet;
    start += octets;
  }
  const end = start + length;
  if (end > bytes.length) throw new Error(truncated);
  return { tag, content: bytes.subarray(start, end), whole: bytes.subarray(at, end) };
}

/** The values in the content of a constructed value. @throws {Error} with Go's message when one is truncated. */
function derValues(bytes: Buffer): DerValue[] {
  const values: DerValue[] = [];
  for (let at = 0; at < bytes.length;) {
    const value = derValue(bytes, at);
    values.push(value);
    at += value.whole.length;
  }
  return values;
}

/** The dotted form of an object identifier. */
function oidText({ content }: DerValue): string {
  const arcs: number[] = [];
  let arc = 0;
  for (const octet of content) {
    arc = arc * 128 + (octet & 0x7f);
    if (octet < 0x80) {
      arcs.push(arc);
      arc = 0;
    }
  }
  const [first = 0, ...rest] = arcs;
  const top = Math.min(2, Math.floor(first / 40));
  return [top, first - top * 40, ...rest].join('.');
}

interface PemBlock {
  readonly type: string;
  readonly hasHeaders: boolean;
  readonly bytes: Buffer;
  /** The text after the block. */
  readonly rest: string;
}

const sequenceTag = 0x30;
const bmpStringTag = 0x1e;
const organization = '2.5.4.10';

/** Digests of signature algorithms, by OID; null for Ed25519, which has its own. */
const digests: ReadonlyMap<string, string | null> = new Map([
  ['1.2.840.113549.1.1.11', 'sha256'],
  ['1.2.840.113549.1.1.12', 'sha384'],
  ['1.2.840.113549.1.1.13', 'sha512'],
  ['1.2.840.10045.4.3.2', 'sha256'],
  ['1.2.840.10045.4.3.3', 'sha384'],
  ['1.2.840.10045.4.3.4', 'sha512'],
  ['1.3.101.112', null],
]);

const beginning = '-----BEGIN ';
const dashes = '-----';

/** The first PEM block of a text; undefined when there is none (`encoding/pem` Decode). */
function pemBlock(text: string): PemBlock | undefined {
  const start = text.indexOf(beginning);
  const lineEnd = text.indexOf('\n', start);
  if (start === -1 || lineEnd === -1) return undefined;
  const line = text.slice(start + beginning.length, lineEnd).trimEnd();
  if (!line.endsWith(dashes)) return undefined;
  const type = line.slice(0, -dashes.length);
  const ending = `-----END ${type}${dashes}`;
  const end = text.indexOf(ending, lineEnd);
  if (end === -1) return undefined;
  const body = text.slice(lineEnd + 1, end);
  const headers = /^(?:[^\r\n:]+:[^\r\n]*\r?\n)+\r?\n?/.exec(body)?.[0] ?? '';
  return {
    type,
    hasHeaders: headers !== '',
    bytes: Buffer.from(body.slice(headers.length), 'base64'),
    rest: text.slice(end + ending.length),
  };
}

interface SigningRequest {
  /** Organizations of the subject: the groups that the certificate would give. */
  readonly organizations: readonly string[];
}

/** @throws {Error} for an invalid request, with Go's message where there is one. */
function readRequest(pem: Uint8Array): SigningRequest {
  const block = pemBlock(Buffer.from(pem).toString('latin1'));
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
  return { organizations: organizationsOf(subject) };
}

function checkSignature(content: DerValue, algorithm: DerValue, signature: DerValue, key: DerValue): void {
  const [oid] = derValues(algorithm.content);
  const digest = oid === undefined ? undefined : digests.get(oidText(oid));
  if (digest === undefined) throw new Error('x509: cannot verify signature: algorithm unimplemented');
  const publicKey = createPublicKey({ key: key.whole, format: 'der', type: 'spki' });
  // The first octet of a BIT STRING is the number of unused bits.
  if (!verify(digest, content.whole, publicKey, signature.content.subarray(1))) {
    throw new Error('x509: invalid signature: parent certificate cannot sign this kind of certificate');
  }
}

function organizationsOf(subject: DerValue): string[] {
  return derValues(subject.content)
    .flatMap((set) => derValues(set.content))
    .flatMap((attribute) => {
      const [type, value] = derValues(attribute.content);
      const isOrganization = type !== undefined && oidText(type) === organization;
      return isOrganization && value !== undefined ? [stringText(value)] : [];
    });
}

/** A BMPString is UTF-16, big-endian, with or without a final NUL; other strings are read as UTF-8. @throws {Error} */
function stringText({ tag, content }: DerValue): string {
  if (tag !== bmpStringTag) return content.toString('utf8');
  if (content.length % 2 !== 0) throw new Error('invalid BMPString');
  return Buffer.from(content).swap16().toString('utf16le').replace(/\0$/, '');
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
    let rest = Buffer.from(pem).toString('latin1');
    for (let block = pemBlock(rest); block !== undefined; block = pemBlock(rest)) {
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
      rest = block.rest;
    }
    return blocks === 0 ? 'must contain at least one CERTIFICATE PEM block' : undefined;
  },
};
