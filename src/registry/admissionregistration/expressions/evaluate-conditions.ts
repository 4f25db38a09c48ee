/** Whether the conditions of webhooks and policies hold (apiserver `admission/plugin/webhook/matchconditions`). */
import type { MatchCondition } from '../../../objects/types/admissionregistration.generated.ts';
import type { AdmissionInput } from './input.ts';
import { admissionBindings, admissionVariables, authorizerVariables, compileExpression } from './scope.ts';
import type { Program } from '../../../cel/program.ts';
import { boolType } from '../../../cel/types.ts';
import type { Value } from '../../../cel/values.ts';

/** Units of cost for all conditions of a webhook (`apiserver/pkg/apis/cel/config.go`). */
const conditionsBudget = 2_500_000;

/**
 * Whether all conditions of a webhook hold. A false condition decides; otherwise evaluation errors are returned as
 * text.
 */
export function matchConditions(
  conditions: readonly MatchCondition[],
  input: AdmissionInput,
): boolean | string {
  const compiled = conditions.map(({ expression }) => ({
    expression,
    program: compileCondition(expression.trim()),
  }));
  return conditionsHold(compiled, admissionBindings(input));
}

/** A compiled condition, or the error of its compilation. */
export interface CompiledCondition {
  readonly expression: string;
  readonly program: Program | string;
}

/** Whether all conditions hold for the values of their variables; see `matchConditions`. */
export function conditionsHold(
  conditions: readonly CompiledCondition[],
  bindings: ReadonlyMap<string, Value>,
): boolean | string {
  let left = conditionsBudget;
  const failures: string[] = [];
  for (const { expression, program } of conditions) {
    if (typeof program === 'string') {
      failures.push(program);
      continue;
    }
    const { value, error, burden } = program.evaluate(bindings, left);
    left -= burden;
    if (error !== undefined) failures.push(`expression '${expression}' resulted in error: ${error.message}`);
    else if (value !== true) return false;
  }
  if (failures.length === 0) return true;
  return failures.length === 1 ? (failures[0] ?? '') : `[${failures.join(', ')}]`;
}

const variables = new Map([...admissionVariables, ...authorizerVariables]);
const compiled = new Map<string, Program | string>();
const maxCompiled = 500;

/** The condition of a webhook, or the error of its compilation. */
export function compileCondition(source: string): Program | string {
  const known = compiled.get(source);
  if (known !== undefined) return known;
  const made = compileExpression(source, variables, [boolType]);
  if (compiled.size === maxCompiled) compiled.clear();
  compiled.set(source, made);
  return made;
}
