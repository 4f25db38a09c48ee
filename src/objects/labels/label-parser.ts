import { qualifiedNameErrors } from './label-syntax.ts';
import { type LabelOperator, type LabelRequirement, newRequirement } from './label-requirement.ts';
import { badRequest } from '../status-errors.ts';

type TokenKind =
  'end' | 'identifier' | ')' | ',' | '!' | '==' | '=' | '>' | 'in' | '<' | '!=' | 'notin' | '(';

interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

/** Operators and words that are tokens of their own kind. */
const ownKinds: ReadonlyMap<string, TokenKind> = new Map(
  (['!=', '==', ')', ',', '!', '=', '>', '<', '(', 'in', 'notin'] as const).map((kind) => [kind, kind]),
);
const endToken: Token = { kind: 'end', text: '' };
const wantedOperators = 'in, notin, =, ==, !=, gt, lt';

/** An operator, the longer ones first, or a word. Like kube-apiserver's lexer, a NUL ends a word and, on its own, the text. */
const pattern = /[ \t\r\n]*(?:(!=|==|[),!=><(])|([^\0=!(),>< \t\r\n]+)\0?)/y;

/** Splits the text into tokens. */
export function scan(text: string): Token[] {
  const tokens: Token[] = [];
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const found = match[1] ?? match[2] ?? '';
    tokens.push({ kind: ownKinds.get(found) ?? 'identifier', text: found });
  }
  tokens.push(endToken);
  return tokens;
}

/** Inside values and keys, `in` and `notin` are ordinary words. */
const asWord = (token: Token): TokenKind =>
  token.kind === 'in' || token.kind === 'notin' ? 'identifier' : token.kind;

/** Reads tokens from left to right, as apimachinery's Parser does, so that the first error is the same. */
export class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  /** @throws {StatusError} 400 with kube-apiserver's text. */
  selector(): LabelRequirement[] {
    const requirements: LabelRequirement[] = [];
    for (;;) {
      const first = this.#peek();
      const kind = asWord(first);
      if (kind === 'end') return requirements;
      if (kind !== 'identifier' && kind !== '!') {
        throw badRequest(`found '${first.text}', expected: !, identifier, or 'end of string'`);
      }
      requirements.push(this.#requirement());
      const separator = this.#next();
      if (separator.kind === 'end') return requirements;
      if (separator.kind !== ',') {
        throw badRequest(`found '${separator.text}', expected: ',' or 'end of string'`);
      }
      const following = asWord(this.#peek());
      if (following !== 'identifier' && following !== '!') {
        throw badRequest(`found '${this.#peek().text}', expected: identifier after ','`);
      }
    }
  }

  #peek(): Token {
    return this.#tokens[this.#at] ?? endToken;
  }

  #next(): Token {
    const token = this.#peek();
    this.#at++;
    return token;
  }

  #requirement(): LabelRequirement {
    let token = this.#next();
    const negated = token.kind === '!';
    if (negated) token = this.#next();
    if (asWord(token) !== 'identifier') throw unparsable(`found '${token.text}', expected: identifier`);
    const key = token.text;
    const keyErrors = qualifiedNameErrors(key);
    if (keyErrors.length > 0) {
      // "<nil>" is Go's print of a nil field path.
      throw unparsable(`<nil>: Invalid value: ${JSON.stringify(key)}: ${keyErrors.join('; ')}`);
    }
    if (negated) return checked(key, '!', []);
    if (this.#peek().kind === 'end' || this.#peek().kind === ',') return checked(key, 'exists', []);
    const operator = this.#operator();
    const values = operator === 'in' || operator === 'notin' ? this.#valueSet() : [this.#exactValue()];
    return checked(key, operator, values);
  }

  #operator(): LabelOperator {
    const { kind, text } = this.#next();
    switch (kind) {
      case 'in':
      case 'notin':
      case '=':
      case '==':
      case '!=':
        return kind;
      case '>':
        return 'gt';
      case '<':
        return 'lt';
      default:
        throw unparsable(`found '${text}', expected: ${wantedOperators}`);
    }
  }

  #exactValue(): string {
    const kind = asWord(this.#peek());
    if (kind === 'end' || kind === ',') return '';
    const { text } = this.#next();
    if (kind !== 'identifier') throw unparsable(`found '${text}', expected: identifier`);
    return text;
  }

  #valueSet(): string[] {
    const open = this.#next();
    if (open.kind !== '(') throw unparsable(`found '${open.text}' expected: '('`);
    const first = this.#peek();
    const kind = asWord(first);
    if (kind === ')') {
      this.#next();
      return [''];
    }
    if (kind !== 'identifier' && kind !== ',') {
      throw unparsable(`found '${first.text}', expected: ',', ')' or identifier`);
    }
    const values = this.#valueList();
    if (this.#next().kind !== ')') throw unparsable(`found '${first.text}', expected: ')'`);
    return values;
  }

  /** Values up to the closing parenthesis; an empty place between commas is the empty value. */
  #valueList(): string[] {
    const values: string[] = [];
    for (;;) {
      const token = this.#next();
      const kind = asWord(token);
      if (kind === 'identifier') {
        values.push(token.text);
        const after = this.#peek();
        if (after.kind === ')') return values;
        if (after.kind !== ',') throw unparsable(`found '${after.text}', expected: ',' or ')'`);
      } else if (kind === ',') {
        if (values.length === 0) values.push('');
        if (this.#peek().kind === ')') return [...values, ''];
        if (this.#peek().kind === ',') {
          this.#next();
          values.push('');
        }
      } else {
        throw unparsable(`found '${token.text}', expected: ',', or identifier`);
      }
    }
  }
}

function unparsable(why: string): Error {
  return badRequest(`unable to parse requirement: ${why}`);
}

function checked(key: string, operator: LabelOperator, values: readonly string[]): LabelRequirement {
  try {
    return newRequirement(key, operator, values);
  } catch (error) {
    throw error instanceof Error ? unparsable(error.message) : error;
  }
}
