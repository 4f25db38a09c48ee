import type { Value } from '../values.ts';

/** A parsed CEL expression. `at` is the offset that cel-go reports for errors of the node. */
export type Expression =
  Literal | Ident | Select | Call | Logical | ListLiteral | MapLiteral | StructLiteral | Comprehension;

export interface Literal {
  readonly kind: 'literal';
  readonly at: number;
  readonly value: Value;
}

export interface Ident {
  readonly kind: 'ident';
  readonly at: number;
  readonly name: string;
}

export interface Select {
  readonly kind: 'select';
  readonly at: number;
  readonly operand: Expression;
  readonly field: string;
  /** `has(a.b)`: a test whether the field is present. */
  readonly test: boolean;
}

/** A function or an operator under cel-go's name, such as `_+_`. */
export interface Call {
  readonly kind: 'call';
  readonly at: number;
  readonly name: string;
  readonly target: Expression | undefined;
  readonly args: readonly Expression[];
}

/** A chain of `&&` or of `||`. */
export interface Logical {
  readonly kind: 'logical';
  readonly at: number;
  readonly operator: '&&' | '||';
  /** Two or more. */
  readonly operands: readonly Expression[];
}

export interface ListLiteral {
  readonly kind: 'list';
  readonly at: number;
  readonly elements: readonly { readonly value: Expression; readonly optional: boolean }[];
}

export interface MapLiteral {
  readonly kind: 'map';
  readonly at: number;
  readonly entries: readonly MapEntry[];
}

export interface MapEntry {
  readonly at: number;
  readonly key: Expression;
  readonly value: Expression;
  readonly optional: boolean;
}

/** An object of a named type: `Object.spec{replicas: 1}`. */
export interface StructLiteral {
  readonly kind: 'struct';
  readonly at: number;
  readonly name: string;
  readonly fields: readonly StructField[];
}

export interface StructField {
  readonly at: number;
  readonly name: string;
  readonly value: Expression;
  readonly optional: boolean;
}

/** The computation of a macro over a list, a map or an optional. */
export type ComprehensionKind =
  | 'all'
  | 'exists'
  | 'existsOne'
  | 'filter'
  | 'map'
  | 'transformList'
  | 'transformMap'
  | 'transformMapEntry'
  | 'sortBy'
  | 'optMap'
  | 'optFlatMap'
  /** `cel.bind(variable, range, body)`: the range itself, once. */
  | 'bind';

export interface Comprehension {
  readonly kind: 'comprehension';
  readonly at: number;
  readonly macro: ComprehensionKind;
  readonly range: Expression;
  /** One variable, or two: index and item of a list, key and value of a map. */
  readonly variables: readonly [string] | readonly [string, string];
  /** The filter; undefined for all items. */
  readonly filter: Expression | undefined;
  /** The predicate, or the value computed from an item. */
  readonly body: Expression;
}

/** The operands of an expression, in source order. */
export function partsOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case 'literal':
    case 'ident':
      return [];
    case 'select':
      return [expression.operand];
    case 'call':
      return expression.target === undefined ? expression.args : [expression.target, ...expression.args];
    case 'logical':
      return expression.operands;
    case 'list':
      return expression.elements.map(({ value }) => value);
    case 'map':
      return expression.entries.flatMap(({ key, value }) => [key, value]);
    case 'struct':
      return expression.fields.map(({ value }) => value);
    case 'comprehension': {
      const { range, filter, body } = expression;
      return filter === undefined ? [range, body] : [range, filter, body];
    }
  }
}

/** An error of an expression. */
export interface Issue {
  /** The offset in the source. */
  readonly at: number;
  readonly message: string;
}

/** The limit of reported errors, as in cel-go. */
export const maxIssues = 100;

/**
 * The issues in cel-go's format (`common/error.go`): `ERROR: <input>:1:5: undefined field 'x'`, and the line with a caret
 * below it.
 */
export function describeIssues(source: string, issues: readonly Issue[]): string {
  const lines = source.split('\n');
  const listed = issues.slice(0, maxIssues).sort((a, b) => a.at - b.at);
  const texts = listed.map(({ at, message }) => {
    const before = source.slice(0, at).split('\n');
    const line = lines[before.length - 1] ?? '';
    const column = Array.from(before.at(-1) ?? '').length;
    const place = `<input>:${before.length}:${column + 1}`;
    return `ERROR: ${place}: ${message}\n | ${line.replaceAll('\t', ' ')}\n | ${'.'.repeat(column)}^`;
  });
  if (issues.length > maxIssues) texts.push(`${issues.length - maxIssues} more errors were truncated`);
  return texts.join('\n');
}

/** The message of cel-go's parser for a word after a dot that is not a field name. */
export function noFieldName(word: string): string {
  return ['true', 'false', 'null'].includes(word)
    ? `Syntax error: mismatched input '${word}' expecting IDENTIFIER`
    : `Syntax error: no viable alternative at input '.${word}'`;
}

/** A syntax error of an expression. */
export class SyntaxIssue extends Error {
  override readonly name = 'SyntaxIssue';
  readonly at: number;

  constructor(at: number, message: string) {
    super(message);
    this.at = at;
  }
}

/** All syntax errors of an expression. */
export class SyntaxErrors extends Error {
  override readonly name = 'SyntaxErrors';
  /** In source order. */
  readonly issues: readonly Issue[];

  constructor(issues: readonly Issue[]) {
    super(issues[0]?.message ?? '');
    this.issues = [...issues].sort((a, b) => a.at - b.at);
  }
}
