import { pushAll } from '../../objects/lists.ts';
import type { Expression, ListLiteral, MapEntry, StructField } from './ast.ts';
import { type Token, tokenize } from './tokens.ts';
import { mismatched, readNumber, TokenReader } from './tokens.ts';
import { expandMacro } from './macros.ts';
import { qualifiedName } from '../overload.ts';
import { noFieldName, type Issue, SyntaxErrors, SyntaxIssue } from './ast.ts';

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
const startsArgument = startsExpression.replace("'(', ", "'(', ')', ");

/** Parses an expression and expands its macros. @param binds with `cel.bind`. @throws {SyntaxErrors} */
export function parse(source: string, binds: boolean): Expression {
  const issues: Issue[] = [];
  try {
    const expression = read(source, issues, binds);
    if (issues.length === 0) return expression;
  } catch (error) {
    if (!(error instanceof SyntaxIssue)) throw error;
    issues.push(error);
  }
  throw new SyntaxErrors(issues);
}

/** @param issues collects errors after which parsing can continue. @throws {SyntaxIssue} */
function read(source: string, issues: Issue[], binds: boolean): Expression {
  if (source.length > maxLength) {
    throw new SyntaxIssue(
      0,
      `expression code point size exceeds limit: size: ${source.length}, limit ${maxLength}`,
    );
  }
  const found = tokenize(source);
  pushAll(issues, found.issues);
  return new Parser(new TokenReader(found.tokens, issues), issues, binds).whole();
}

class Parser {
  readonly #reader: TokenReader;
  readonly #issues: Issue[];
  readonly #binds: boolean;
  #depth = 0;
  /** The tokens that error messages list where an expression is expected. */
  #expecting = startsExpression;

  /** @param issues collects errors after which parsing can continue. */
  constructor(reader: TokenReader, issues: Issue[], binds: boolean) {
    this.#reader = reader;
    this.#issues = issues;
    this.#binds = binds;
  }

  whole(): Expression {
    const expression = this.#expression();
    this.#reader.end();
    return expression;
  }

  #expression(): Expression {
    if (++this.#depth > maxDepth) {
      throw new SyntaxIssue(this.#reader.peek().at, `expression recursion limit exceeded: ${maxDepth}`);
    }
    const condition = this.#chain('||', () => this.#chain('&&', () => this.#relation()));
    const question = this.#reader.accept('?');
    let result = condition;
    if (question !== undefined) {
      const yes = this.#chain('||', () => this.#chain('&&', () => this.#relation()));
      this.#reader.expect(':');
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
    for (
      let token = this.#reader.accept(operator);
      token !== undefined;
      token = this.#reader.accept(operator)
    ) {
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

  /** Each operator of a row makes the tree one level deeper. */
  #binary(operators: ReadonlyMap<string, string>, operand: () => Expression): Expression {
    let left = operand();
    const before = this.#depth;
    for (;;) {
      const token = this.#reader.peek();
      const name = token.kind === 'symbol' || token.text === 'in' ? operators.get(token.text) : undefined;
      if (name === undefined || token.kind === 'string' || token.kind === 'bytes') break;
      this.#reader.take();
      if (++this.#depth > maxDepth) {
        throw new SyntaxIssue(token.at, `expression recursion limit exceeded: ${maxDepth}`);
      }
      left = call(name, token.at, [left, operand()]);
    }
    this.#depth = before;
    return left;
  }

  /** An even number of `!` or `-` has no effect. */
  #unary(): Expression {
    const first = this.#reader.peek();
    for (const [symbol, name] of [
      ['!', '!_'],
      ['-', '-_'],
    ] as const) {
      let count = 0;
      while (this.#reader.accept(symbol) !== undefined) count++;
      if (count === 0) continue;
      const number = this.#reader.peek();
      if (symbol === '-' && count % 2 === 1 && (number.kind === 'int' || number.kind === 'double')) {
        return this.#members(readNumber({ ...this.#reader.take(), at: first.at }, '-', this.#issues));
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
      const dot = this.#reader.accept('.');
      const bracket = dot === undefined ? this.#reader.accept('[') : undefined;
      if (dot === undefined && bracket === undefined) {
        const name = this.#reader.peek().text === '{' ? qualifiedName(operand) : undefined;
        const brace = name === undefined ? undefined : this.#reader.accept('{');
        if (name === undefined || brace === undefined) break;
        const { at } = brace;
        const fields = this.#reader.enclosed(() => this.#fields());
        operand = { kind: 'struct', at, name, fields };
        continue;
      }
      if (++this.#depth > maxDepth) {
        throw new SyntaxIssue(this.#reader.peek().at, `expression recursion limit exceeded: ${maxDepth}`);
      }
      if (dot !== undefined) operand = this.#member(operand, dot.at);
      else if (bracket !== undefined) operand = this.#index(operand, bracket.at);
    }
    this.#depth = before;
    return operand;
  }

  #member(operand: Expression, at: number): Expression {
    const optional = this.#reader.accept('?') !== undefined;
    const name = this.#identifier();
    if (optional) {
      const field: Expression = { kind: 'literal', at: name.at, value: name.text };
      return call('_?._', at, [operand, field]);
    }
    const open = this.#reader.accept('(');
    if (open === undefined) return { kind: 'select', at, operand, field: name.text, test: false };
    return this.#expanded(name.text, open.at, operand);
  }

  #index(operand: Expression, at: number): Expression {
    const name = this.#reader.accept('?') === undefined ? '_[_]' : '_[?_]';
    const index = this.#reader.enclosed(() => {
      const inner = this.#expression();
      this.#reader.expect(']');
      return inner;
    });
    return call(name, at, [operand, index]);
  }

