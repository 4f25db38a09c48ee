import { isRecord } from '../../../objects/json.ts';
import { describeFailure } from '../../proxy/backend.ts';

/** Codes of OpenSSL for a chain that ends nowhere. */
const unknownAuthority = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_SIGNATURE_FAILURE',
]);

/** Why an HTTPS request had no answer, in the words of Go's net and TLS packages. */
export function transportFailure(error: unknown, url: URL): string {
  const cause = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  const code = textOf(cause, 'code');
  const tls = (reason: string) => `tls: failed to verify certificate: x509: ${reason}`;
  if (unknownAuthority.has(code)) return tls('certificate signed by unknown authority');
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return tls('certificate has expired or is not yet valid');
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const names = [
      ...textOf(isRecord(cause) ? cause['cert'] : undefined, 'subjectaltname').matchAll(
        /(?:DNS|IP Address):([^,]+)/g,
      ),
    ];
    const valid = names.map(([, name = '']) => name).join(', ');
    return tls(`certificate is valid for ${valid === '' ? 'no names' : valid}, not ${textOf(cause, 'host')}`);
  }
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `dial tcp: lookup ${url.hostname}: no such host`;
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'EPROTO') {
    return 'http: server gave HTTP response to HTTPS client';
  }
  if (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET') return 'EOF';
  const host = textOf(cause, 'address');
  const port = isRecord(cause) && typeof cause['port'] === 'number' ? cause['port'] : Number(url.port) || 443;
  return describeFailure(cause, { host: host === '' ? url.hostname : host, port });
}

function textOf(value: unknown, member: string): string {
  const found = isRecord(value) ? value[member] : undefined;
  return typeof found === 'string' ? found : '';
}
