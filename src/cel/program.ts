import { type Expression, partsOf } from './syntax/ast.ts';
import { check, type Checked } from './checker.ts';
import { estimateCost, type SizeLookup } from './cost/estimate.ts';
import { environment, type Purpose } from './environment.ts';
import { validateHomogeneousLiterals } from './homogeneous-literals.ts';
import { foldConstants } from './constants.ts';
import { type Constants, evaluate } from './evaluate.ts';
import { Meter } from './meter.ts';
import { parse } from './syntax/parser.ts';
import { describeIssues, SyntaxErrors, type Issue } from './syntax/source.ts';
import { type CelType, formatType } from './types.ts';
import type { Value } from './values.ts';
import { parseGoDuration, parseTimestamp, secondsOf } from './go-time.ts';
import { compilePattern } from './patterns/program.ts';

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
    this.#expression = parsed(source);
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

function parsed(source: string): Expression {
  try {
    return parse(source);
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
