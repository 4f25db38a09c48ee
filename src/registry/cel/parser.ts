import type { Expression, ListLiteral, MapEntry, StructField } from './ast.ts';
import { type Token, tokenize } from './lexer.ts';
import { expandMacro } from './macros.ts';
import { qualifiedName } from './names.ts';
import { SyntaxIssue } from './source.ts';
import { Uint } from './values.ts';

/** cel-go's limits (`parser/options.go`). */
const maxLength = 100_000;
const maxDepth = 250;

const reserved = new Set(
  'as break const continue else false for function if import in let loop package namespace null return true var void while'.split(
    ' ',
  ),
);
const relations = new Map([
  ['<', '_<_'],
  ['<=', '_<=_'],
  ['>', '_>_'],
  ['>=', '_>=_'],
  ['==', '_==_'],
  ['!=', '_!=_'],
  ['in', '@in'],
]);
const sums = new Map([
  ['+', '_+_'],
  ['-', '_-_'],
]);
const products = new Map([
  ['*', '_*_'],
  ['/', '_/_'],
  ['%', '_%_'],
]);
const startsExpression =
  "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/** Reads an expression; macros are expanded. @throws {SyntaxIssue} */
export function parse(source: string): Expression {
  if (source.length > maxLength) {
    throw new SyntaxIssue(
      0,
      `expression code point size exceeds limit: size: ${source.length}, limit ${maxLength}`,
    );
  }
  return new Parser(tokenize(source)).whole();
}

class Parser {
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  whole(): Expression {
    const expression = this.#expression();
    const token = this.#peek();
    if (token.kind !== 'end') {
      const last = this.#tokens[this.#next + 1]?.kind === 'end';
      const what = last ? 'extraneous' : 'mismatched';
      throw new SyntaxIssue(token.at, `Syntax error: ${what} input '${token.text}' expecting <EOF>`);
    }
    return expression;
  }

