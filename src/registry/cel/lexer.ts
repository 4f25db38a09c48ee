import { readEscapes } from './literals.ts';
import { SyntaxIssue } from './source.ts';

export type Token =
  | { readonly kind: 'ident' | 'symbol' | 'end'; readonly at: number; readonly text: string }
  | { readonly kind: 'string'; readonly at: number; readonly text: string; readonly value: string }
  | { readonly kind: 'bytes'; readonly at: number; readonly text: string; readonly value: Uint8Array }
  | { readonly kind: 'int' | 'uint' | 'double'; readonly at: number; readonly text: string };

/** Longest first. */
const symbols = /==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()[\]{}]/y;
const space = /(?:[\t\r\n\f ]|\/\/[^\n]*)+/y;
const ident = /[_a-zA-Z][_a-zA-Z0-9]*/y;
const double = /(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)/y;
const integer = /(?:0x[0-9a-fA-F]+|\d+)[uU]?/y;
/** A string's prefix and opening quotes. */
const opening = /([rR]?[bB]?|[bB][rR])("""|'''|"|')/y;

function matchAt(pattern: RegExp, source: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(source) ?? undefined;
}

/** The tokens of an expression (cel-go `parser/gen/CEL.g4`), the end included. @throws {SyntaxIssue} */
export function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  for (;;) {
    at += matchAt(space, source, at)?.[0].length ?? 0;
    if (at >= source.length) break;
    const token = readToken(source, at);
    tokens.push(token);
    at += token.text.length;
  }
  tokens.push({ kind: 'end', at: source.length, text: '<EOF>' });
  return tokens;
}

function readToken(source: string, at: number): Token {
  const quoted = matchAt(opening, source, at);
  if (quoted !== undefined) return readString(source, at, quoted[1] ?? '', quoted[2] ?? '"');
  const fraction = matchAt(double, source, at)?.[0];
  if (fraction !== undefined) return { kind: 'double', at, text: fraction };
  const whole = matchAt(integer, source, at)?.[0];
  if (whole !== undefined) return { kind: /[uU]$/.test(whole) ? 'uint' : 'int', at, text: whole };
  const name = matchAt(ident, source, at)?.[0];
  if (name !== undefined) return { kind: 'ident', at, text: name };
  const symbol = matchAt(symbols, source, at)?.[0];
  if (symbol !== undefined) return { kind: 'symbol', at, text: symbol };
  const odd = String.fromCodePoint(source.codePointAt(at) ?? 0);
  throw new SyntaxIssue(at, `Syntax error: token recognition error at: '${odd}'`);
}

function readString(source: string, at: number, prefix: string, quotes: string): Token {
  const start = at + prefix.length + quotes.length;
  const raw = /[rR]/.test(prefix);
  const end = findEnd(source, start, quotes, raw);
  if (end === undefined) {
    throw new SyntaxIssue(at, `Syntax error: token recognition error at: '${source.slice(at)}'`);
  }
  const text = source.slice(at, end + quotes.length);
  // Line ends within a text are all the same.
  const body = source.slice(start, end).replaceAll('\r\n', '\n').replaceAll('\r', '\n');
  const bytes = /[bB]/.test(prefix);
  if (bytes) return { kind: 'bytes', at, text, value: raw ? Buffer.from(body) : readEscapes(body, at, true) };
  return { kind: 'string', at, text, value: raw ? body : readEscapes(body, at, false).toString() };
}

function findEnd(source: string, start: number, quotes: string, raw: boolean): number | undefined {
  for (let i = start; i < source.length; i++) {
    if (source.startsWith(quotes, i)) return i;
    if (source[i] === '\\' && !raw) i++;
    else if (quotes.length === 1 && /[\n\r]/.test(source[i] ?? '')) return undefined;
  }
  return undefined;
}
