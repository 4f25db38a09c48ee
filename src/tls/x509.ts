import { X509Certificate } from 'node:crypto';

/**
 * - DER (X.690) and PEM, as Go reads them (`encoding/asn1`, `encoding/pem`).
 * - What Node.js does not tell of a certificate (RFC 5280).
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
export function derValues(bytes: Buffer): DerValue[] {
  const values: DerValue[] = [];
  for (let at = 0; at < bytes.length;) {
    const value = derValue(bytes, at);
    values.push(value);
    at += value.whole.length;
  }
  return values;
}

/** The dotted form of an object identifier. */
export function oidText({ content }: DerValue): string {
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

export const sequenceTag = 0x30;
const bmpStringTag = 0x1e;
const booleanTag = 0x01;
const integerTag = 0x02;
/** `[0]` and `[3]`, explicit: the version and the extensions of a certificate. */
const versionTag = 0xa0;
const extensionsTag = 0xa3;
/** `[0]` and `[1]` of NameConstraints. */
const permittedTag = 0xa0;
const excludedTag = 0xa1;
/** Implicit tags of a GeneralName. */
const nameTags = { email: 0x81, dns: 0x82, uri: 0x86, ip: 0x87 } as const;

/** Digests of the signature algorithms that Go takes from others, by OID; null for Ed25519, which has its own. */
export const signatureDigests: ReadonlyMap<string, string | null> = new Map([
  ['1.2.840.113549.1.1.11', 'sha256'],
  ['1.2.840.113549.1.1.12', 'sha384'],
  ['1.2.840.113549.1.1.13', 'sha512'],
  ['1.2.840.10045.4.3.2', 'sha256'],
  ['1.2.840.10045.4.3.3', 'sha384'],
  ['1.2.840.10045.4.3.4', 'sha512'],
  ['1.3.101.112', null],
]);

/** A PEM block. */
export interface PemBlock {
  readonly type: string;
  readonly hasHeaders: boolean;
  readonly bytes: Buffer;
}

const beginning = '-----BEGIN ';
const dashes = '-----';

/** The PEM blocks of a text; what is none is passed over (`encoding/pem` Decode). */
export function* pemBlocks(text: string): Generator<PemBlock> {
  for (let at = text.indexOf(beginning); at !== -1; at = text.indexOf(beginning, at + 1)) {
    const lineEnd = text.indexOf('\n', at);
    if (lineEnd === -1) return;
    const line = text.slice(at + beginning.length, lineEnd).trimEnd();
    if (!line.endsWith(dashes)) continue;
    const type = line.slice(0, -dashes.length);
    const ending = `-----END ${type}${dashes}`;
    const end = text.indexOf(ending, lineEnd);
    if (end === -1) continue;
    const body = text.slice(lineEnd + 1, end);
    const headers = /^(?:[^\r\n:]+:[^\r\n]*\r?\n)+\r?\n?/.exec(body)?.[0] ?? '';
    yield {
      type,
      hasHeaders: headers !== '',
      bytes: Buffer.from(body.slice(headers.length), 'base64'),
    };
    at = end + ending.length - 1;
  }
}

/** What a PEM text gives as authorities. */
export interface CertificateBundle {
  readonly certificates: readonly X509Certificate[];
  /** Why there is none (client-go `transport.go`, `createErrorParsingCAData`); undefined where there is one. */
  readonly fault: string | undefined;
}

/** The certificates of a bundle; what cannot be read is passed over (`x509.CertPool.AppendCertsFromPEM`). */
export function readBundle(pem: string): CertificateBundle {
  const certificates: X509Certificate[] = [];
  let fault = 'unable to parse bytes as PEM block';
  for (const { type, hasHeaders, bytes } of pemBlocks(pem)) {
    if (type !== 'CERTIFICATE' || hasHeaders) {
      if (!fault.startsWith('failed')) fault = 'no valid certificate authority data seen';
      continue;
    }
    try {
      const certificate = new X509Certificate(bytes);
      certificateParts(certificate.raw);
      certificates.push(certificate);
    } catch {
      fault = 'failed to parse certificate: x509: malformed certificate';
    }
  }
  if (certificates.length > 0) return { certificates, fault: undefined };
  return { certificates, fault: `unable to load root certificates: ${fault}` };
}

/** Names of the kinds that Go understands (GeneralName, RFC 5280, 4.2.1.6). */
export interface GeneralNames {
  readonly dns: readonly string[];
  /** Of 4 or 16 octets; as a constraint an address and its mask. */
  readonly ip: readonly Buffer[];
  readonly email: readonly string[];
  readonly uri: readonly string[];
}

/** The names that certificates below may and must not have (RFC 5280, 4.2.1.10). */
export interface NameConstraints {
  readonly permitted: GeneralNames;
  readonly excluded: GeneralNames;
}

/** The parts of a certificate that Node.js does not tell, or not in the form of the wire. */
export interface CertificateParts {
  readonly version: number;
  /** Base64 of the DER of the names: names are compared byte by byte. */
  readonly issuer: string;
  readonly subject: string;
  /** Undefined where an algorithm is one that Go does not take. */
  readonly digest: string | null | undefined;
  /** The last common name of the subject. */
  readonly commonName: string;
  /** Undefined without the extension. */
  readonly names: GeneralNames | undefined;
  /** Undefined without the extension. */
  readonly basicConstraints: { readonly isCA: boolean; readonly maxPathLength: number } | undefined;
  /** False where a keyUsage does not say keyCertSign. */
  readonly maySign: boolean;
  /** Dotted; undefined without the extension. */
  readonly extendedKeyUsage: readonly string[] | undefined;
  /** Object identifiers of other extensions that must be understood. */
  readonly otherCritical: readonly string[];
  /** Undefined without the extension. */
  readonly nameConstraints: NameConstraints | undefined;
}

const commonNameOid = '2.5.4.3';
/** They say nothing of trust: key identifiers, CRL distribution points, policies. */
const understood: ReadonlySet<string> = new Set(['2.5.29.14', '2.5.29.31', '2.5.29.32', '2.5.29.35']);

/** @throws {Error} for what is no certificate. */
export function certificateParts(der: Buffer): CertificateParts {
  const [certificate] = derValues(der);
  const [signed, algorithm] = derValues(content(certificate));
  const fields = derValues(content(signed));
  const explicitVersion = fields[0]?.tag === versionTag ? fields.shift() : undefined;
  const version =
    explicitVersion === undefined ? 1 : (derValues(explicitVersion.content)[0]?.content[0] ?? 0) + 1;
  const [, , issuer, , subject] = fields;
  const wrapped = fields.find(({ tag }) => tag === extensionsTag);
  const list = wrapped === undefined ? [] : derValues(content(derValues(wrapped.content)[0]));
  const extensions = new Map<string, { readonly critical: boolean; readonly value: Buffer }>();
  for (const extension of list) {
    const [oid, second, third] = derValues(extension.content);
    const critical = second?.tag === booleanTag && second.content[0] !== 0;
    if (oid !== undefined) extensions.set(oidText(oid), { critical, value: content(third ?? second) });
  }
  const unhandled: string[] = [];
  const take = (oid: string, isUnderstood?: (value: DerValue) => boolean): DerValue | undefined => {
    const found = extensions.get(oid);
    extensions.delete(oid);
    if (found === undefined) return undefined;
    const [value = empty] = derValues(found.value);
    if (found.critical && isUnderstood?.(value) === false) unhandled.push(oid);
    return value;
  };
  const alternative = take('2.5.29.17', ({ content: list }) => derValues(list).some(isKnownName));
  const constraints = take('2.5.29.19');
  const keyUsage = take('2.5.29.15');
  const extended = take('2.5.29.37');
  const constrained = take('2.5.29.30', (value) =>
    derValues(value.content).every((trees) => basesOf(trees).every(isKnownName)),
  );
  return {
    version,
    issuer: content(issuer, 'whole').toString('base64'),
    subject: content(subject, 'whole').toString('base64'),
    digest: signatureDigests.get(oidText(derValues(content(algorithm))[0] ?? empty)),
    commonName: attributesOf(content(subject), commonNameOid).at(-1) ?? '',
    names: alternative && generalNames(derValues(alternative.content), isAddress),
    basicConstraints: constraints && basicConstraints(constraints),
    // keyCertSign is bit 5 (RFC 5280, 4.2.1.3); the first octet counts unused bits.
    maySign: keyUsage === undefined || ((keyUsage.content[1] ?? 0) & 0x04) !== 0,
    extendedKeyUsage: extended && derValues(extended.content).map(oidText),
    otherCritical: [
      ...unhandled,
      ...[...extensions].flatMap(([oid, { critical }]) => (critical && !understood.has(oid) ? [oid] : [])),
    ],
    nameConstraints: constrained && nameConstraints(constrained),
  };
}

const empty: DerValue = { tag: 0, content: Buffer.alloc(0), whole: Buffer.alloc(0) };

function content(value: DerValue | undefined, which: 'content' | 'whole' = 'content'): Buffer {
  if (value === undefined) throw new Error('asn1: syntax error: sequence truncated');
  return value[which];
}

/** @param isValid whether the octets of an address are such ones. @throws {Error} for an address that is none. */
function generalNames(values: readonly DerValue[], isValid: (address: Buffer) => boolean): GeneralNames {
  const of = (kind: keyof GeneralNames): Buffer[] =>
    values.flatMap(({ tag, content: name }) => (tag === nameTags[kind] ? [name] : []));
  const text = (kind: keyof GeneralNames): string[] => of(kind).map((name) => name.toString('latin1'));
  const ip = of('ip');
  if (!ip.every(isValid)) throw new Error('malformed IP address');
  return { dns: text('dns'), email: text('email'), uri: text('uri'), ip };
}

function isKnownName({ tag }: DerValue): boolean {
  return Object.values<number>(nameTags).includes(tag);
}

function isAddress({ length }: Buffer): boolean {
  return length === 4 || length === 16;
}

/** An address and a mask, whose ones come first. */
function isRange(bytes: Buffer): boolean {
  const mask = [...bytes.subarray(bytes.length / 2)].map((octet) => octet.toString(2).padStart(8, '0'));
  return (bytes.length === 8 || bytes.length === 32) && /^1*0*$/.test(mask.join(''));
}

/** The names of GeneralSubtrees; what else a tree says is not for TLS. */
function basesOf({ content: trees }: DerValue): DerValue[] {
  return derValues(trees).map((tree) => derValues(tree.content)[0] ?? empty);
}

/** @throws {Error} for none. */
function nameConstraints({ content: parts }: DerValue): NameConstraints {
  const all = derValues(parts);
  const of = (wanted: number): DerValue[] => all.filter(({ tag }) => tag === wanted).flatMap(basesOf);
  const [permitted, excluded] = [of(permittedTag), of(excludedTag)];
  if (permitted.length + excluded.length === 0) throw new Error('empty name constraints extension');
  return { permitted: generalNames(permitted, isRange), excluded: generalNames(excluded, isRange) };
}

function basicConstraints({ content: parts }: DerValue): { isCA: boolean; maxPathLength: number } {
  const values = derValues(parts);
  const flag = values.find(({ tag }) => tag === booleanTag);
  const length = values.find(({ tag }) => tag === integerTag);
  return {
    isCA: flag !== undefined && flag.content[0] !== 0,
    maxPathLength:
      length === undefined ? Number.POSITIVE_INFINITY : Number(`0x${length.content.toString('hex')}`),
  };
}

/** The values of an attribute of a distinguished name. @throws {Error} */
export function attributesOf(name: Buffer, oid: string): string[] {
  return derValues(name)
    .flatMap((set) => derValues(set.content))
    .flatMap((attribute) => {
      const [type, value] = derValues(attribute.content);
      return type !== undefined && oidText(type) === oid && value !== undefined ? [stringText(value)] : [];
    });
}

/** A BMPString is UTF-16, big-endian, with or without a final NUL; other strings are read as UTF-8. @throws {Error} */
function stringText({ tag, content: text }: DerValue): string {
  if (tag !== bmpStringTag) return text.toString('utf8');
  if (text.length % 2 !== 0) throw new Error('invalid BMPString');
  return Buffer.from(text).swap16().toString('utf16le').replace(/\0$/, '');
}
