/** Reads requests and certificates for the rules of kinds, passed in because it needs cryptography. */
export interface CertificateReader {
  /** Why the PEM text is not a valid PKCS#10 request signed with its own key; undefined when it is. */
  requestFault(pem: Uint8Array): string | undefined;
  /** Why the PEM text is not a list of certificates; undefined when it is. */
  certificateFault(pem: Uint8Array): string | undefined;
  /** The PEM blocks of a text, read one by one as they are asked for. */
  blocks(pem: string): Iterable<CertificateBlock>;
  /** The certificate of a block; undefined where it is not X.509. */
  certificate(block: CertificateBlock): CertificateFacts | undefined;
  /** A PKCS#10 request in DER; undefined where it is none. */
  request(der: Uint8Array): RequestFacts | undefined;
}

/** A block of PEM. */
export interface CertificateBlock {
  readonly type: string;
  readonly hasHeaders: boolean;
  readonly bytes: Buffer;
}

/** What rules ask of a certificate. */
export interface CertificateFacts {
  readonly isCA: boolean;
  readonly dnsNames: readonly string[];
  readonly emailAddresses: readonly string[];
  /** Milliseconds since 1970. */
  readonly notBeforeMs: number;
  /** Milliseconds since 1970. */
  readonly notAfterMs: number;
  /** The SubjectPublicKeyInfo, base64. */
  readonly publicKey: string;
}

/** What rules ask of a request. */
export interface RequestFacts {
  /** The SubjectPublicKeyInfo, base64. */
  readonly publicKey: string;
  readonly key:
    | { readonly type: 'ed25519' }
    | { readonly type: 'ec'; readonly curve: string }
    | { readonly type: 'rsa'; readonly bits: number }
    | { readonly type: 'other' };
  /** Whether it is signed with its own key. */
  readonly isSigned: boolean;
}
