import { readEscapes } from './literals.ts';
import type { Issue } from './source.ts';

/** A token. `at` is its offset in the source. */
export type Token =
  | { readonly kind: 'ident' | 'symbol' | 'end'; readonly at: number; readonly text: string }
  | { readonly kind: 'string'; readonly at: number; readonly text: string; readonly value: string }
  | { readonly kind: 'bytes'; readonly at: number; readonly text: string; readonly value: Uint8Array }
  | { readonly kind: 'int' | 'uint' | 'double'; readonly at: number; readonly text: string };

/** Operators, longest first. */
const symbols = /==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()[\]{}]/y;
const space = /(?:[\t\r\n\f ]|\/\/[^\n]*)+/y;
const ident = /[_a-zA-Z][_a-zA-Z0-9]*/y;
const double = /(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)/y;
const integer = /(?:0x[0-9a-fA-F]+|\d+)[uU]?/y;
/** The prefix and opening quotes of a string. */
const opening = /([rR]?[bB]?|[bB][rR])("""|'''|"|')/y;

function matchAt(pattern: RegExp, source: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(source) ?? undefined;
}

/**
 * The tokens of an expression (cel-go `parser/gen/CEL.g4`), the end included. Invalid text is reported, and skipped up
 * to the first invalid character (ANTLR's `Lexer.recover`).
 *
 * @throws {SyntaxIssue} for an invalid escape.
 */
export function tokenize(source: string): { readonly tokens: Token[]; readonly issues: Issue[] } {
  const tokens: Token[] = [];
  const issues: Issue[] = [];
  let at = 0;
  for (;;) {
    at += matchAt(space, source, at)?.[0].length ?? 0;
    if (at >= source.length) break;
    const token = readToken(source, at);
    if (typeof token === 'string') {
      issues.push({ at, message: `Syntax error: token recognition error at: '${token}'` });
      at += token.length;
      continue;
    }
    tokens.push(token);
    at += token.text.length;
  }
  tokens.push({ kind: 'end', at: source.length, text: '<EOF>' });
  return { tokens, issues };
}

/** A token, or invalid text. */
function readToken(source: string, at: number): Token | string {
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
  // Half of a two-character symbol is invalid together with the character after it.
  const half = matchAt(halfSymbol, source, at)?.[0];
  return half ?? String.fromCodePoint(source.codePointAt(at) ?? 0);
}

const halfSymbol = /[=&|][^]?/uy;

function readString(source: string, at: number, prefix: string, quotes: string): Token | string {
  const start = at + prefix.length + quotes.length;
  const raw = /[rR]/.test(prefix);
  const { end, fault } = findEnd(source, start, quotes, raw);
  if (fault !== undefined) return source.slice(at, fault);
  const text = source.slice(at, end + quotes.length);
  // Line ends in a string are normalized.
  const body = source.slice(start, end).replaceAll('\r\n', '\n').replaceAll('\r', '\n');
  const bytes = /[bB]/.test(prefix);
  if (bytes) return { kind: 'bytes', at, text, value: raw ? Buffer.from(body) : readEscapes(body, at, true) };
  const plain = raw || !body.includes('\\');
  return { kind: 'string', at, text, value: plain ? body : readEscapes(body, at, false).toString() };
}

/** Escapes, complete or as far as they are valid. */
const escape = /\\(?:[abfnrtv"'`\\?]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})/y;
const escapeStart = /\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?/y;

/** The end of a string, or the offset after its first invalid character. */
function findEnd(
  source: string,
  start: number,
  quotes: string,
  raw: boolean,
): { readonly end: number; readonly fault?: number } {
  for (let i = start; i < source.length; i++) {
    if (source.startsWith(quotes, i)) return { end: i };
    if (source[i] === '\\' && !raw) {
      const whole = matchAt(escape, source, i)?.[0];
      if (whole === undefined) {
        const read = matchAt(escapeStart, source, i)?.[0] ?? '';
        return { end: i, fault: Math.min(source.length, i + read.length + 1) };
      }
      i += whole.length - 1;
    } else if (quotes.length === 1 && /[\n\r]/.test(source[i] ?? '')) return { end: i, fault: i + 1 };
  }
  return { end: source.length, fault: source.length };
}
