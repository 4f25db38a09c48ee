const block = /-----BEGIN ([^-\n]+)-----([^-]*)-----END \1-----/g;

/**
 * Why a `caBundle` has no certificate to trust (client-go `transport.TLSConfigFor`, which needs one readable
 * certificate); undefined for a valid or empty one. Only the outer structure of a certificate is checked.
 *
 * @param caBundle base64 of PEM.
 */
export function caBundleFault(caBundle: string): string | undefined {
  const pem = Buffer.from(caBundle, 'base64').toString('latin1');
  if (pem === '') return undefined;
  const blocks = [...pem.matchAll(block)].map(([, type = '', content = '']) => ({ type, content }));
  const certificates = blocks.filter(({ type, content }) => type === 'CERTIFICATE' && !content.includes(':'));
  if (certificates.some(({ content }) => isSequence(Buffer.from(content, 'base64')))) return undefined;
  const why =
    certificates.length > 0
      ? 'failed to parse certificate: x509: malformed certificate'
      : blocks.length > 0
        ? 'no valid certificate authority data seen'
        : 'unable to parse bytes as PEM block';
  return `unable to load root certificates: ${why}`;
}

/** One DER sequence, with nothing after it. */
function isSequence(der: Buffer): boolean {
  if (der[0] !== 0x30) return false;
  const first = der[1] ?? 0;
  if (first < 0x80) return der.length === 2 + first;
  const bytes = first & 0x7f;
  if (bytes < 1 || bytes > 4 || der.length < 2 + bytes) return false;
  return der.length === 2 + bytes + der.readUIntBE(2, bytes);
}
