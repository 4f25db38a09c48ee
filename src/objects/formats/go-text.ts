/** How Go prints values in messages, where JavaScript prints them differently, and how it orders text. */

const plainAscii = /^[\x20-\x7e]*$/;
/** What `unicode.IsPrint` accepts: letters, marks, numbers, punctuation, symbols and the ASCII space. */
const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;
const named = new Map([
  ['\u0007', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
  ['"', '\\"'],
  ['\\', '\\\\'],
]);

/** Text in double quotes as `%q` and `strconv.Quote` print it. */
export function goQuote(text: string): string {
  if (plainAscii.test(text)) return JSON.stringify(text);
  let quoted = '"';
  for (const character of text) quoted += named.get(character) ?? escaped(character);
  return `${quoted}"`;
}

/** True when Go prints the character as it is. */
export function isPrintable(character: string): boolean {
  return printable.test(character);
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code >= 0xd800 && code <= 0xdfff) return '\ufffd'; // half of a pair is no UTF-8
  if (isPrintable(character)) return character;
  if (code < 0x80) return `\\x${hex(code, 2)}`;
  return code < 0x10000 ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
}

function hex(code: number, width: number): string {
  return code.toString(16).padStart(width, '0');
}

const jsonSpecial = /[<>&\u2028\u2029]/g;

/** JSON as Go's `encoding/json` writes it into text: characters that mean something in HTML are escaped. */
export function goJson(value: unknown): string {
  return JSON.stringify(value).replace(jsonSpecial, (character) => `\\u${hex(character.charCodeAt(0), 4)}`);
}

/** -1, 0 or 1, by code units: the order of Go's strings where both are ASCII. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/** The first 64 characters of a text, quoted: for messages about values that may be long. */
export function quotedStart(text: string): string {
  return JSON.stringify(text.slice(0, 64));
}

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
