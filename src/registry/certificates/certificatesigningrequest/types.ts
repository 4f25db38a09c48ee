import type { KubeObject } from '../../../objects/meta.ts';

/** Certificates.k8s.io/v1 CertificateSigningRequest. */
export interface CertificateSigningRequest extends KubeObject {
  spec: CsrSpec;
  status: CsrStatus;
}

interface CsrSpec {
  /** A PKCS#10 request as PEM, in base64. */
  request?: string;
  signerName?: string;
  expirationSeconds?: number;
  usages?: string[];
  username?: string;
  uid?: string;
  groups?: string[];
  extra?: Record<string, string[]>;
}

interface CsrStatus {
  conditions?: CsrCondition[];
  /** Certificates as PEM, in base64. */
  certificate?: string;
}

export interface CsrCondition {
  type?: string;
  status?: string;
  reason?: string;
  message?: string;
  lastUpdateTime?: string;
  lastTransitionTime?: string;
}

/** Looks into requests and certificates, which takes cryptography that a pure room has not. */
export interface CertificateReader {
  /** Why the PEM text is no sound PKCS#10 request with a signature of its own key; undefined for one that is. */
  requestFault(pem: Uint8Array): string | undefined;
  /** Why the PEM text is no list of certificates; undefined for one that is. */
  certificateFault(pem: Uint8Array): string | undefined;
}
