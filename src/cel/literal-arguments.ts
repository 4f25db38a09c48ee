import { type Expression, partsOf } from './ast.ts';
import { parseDuration, parseTimestamp, secondsOf } from './go-time.ts';
import { compilePattern } from './patterns/program.ts';
import type { Issue } from './source.ts';

/** The checks of literal arguments, by function (cel-go `cel/validator.go`). */
const readers: ReadonlyMap<string, (value: string) => unknown> = new Map<string, (value: string) => unknown>([
  ['duration', parseDuration],
  ['timestamp', parseTimestamp],
  ['matches', compilePattern],
]);

/** Checks literals of durations, times and patterns when an expression is compiled. */
export function validateLiterals(expression: Expression): Issue[] {
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
