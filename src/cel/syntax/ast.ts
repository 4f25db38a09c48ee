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
  | 'optFlatMap';

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