  #peek(): Token {
    const token = this.#tokens[this.#next] ?? this.#tokens.at(-1);
    if (token === undefined) throw new Error('no tokens');
    return token;
  }

  #take(): Token {
    const token = this.#peek();
    this.#next++;
    return token;
  }

  /** Takes the next token when it is that symbol. */
  #accept(text: string): Token | undefined {
    const token = this.#peek();
    return token.kind === 'symbol' && token.text === text ? this.#take() : undefined;
  }

  #expect(text: string): Token {
    const token = this.#accept(text);
    if (token !== undefined) return token;
    const found = this.#peek();
    throw new SyntaxIssue(found.at, `Syntax error: mismatched input '${found.text}' expecting '${text}'`);
  }

  #expression(): Expression {
    if (++this.#depth > maxDepth) {
      throw new SyntaxIssue(this.#peek().at, `expression recursion limit exceeded: ${maxDepth}`);
    }
    const condition = this.#chain('||', () => this.#chain('&&', () => this.#relation()));
    const question = this.#accept('?');
    let result = condition;
    if (question !== undefined) {
      const yes = this.#chain('||', () => this.#chain('&&', () => this.#relation()));
      this.#expect(':');
      const no = this.#expression();
      result = call('_?_:_', question.at, [condition, yes, no]);
    }
    this.#depth--;
    return result;
  }

  #chain(operator: '&&' | '||', operand: () => Expression): Expression {
    const first = operand();
    const operands = [first];
    let at: number | undefined;
    for (let token = this.#accept(operator); token !== undefined; token = this.#accept(operator)) {
      at ??= token.at;
      operands.push(operand());
    }
    return at === undefined ? first : { kind: 'logical', at, operator, operands };
  }

  #relation(): Expression {
    return this.#binary(relations, () =>
      this.#binary(sums, () => this.#binary(products, () => this.#unary())),
    );
  }

  /** Each operator of a row makes the tree one deeper. */
  #binary(operators: ReadonlyMap<string, string>, operand: () => Expression): Expression {
    let left = operand();
    const before = this.#depth;
    for (;;) {
      const token = this.#peek();
      const name = token.kind === 'symbol' || token.text === 'in' ? operators.get(token.text) : undefined;
      if (name === undefined || token.kind === 'string' || token.kind === 'bytes') break;
      this.#take();
      if (++this.#depth > maxDepth) {
        throw new SyntaxIssue(token.at, `expression recursion limit exceeded: ${maxDepth}`);
      }
      left = call(name, token.at, [left, operand()]);
    }
    this.#depth = before;
    return left;
  }

  /** An even number of `!` or `-` is none. */
  #unary(): Expression {
    const first = this.#peek();
    for (const [symbol, name] of [
      ['!', '!_'],
      ['-', '-_'],
    ] as const) {
      let count = 0;
      while (this.#accept(symbol) !== undefined) count++;
      if (count === 0) continue;
      const number = this.#peek();
      if (symbol === '-' && count % 2 === 1 && (number.kind === 'int' || number.kind === 'double')) {
        return this.#members(this.#number(this.#take(), '-'));
      }
      const operand = this.#members(this.#primary());
      return count % 2 === 0 ? operand : call(name, first.at, [operand]);
    }
    return this.#members(this.#primary());
  }

  #members(start: Expression): Expression {
    let operand = start;
    const before = this.#depth;
    for (;;) {
      const dot = this.#accept('.');
      const bracket = dot === undefined ? this.#accept('[') : undefined;
      if (dot === undefined && bracket === undefined) {
        const name = this.#peek().text === '{' ? qualifiedName(operand) : undefined;
        const brace = name === undefined ? undefined : this.#accept('{');
        if (name === undefined || brace === undefined) break;
        operand = { kind: 'struct', at: brace.at, name, fields: this.#fields() };
        continue;
      }
      if (++this.#depth > maxDepth) {
        throw new SyntaxIssue(this.#peek().at, `expression recursion limit exceeded: ${maxDepth}`);
      }
      if (dot !== undefined) operand = this.#member(operand, dot.at);
      else if (bracket !== undefined) operand = this.#index(operand, bracket.at);
    }
    this.#depth = before;
    return operand;
  }

  #member(operand: Expression, at: number): Expression {
    const optional = this.#accept('?') !== undefined;
    const name = this.#identifier();
    if (optional) {
      const field: Expression = { kind: 'literal', at: name.at, value: name.text };
      return call('_?._', at, [operand, field]);
    }
    const open = this.#accept('(');
    if (open === undefined) return { kind: 'select', at, operand, field: name.text, test: false };
    return expandMacro(name.text, open.at, operand, this.#list(')'));
  }

  #index(operand: Expression, at: number): Expression {
    const name = this.#accept('?') === undefined ? '_[_]' : '_[?_]';
    const index = this.#expression();
    this.#expect(']');
    return call(name, at, [operand, index]);
  }

  #identifier(): Token {
    const token = this.#take();
    if (token.kind === 'ident' && token.text !== 'in' && !['true', 'false', 'null'].includes(token.text)) {
      return token;
    }
    throw new SyntaxIssue(token.at, `Syntax error: no viable alternative at input '.${token.text}'`);
  }

  /** Expressions up to the closing symbol, which is taken. */
  #list(close: string): Expression[] {
    const items: Expression[] = [];
    while (this.#accept(close) === undefined) {
      items.push(this.#expression());
      if (this.#accept(',') !== undefined) continue;
      this.#expect(close);
      break;
    }
    return items;
  }

  #primary(): Expression {
    const token = this.#take();
    switch (token.kind) {
      case 'string':
      case 'bytes':
        return { kind: 'literal', at: token.at, value: token.value };
      case 'int':
      case 'uint':
      case 'double':
        return this.#number(token, '');
      case 'ident':
        return this.#named(token, token.text);
      case 'symbol':
        return this.#bracketed(token);
      case 'end':
        throw unexpected(token);
    }
  }

  #named(token: Token, name: string): Expression {
    const { at } = token;
    if (name === 'true' || name === 'false') return { kind: 'literal', at, value: name === 'true' };
    if (name === 'null') return { kind: 'literal', at, value: null };
    if (name === 'in') throw unexpected(token);
    const open = this.#accept('(');
    if (reserved.has(name)) throw new SyntaxIssue(at, `reserved identifier: ${name}`);
    return open === undefined
      ? { kind: 'ident', at, name }
      : expandMacro(name, open.at, undefined, this.#list(')'));
  }

  #bracketed(token: Token): Expression {
    const { at, text } = token;
    if (text === '(') {
      const inner = this.#expression();
      this.#expect(')');
      return inner;
    }
    if (text === '[') return this.#listLiteral(at);
    if (text === '{') return { kind: 'map', at, entries: this.#entries() };
    // A leading dot names from the root, where all our names are.
    if (text === '.') return this.#named(token, this.#identifier().text);
    throw unexpected(token);
  }

  #listLiteral(at: number): ListLiteral {
    const elements: { value: Expression; optional: boolean }[] = [];
    while (this.#accept(']') === undefined) {
      const optional = this.#accept('?') !== undefined;
      elements.push({ value: this.#expression(), optional });
      if (this.#accept(',') !== undefined) continue;
      this.#expect(']');
      break;
    }
    return { kind: 'list', at, elements };
  }

  #entries(): MapEntry[] {
    const entries: MapEntry[] = [];
    while (this.#accept('}') === undefined) {
      const optional = this.#accept('?') !== undefined;
      const key = this.#expression();
      const colon = this.#expect(':');
      entries.push({ at: colon.at, key, value: this.#expression(), optional });
      if (this.#accept(',') !== undefined) continue;
      this.#expect('}');
      break;
    }
    return entries;
  }

  #fields(): StructField[] {
    const fields: StructField[] = [];
    while (this.#accept('}') === undefined) {
      const optional = this.#accept('?') !== undefined;
      const { text: name } = this.#identifier();
      const { at } = this.#expect(':');
      fields.push({ at, name, value: this.#expression(), optional });
      if (this.#accept(',') !== undefined) continue;
      this.#expect('}');
      break;
    }
    return fields;
  }

  #number(token: Token, sign: '' | '-'): Expression {
    const { at, kind, text } = token;
    if (kind === 'double') {
      const value = Number(sign + text);
      if (!Number.isFinite(value)) throw new SyntaxIssue(at, 'invalid double literal');
      return { kind: 'literal', at, value };
    }
    const digits = BigInt(text.replace(/[uU]$/, ''));
    const value = sign === '-' ? -digits : digits;
    if (kind === 'uint') {
      if (BigInt.asUintN(64, value) !== value) throw new SyntaxIssue(at, 'invalid uint literal');
      return { kind: 'literal', at, value: new Uint(value) };
    }
    if (BigInt.asIntN(64, value) !== value) throw new SyntaxIssue(at, 'invalid int literal');
    return { kind: 'literal', at, value };
  }
}

function call(name: string, at: number, args: readonly Expression[]): Expression {
  return { kind: 'call', at, name, target: undefined, args };
}

function unexpected(token: Token): SyntaxIssue {
  return new SyntaxIssue(
    token.at,
    `Syntax error: mismatched input '${token.text}' expecting ${startsExpression}`,
  );
}
