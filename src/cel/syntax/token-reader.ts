import { Uint } from '../values.ts';
import type { Literal } from './ast.ts';
import type { Token } from './lexer.ts';
import { type Issue, SyntaxIssue } from './source.ts';

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
