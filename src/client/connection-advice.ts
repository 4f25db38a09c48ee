import { StatusError } from '../objects/status.ts';
import { ConnectionError } from './transport.ts';

const silent =
  'the API server does not answer: check that it runs, and the network, firewalls and NetworkPolicies in between';
const unknownName = 'the name of the API server cannot be resolved: check the name, and DNS';
const untrusted =
  'the certificate of the API server is not trusted: give its CA, in the kubeconfig or with --certificate-authority';
const noTls = 'what listens there does not speak TLS: check the scheme and the port';

/** By the codes of {@link ConnectionError}. */
const advices: ReadonlyMap<string, string> = new Map([
  [
    'ECONNREFUSED',
    'nothing listens at the address of the API server: check that it runs, and the address and port',
  ],
  ['TIMEOUT', silent],
  ['ETIMEDOUT', silent],
  ['EHOSTUNREACH', silent],
  ['ENETUNREACH', silent],
  ['ENOTFOUND', unknownName],
  ['EAI_AGAIN', unknownName],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', untrusted],
  ['SELF_SIGNED_CERT_IN_CHAIN', untrusted],
  ['UNABLE_TO_GET_ISSUER_CERT', untrusted],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', untrusted],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', untrusted],
  ['CERT_SIGNATURE_FAILURE', untrusted],
  ['CERT_HAS_EXPIRED', 'the certificate of the API server has expired: renew it'],
  ['CERT_NOT_YET_VALID', 'the certificate of the API server is not valid yet: check the clocks'],
  [
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'the certificate of the API server is for other names: use one of them, or set tls-server-name',
  ],
  ['EPROTO', noTls],
  ['ERR_SSL_WRONG_VERSION_NUMBER', noTls],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', noTls],
  [
    'CREDENTIALS',
    'no credentials can be had: check the token file, exec plugin or auth provider of the kubeconfig',
  ],
]);
const broken = 'the connection to the API server broke off: check it, and what is in between';
const unknown = 'the API server does not accept the credentials: renew the token or certificate';

/**
 * Advice for operators when the API server is unreachable or refuses the credentials (401); undefined for other
 * errors, and for requests that were aborted.
 */
export function connectionAdvice(error: unknown): string | undefined {
  if (error instanceof StatusError) return error.code === 401 ? unknown : undefined;
  if (!(error instanceof ConnectionError) || error.code === 'ABORTED' || error.code === 'CLOSED') {
    return undefined;
  }
  return advices.get(error.code) ?? broken;
}
