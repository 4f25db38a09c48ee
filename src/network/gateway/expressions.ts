import { compileRe2 } from '../../objects/formats/re2.ts';
import { errorMessage } from '../../objects/status.ts';

/**
 * Regular expressions of Routes, in Go's syntax (RE2). A match takes time linear to the text and to the expression, both
 * of which are bounded.
 */

/** Characters of an expression. */
const maxLength = 1024;
/** Instructions of one: `.{0,1000}` has 2,000. */
const maxProgram = 600;
/** The steps that the expressions of all Routes take for one request, about 100 ms; from there on none matches. */
const maxSteps = 10_000_000;

/** Why an expression is not used; undefined for one that is. */
export function expressionProblem(expression: string): string | undefined {
  if (expression.length > maxLength)
    return `expressions longer than ${maxLength} characters are not supported`;
  try {
    if (compileRe2(expression).programSize() > maxProgram) {
      return `the expression ${JSON.stringify(expression)} is too large`;
    }
    return undefined;
  } catch (error) {
    return `the expression ${JSON.stringify(expression)} is invalid: ${errorMessage(error)}`;
  }
}

/** What the expressions of one request may cost. */
export class ExpressionBudget {
  #steps = maxSteps;

  /** Whether all of a text matches. @param expression without a problem. */
  matches(expression: string, text: string): boolean {
    const program = compileRe2(expression);
    this.#steps -= (text.length + 1) * program.programSize();
    return this.#steps >= 0 && program.matcher(text).matches();
  }
}
