import { type Expression, partsOf, type Issue, describeIssues, SyntaxErrors } from './syntax/ast.ts';
import { type Checked, check } from './checker.ts';
import { type CelType, formatType } from './types.ts';
import { evaluate, type Constants } from './evaluate.ts';
import { Meter } from './meter.ts';
import { compilePattern } from './patterns/program.ts';
import type { Value } from './values.ts';
import { estimateCost, type SizeLookup } from './cost/estimate.ts';
import { environment, type Purpose } from './environment.ts';
import { parse } from './syntax/parser.ts';
import { parseGoDuration, parseTimestamp, secondsOf } from './json-values.ts';

/**
 * Checks that the items of list and map literals have the same type (cel-go `cel/validator.go`
 * ValidateHomogeneousAggregateLiterals). Arguments of `format` may have different types.
 */
function validateHomogeneousLiterals(expression: Expression, checked: Checked): Issue[] {
  const { lists, maps } = literalsIn(expression);
  return [...lists, ...maps].flatMap((literal) => mismatchesIn(literal, checked));
}

interface Literals {
  readonly lists: readonly Expression[];
  readonly maps: readonly Expression[];
}

function literalsIn(expression: Expression): Literals {
  if (expression.kind === 'call' && expression.name === 'format') return { lists: [], maps: [] };
  const parts = partsOf(expression).map(literalsIn);
  const lists = parts.flatMap((part) => part.lists);
  const maps = parts.flatMap((part) => part.maps);
  if (expression.kind === 'list') return { lists: [expression, ...lists], maps };
  return { lists, maps: expression.kind === 'map' ? [expression, ...maps] : maps };
}

/** The first mismatch of a list; all mismatching keys and values of a map. */
function mismatchesIn(literal: Expression, { types }: Checked): Issue[] {
  const typeOf = (part: Expression, optional: boolean) => {
    const type = types.get(part);
    return optional && type?.kind === 'optional' ? type.of : type;
  };
  if (literal.kind === 'list') {
    const items = literal.elements.map(({ value, optional }) => ({
      at: value.at,
      type: typeOf(value, optional),
    }));
    return mismatches(items).slice(0, 1);
  }
  if (literal.kind !== 'map') return [];
  const keys = literal.entries.map(({ key }) => ({ at: key.at, type: typeOf(key, false) }));
  const values = literal.entries.map(({ value, optional }) => ({
    at: value.at,
    type: typeOf(value, optional),
  }));
  return [...mismatches(keys), ...mismatches(values)].sort((a, b) => a.at - b.at);
}

function mismatches(parts: readonly { readonly at: number; readonly type: CelType | undefined }[]): Issue[] {
  const [first] = parts;
  if (first?.type === undefined) return [];
  const wanted = formatType(first.type);
  return parts.flatMap(({ at, type }) => {
    const found = type === undefined ? wanted : formatType(type);
    return found === wanted ? [] : [{ at, message: `expected type '${wanted}' but found '${found}'` }];
  });
}

