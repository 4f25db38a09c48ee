/**
 * The bytes of base64url without padding, as Go's `base64.RawURLEncoding` reads them: `=`, white space and the
 * characters of plain base64 are refused, bits behind the last byte are ignored.
 *
 * @returns the bytes, or the index of the first invalid character.
 */
export function decodeBase64Url(text: string): Buffer | number {
  const bad = /[^A-Za-z0-9_-]/.exec(text);
  if (bad !== null) return bad.index;
  return text.length % 4 === 1 ? text.length - 1 : Buffer.from(text, 'base64url');
}
