/** `matchConditions` of webhooks: CEL over the request (apiserver `admission/plugin/webhook/matchconditions`). */
import { type AdmissionInput, admissionVariables } from '../admission-variables.ts';
import type { Program } from '../cel/program.ts';
import { ruleEngine } from '../cel/on-demand.ts';
import { duplicate, type FieldError, invalid, required, tooMany } from '../field-errors.ts';
import { isQualifiedName } from '../names.ts';

/** Admissionregistration/v1 MatchCondition. */
export interface MatchCondition {
  readonly name?: string;
  readonly expression?: string;
}

const maxConditions = 64;
/** Units of cost for all conditions of a webhook (`apiserver/pkg/apis/cel/config.go`). */
const conditionsBudget = 2_500_000;

/** The conditions that are broken, those that do not compile among them. The engine must be loaded. */
export function validateMatchConditions(conditions: readonly MatchCondition[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (conditions.length > maxConditions) errors.push(tooMany(path, conditions.length, maxConditions));
  const names = new Set<string>();
  conditions.forEach(({ name = '', expression = '' }, i) => {
    const at = `${path}[${i}]`;
    const source = expression.trim();
    if (source === '') errors.push(required(`${at}.expression`));
    else {
      const fault = compile(source);
      if (typeof fault === 'string') errors.push(invalid(`${at}.expression`, expression, fault));
    }
    if (name === '') errors.push(required(`${at}.name`));
    else {
      errors.push(...isQualifiedName(name).map((fault) => invalid(`${at}.name`, name, fault)));
      if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
    }
    names.add(name);
  });
  return errors;
}

/**
 * Whether all conditions hold. One that is false decides; else one that fails is told, as text. The engine must be
 * loaded.
 */
export function matchConditions(
  conditions: readonly MatchCondition[],
  input: AdmissionInput,
): boolean | string {
  const { fromJson } = ruleEngine();
  const bindings = new Map([
    ['object', fromJson(input.object)],
    ['oldObject', fromJson(input.oldObject)],
    ['request', fromJson(input.request)],
  ]);
  let left = conditionsBudget;
  const failures: string[] = [];
  for (const { expression = '' } of conditions) {
    const program = compile(expression.trim());
    if (typeof program === 'string') {
      failures.push(program);
      continue;
    }
    const { value, error, cost } = program.evaluate(bindings, left);
    left -= cost;
    if (error !== undefined) failures.push(`expression '${expression}' resulted in error: ${error.message}`);
    else if (value !== true) return false;
  }
  if (failures.length === 0) return true;
  return failures.length === 1 ? (failures[0] ?? '') : `[${failures.join(', ')}]`;
}

const compiled = new Map<string, Program>();
const maxCompiled = 500;

function compile(source: string): Program | string {
  const known = compiled.get(source);
  if (known !== undefined) return known;
  const { Program: Engine, CompileError } = ruleEngine();
  try {
    const program = new Engine(source, admissionVariables);
    if (program.resultType !== 'bool') return `must evaluate to bool but got ${program.resultType}`;
    if (compiled.size === maxCompiled) compiled.clear();
    compiled.set(source, program);
    return program;
  } catch (error) {
    if (error instanceof CompileError) return error.fault;
    throw error;
  }
}
