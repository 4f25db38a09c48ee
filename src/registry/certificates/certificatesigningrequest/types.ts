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

/** Checks of requests and certificates, passed in because they need cryptography. */
export interface CertificateReader {
  /** Why the PEM text is not a valid PKCS#10 request signed with its own key; undefined when it is. */
  requestFault(pem: Uint8Array): string | undefined;
  /** Why the PEM text is not a list of certificates; undefined when it is. */
  certificateFault(pem: Uint8Array): string | undefined;
}
