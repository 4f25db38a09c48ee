import { SyntaxIssue } from './source.ts';

const simple = new Map([
  ['a', '\x07'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
  ['\\', '\\'],
  ["'", "'"],
  ['"', '"'],
  ['`', '`'],
  ['?', '?'],
]);
const numeric =
  /\\(?:x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))/y;

/**
 * A literal's body with its escapes resolved (cel-spec, "String and Bytes Values"), as UTF-8. In bytes `\xff` and
 * `\377` are single bytes, in texts code points.
 *
 * @throws {SyntaxIssue} at the literal.
 */
export function readEscapes(body: string, at: number, bytes: boolean): Buffer {
  const parts: Buffer[] = [];
  let i = 0;
  while (i < body.length) {
    const next = body.indexOf('\\', i);
    if (next === -1) break;
    parts.push(Buffer.from(body.slice(i, next)));
    const letter = simple.get(body[next + 1] ?? '');
    if (letter !== undefined) {
      parts.push(Buffer.from(letter));
      i = next + 2;
      continue;
    }
    numeric.lastIndex = next;
    const match = numeric.exec(body);
    if (match === null) throw new SyntaxIssue(at, 'invalid escape sequence');
    parts.push(codePoint(match, at, bytes));
    i = next + match[0].length;
  }
  parts.push(Buffer.from(body.slice(i)));
  return Buffer.concat(parts);
}

function codePoint(match: RegExpExecArray, at: number, bytes: boolean): Buffer {
  const [, lower, upper, short, long, octal] = match;
  const code =
    octal === undefined
      ? Number.parseInt(lower ?? upper ?? short ?? long ?? '0', 16)
      : Number.parseInt(octal, 8);
  const unicode = short ?? long;
  if (bytes && unicode === undefined) return Buffer.from([code]);
  if (bytes || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
    throw new SyntaxIssue(at, 'invalid unicode code point');
  }
  return Buffer.from(String.fromCodePoint(code));
}