  #identifier(): Token {
    const token = this.#reader.take();
    if (token.kind === 'ident' && token.text !== 'in' && !['true', 'false', 'null'].includes(token.text)) {
      return token;
    }
    throw new SyntaxIssue(token.at, noFieldName(token.text));
  }

  /** The arguments of a call up to the closing parenthesis. */
  #args(): Expression[] {
    const args: Expression[] = [];
    if (this.#reader.accept(')') !== undefined) return args;
    this.#reader.enclosed(() => {
      this.#expecting = startsArgument;
      do args.push(this.#expression());
      while (this.#reader.accept(',') !== undefined);
      this.#reader.expect(')');
    });
    return args;
  }

  #primary(): Expression {
    const expecting = this.#expecting;
    this.#expecting = startsExpression;
    this.#reader.skipToExpression(expecting);
    const token = this.#reader.take();
    switch (token.kind) {
      case 'string':
      case 'bytes':
        return { kind: 'literal', at: token.at, value: token.value };
      case 'int':
      case 'uint':
      case 'double':
        return readNumber(token, '', this.#issues);
      case 'ident':
        return this.#named(token, token.text);
      case 'symbol':
        return this.#bracketed(token, expecting);
      case 'end':
        throw mismatched(token, expecting);
    }
  }

  #named(token: Token, name: string): Expression {
    const { at } = token;
    if (name === 'true' || name === 'false') return { kind: 'literal', at, value: name === 'true' };
    if (name === 'null') return { kind: 'literal', at, value: null };
    if (name === 'in') throw mismatched(token, startsExpression);
    const open = this.#reader.accept('(');
    if (reserved.has(name)) this.#issues.push({ at, message: `reserved identifier: ${name}` });
    return open === undefined ? { kind: 'ident', at, name } : this.#expanded(name, open.at, undefined);
  }

  /** A call, or the expansion of its macro. An invalid macro is reported. */
  #expanded(name: string, at: number, target: Expression | undefined): Expression {
    const args = this.#args();
    try {
      return expandMacro(name, at, target, args, this.#binds);
    } catch (error) {
      if (!(error instanceof SyntaxIssue)) throw error;
      this.#issues.push(error);
      return { kind: 'call', at, name, target, args };
    }
  }

  #bracketed(token: Token, expecting: string): Expression {
    const { at, text } = token;
    if (text === '(') {
      return this.#reader.enclosed(() => {
        const inner = this.#expression();
        this.#reader.expect(')');
        return inner;
      });
    }
    if (text === '[') return this.#reader.enclosed(() => this.#listLiteral(at));
    if (text === '{') return this.#reader.enclosed(() => ({ kind: 'map', at, entries: this.#entries() }));
    // A leading dot means the root scope, where all names are.
    if (text === '.') return this.#named(token, this.#identifier().text);
    throw mismatched(token, expecting);
  }

  #listLiteral(at: number): ListLiteral {
    const elements: { value: Expression; optional: boolean }[] = [];
    while (this.#reader.accept(']') === undefined) {
      const optional = this.#reader.accept('?') !== undefined;
      elements.push({ value: this.#expression(), optional });
      if (this.#reader.accept(',') !== undefined) continue;
      this.#reader.expect(']', "{']', ','}");
      break;
    }
    return { kind: 'list', at, elements };
  }

  #entries(): MapEntry[] {
    const entries: MapEntry[] = [];
    while (this.#reader.accept('}') === undefined) {
      const optional = this.#reader.accept('?') !== undefined;
      const key = this.#expression();
      const colon = this.#reader.expect(':');
      entries.push({ at: colon.at, key, value: this.#expression(), optional });
      if (this.#reader.accept(',') !== undefined) continue;
      this.#reader.expect('}', "{'}', ','}");
      break;
    }
    return entries;
  }

  #fields(): StructField[] {
    const fields: StructField[] = [];
    while (this.#reader.accept('}') === undefined) {
      const optional = this.#reader.accept('?') !== undefined;
      const { text: name } = this.#identifier();
      const { at } = this.#reader.expect(':');
      fields.push({ at, name, value: this.#expression(), optional });
      if (this.#reader.accept(',') !== undefined) continue;
      this.#reader.expect('}', "{'}', ','}");
      break;
    }
    return fields;
  }
}

function call(name: string, at: number, args: readonly Expression[]): Expression {
  return { kind: 'call', at, name, target: undefined, args };
}
