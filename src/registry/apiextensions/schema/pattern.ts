import { RE2JS } from 're2js';
import type { ValidationBudget } from './validation-budget.ts';
import { errorMessage } from '../../../objects/error-message.ts';

/**
 * Patterns of schemas, in Go's syntax and in time linear to the text (RE2, as kube-apiserver uses it). Compiled ones are
 * remembered, the oldest forgotten first.
 */
const compiled = new Map<string, RE2JS>();
const maxCompiled = 500;

/** True when some part of the text matches. @throws {Error} for a pattern that is none. @throws {StatusError} 413 */
export function matchesPattern(pattern: string, text: string, budget: ValidationBudget): boolean {
  const program = compile(pattern);
  budget.take((text.length + 1) * program.programSize());
  // `test` makes a state of an automaton for nearly each character of some texts, which takes thrice the time.
  return program.matcher(text).find();
}

/** Why a pattern does not compile, with the text of Go's regexp; undefined when it does. */
export function patternFault(pattern: string): string | undefined {
  try {
    compile(pattern);
    return undefined;
  } catch (error) {
    return errorMessage(error);
  }
}

function compile(pattern: string): RE2JS {
  let known = compiled.get(pattern);
  if (known === undefined) {
    known = RE2JS.compile(pattern);
    if (compiled.size >= maxCompiled) {
      const [oldest] = compiled.keys();
      if (oldest !== undefined) compiled.delete(oldest);
    }
    compiled.set(pattern, known);
  }
  return known;
}
