/** Constant folding: parts of an expression that are evaluated once (cel-go `interpreter/decorators.go`). */
import { type Expression, partsOf } from './syntax/ast.ts';
import type { Checked } from './checker.ts';
import { evaluate } from './evaluate.ts';
import { Meter } from './meter.ts';
import { compilePattern } from './patterns/program.ts';
import type { Value } from './values.ts';

/** Functions whose calls with one constant argument are constants. */
const conversions = new Set('bool bytes double duration dyn int string timestamp type uint'.split(' '));
/** The cost limit of folding, in units. */
const foldingLimit = 1_000_000;
const noBindings: ReadonlyMap<string, Value> = new Map();

/**
 * The values of list and map literals that contain only constants, and of conversions of constants.
 *
 * @throws {EvaluationError} when the evaluation fails.
 */
export function foldConstants(expression: Expression, checked: Checked): Map<Expression, Value> {
  const constants = new Map<Expression, Value>();
  const meter = new Meter(foldingLimit);
  const visit = (part: Expression): void => {
    for (const inner of partsOf(part)) visit(inner);
    compileLiteral(part);
    if (!isFoldable(part, constants)) return;
    constants.set(part, evaluate(part, checked, constants, noBindings, meter));
  };
  visit(expression);
  return constants;
}

/** A pattern literal is compiled with its expression (`apiserver/pkg/cel/library/regex.go`). */
function compileLiteral(part: Expression): void {
  if (part.kind !== 'call' || part.target === undefined) return;
  const [pattern] = part.args;
  if ((part.name !== 'find' && part.name !== 'findAll') || pattern?.kind !== 'literal') return;
  if (typeof pattern.value === 'string') compilePattern(pattern.value);
}

function isFoldable(part: Expression, constants: ReadonlyMap<Expression, Value>): boolean {
  const isConstant = (inner: Expression) => inner.kind === 'literal' || constants.has(inner);
  switch (part.kind) {
    case 'list':
      return part.elements.every(({ value, optional }) => !optional && isConstant(value));
    case 'map':
      return part.entries.every(
        ({ key, value, optional }) => !optional && isConstant(key) && isConstant(value),
      );
    case 'call':
      return (
        part.target === undefined &&
        part.args.length === 1 &&
        conversions.has(part.name) &&
        part.args.every(isConstant)
      );
    case 'literal':
    case 'ident':
    case 'select':
    case 'logical':
    case 'struct':
    case 'comprehension':
      return false;
  }
}