/** Constant folding: parts of an expression that are evaluated once (cel-go `interpreter/decorators.go`). */

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
function foldConstants(expression: Expression, checked: Checked): Map<Expression, Value> {
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

/** An expression that does not compile. The message has the issues with their positions, as cel-go prints them. */
export class CompileError extends Error {
  override readonly name = 'CompileError';
  /** The phase that failed: parsing and checking, or constant folding, such as `int('x')`. */
  readonly stage: 'compilation' | 'instantiation';

  constructor(stage: CompileError['stage'], message: string) {
    super(message);
    this.stage = stage;
  }

  /** The outcome of an expression that must be a bool. */
  get fault(): string {
    return `${this.stage === 'compilation' ? '' : 'program '}${this.stage} failed: ${this.message}`;
  }
}

/** The outcome of an evaluation. */
export interface EvaluationResult {
  /** Undefined when the evaluation failed. */
  readonly value: Value | undefined;
  /** An EvaluationError or a CostLimitError. */
  readonly error: Error | undefined;
  /** Units of cost that were spent. */
  readonly cost: number;
  /** Units to charge to the budget of several evaluations: the cost, or more where the evaluation took more time. */
  readonly burden: number;
}

/** A compiled CEL expression, which can be evaluated any number of times. */
export class Program {
  readonly #expression: Expression;
  readonly #checked: Checked;
  readonly #constants: Constants;

  /**
   * @param variables the names that the expression may read, with their types.
   * @throws {CompileError}
   */
  constructor(source: string, variables: ReadonlyMap<string, CelType>, purpose: Purpose = 'rule') {
    this.#expression = parsed(source, purpose === 'device');
    this.#checked = check(this.#expression, { variables, ...environment(purpose) });
    const { issues } = this.#checked;
    const wrong =
      issues.length > 0
        ? issues
        : [
            ...validateLiterals(this.#expression),
            ...validateHomogeneousLiterals(this.#expression, this.#checked),
          ];
    if (wrong.length > 0) throw new CompileError('compilation', describeIssues(source, wrong));
    this.#constants = folded(this.#expression, this.#checked);
  }

  /** The type of the result. */
  get type(): CelType {
    return this.#checked.type;
  }

  /** The type of the result as cel-go prints it: `bool`. */
  get resultType(): string {
    return formatType(this.#checked.type);
  }

  /** The highest cost of an evaluation, as far as sizes are known. */
  estimateCost(sizeAt: SizeLookup): number {
    return estimateCost(this.#expression, this.#checked, sizeAt);
  }

  /** True when the expression reads the variable. */
  reads(variable: string): boolean {
    return this.#checked.variables.has(variable);
  }

  /**
   * Evaluates the expression. Failures of the evaluation are part of the result.
   *
   * @param costLimit units of cost at which the evaluation is stopped.
   */
  evaluate(bindings: ReadonlyMap<string, Value>, costLimit: number): EvaluationResult {
    const meter = new Meter(costLimit);
    try {
      const value = evaluate(this.#expression, this.#checked, this.#constants, bindings, meter);
      return { value, error: undefined, cost: meter.spent, burden: meter.burden };
    } catch (error) {
      if (!isExpected(error)) throw error;
      return { value: undefined, error, cost: meter.spent, burden: meter.burden };
    }
  }
}

function isExpected(error: unknown): error is Error {
  return error instanceof Error && (error.name === 'EvaluationError' || error.name === 'CostLimitError');
}

function folded(expression: Expression, checked: Checked): Constants {
  try {
    return foldConstants(expression, checked);
  } catch (error) {
    if (isExpected(error)) throw new CompileError('instantiation', error.message);
    throw error;
  }
}

function parsed(source: string, binds: boolean): Expression {
  try {
    return parse(source, binds);
  } catch (error) {
    if (!(error instanceof SyntaxErrors)) throw error;
    throw new CompileError('compilation', describeIssues(source, error.issues));
  }
}

/** The checks of literal arguments, by function (cel-go `cel/validator.go`). */
const readers: ReadonlyMap<string, (value: string) => unknown> = new Map<string, (value: string) => unknown>([
  ['duration', parseGoDuration],
  ['timestamp', parseTimestamp],
  ['matches', compilePattern],
]);

/** Checks literals of durations, times and patterns. */
function validateLiterals(expression: Expression): Issue[] {
  const issues: Issue[] = [];
  visit(expression, issues);
  return issues;
}

function visit(expression: Expression, issues: Issue[]): void {
  if (expression.kind === 'call') {
    const argument = expression.args.at(-1);
    const read = readers.get(expression.name);
    if (read !== undefined && argument?.kind === 'literal') {
      try {
        if (typeof argument.value === 'string') read(argument.value);
        else if (expression.name === 'timestamp' && typeof argument.value === 'bigint')
          secondsOf(argument.value);
      } catch {
        issues.push({ at: argument.at, message: `invalid ${expression.name} argument` });
      }
    }
  }
  for (const child of partsOf(expression)) visit(child, issues);
}
