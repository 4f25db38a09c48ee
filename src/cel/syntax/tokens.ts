import { SyntaxIssue, type Issue, type Literal } from './ast.ts';
import { Uint } from '../values.ts';

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
function readEscapes(body: string, at: number, bytes: boolean): Buffer {
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

/** A reader of tokens with ANTLR's recovery from small errors (`DefaultErrorStrategy`). */
export class TokenReader {
  readonly #tokens: readonly Token[];
  /** Errors after which parsing continued. */
  readonly #issues: Issue[];
  #next = 0;
  /** The number of open brackets. */
  #open = 0;

  /** @param issues collects errors after which parsing can continue. */
  constructor(tokens: readonly Token[], issues: Issue[]) {
    this.#tokens = tokens;
    this.#issues = issues;
  }

  peek(): Token {
    const token = this.#tokens[this.#next] ?? this.#tokens.at(-1);
    if (token === undefined) throw new Error('no tokens');
    return token;
  }

  take(): Token {
    const token = this.peek();
    this.#next++;
    return token;
  }

  /** Takes the next token if it is that symbol. */
  accept(text: string): Token | undefined {
    return this.#isSymbol(0, text) ? this.take() : undefined;
  }

  /**
   * Takes a symbol. One extra token before it, or a missing symbol that the next token could follow, is reported and
   * skipped.
   *
   * @param expecting the tokens that the error message lists.
   * @throws {SyntaxIssue}
   */
  expect(text: string, expecting = `'${text}'`): Token {
    const token = this.accept(text);
    if (token !== undefined) return token;
    const found = this.peek();
    if (this.#isSymbol(1, text)) {
      this.#report(`extraneous input '${found.text}' expecting ${expecting}`);
      this.#next++;
      return this.take();
    }
    const follows = text === ':' ? this.startsExpression(0) : found.kind === 'end' && this.#open === 1;
    if (!follows || expecting !== `'${text}'`) throw mismatched(found, expecting);
    this.#report(`missing ${expecting} at '${found.text}'`);
    return found;
  }

  /** Reports and skips a token that starts no expression, if the next one does. */
  skipToExpression(expecting: string): void {
    const found = this.peek();
    if (this.startsExpression(0) || found.kind === 'end' || !this.startsExpression(1)) return;
    this.#report(`extraneous input '${found.text}' expecting ${expecting}`);
    this.#next++;
  }

  /** @throws {SyntaxIssue} unless at most one token is left. */
  end(): void {
    const found = this.peek();
    if (found.kind === 'end') return;
    if (this.#tokens[this.#next + 1]?.kind !== 'end') throw mismatched(found, '<EOF>');
    this.#report(`extraneous input '${found.text}' expecting <EOF>`);
  }

  /** Reads the content of brackets, the closing one included. */
  enclosed<T>(read: () => T): T {
    this.#open++;
    const result = read();
    this.#open--;
    return result;
  }

  /** True when an expression can start with the token at that distance. */
  startsExpression(ahead: number): boolean {
    const token = this.#tokens[this.#next + ahead];
    if (token === undefined || token.kind === 'end') return false;
    if (token.kind === 'symbol') return '[{(.-!'.includes(token.text);
    return token.kind !== 'ident' || token.text !== 'in';
  }

  #isSymbol(ahead: number, text: string): boolean {
    const token = this.#tokens[this.#next + ahead];
    return token?.kind === 'symbol' && token.text === text;
  }

  #report(message: string): void {
    this.#issues.push({ at: this.peek().at, message: `Syntax error: ${message}` });
  }
}

/** The error of an unexpected token. */
export function mismatched({ at, text }: Token, expecting: string): SyntaxIssue {
  return new SyntaxIssue(at, `Syntax error: mismatched input '${text}' expecting ${expecting}`);
}

/**
 * The value of a token of the kind `int`, `uint` or `double`.
 *
 * @param sign `-` after an odd number of `-`: the smallest int is not the negation of a valid literal.
 * @param issues get one where the value is out of range.
 */
export function readNumber({ at, kind, text }: Token, sign: '' | '-', issues: Issue[]): Literal {
  if (kind === 'double') {
    const value = Number(sign + text);
    if (!Number.isFinite(value)) issues.push({ at, message: 'invalid double literal' });
    return { kind: 'literal', at, value };
  }
  const digits = BigInt(text.replace(/[uU]$/, ''));
  const value = sign === '-' ? -digits : digits;
  if (kind === 'uint') {
    if (BigInt.asUintN(64, value) !== value) issues.push({ at, message: 'invalid uint literal' });
    return { kind: 'literal', at, value: new Uint(value) };
  }
  if (BigInt.asIntN(64, value) !== value) issues.push({ at, message: 'invalid int literal' });
  return { kind: 'literal', at, value };
}
