/** `matchConditions` of webhooks: CEL over the request (apiserver `admission/plugin/webhook/matchconditions`). */
import type { Program } from '../cel/program.ts';
import * as types from '../cel/types.ts';
import type { CelType } from '../cel/types.ts';
import { ruleEngine } from '../cel/on-demand.ts';
import { duplicate, type FieldError, invalid, required, tooMany } from '../field-errors.ts';
import { isQualifiedName } from '../names.ts';

/** Admissionregistration/v1 MatchCondition. */
export interface MatchCondition {
  readonly name?: string;
  readonly expression?: string;
}

/** What conditions see of a write. */
export interface ConditionInput {
  readonly object: unknown;
  readonly oldObject: unknown;
  /** The AdmissionRequest without its objects. */
  readonly request: unknown;
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
  input: ConditionInput,
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
    const program = new Engine(source, variables);
    if (program.resultType !== 'bool') return `must evaluate to bool but got ${program.resultType}`;
    if (compiled.size === maxCompiled) compiled.clear();
    compiled.set(source, program);
    return program;
  } catch (error) {
    if (error instanceof CompileError) return `compilation failed: ${error.message}`;
    throw error;
  }
}

function object(name: string, fields: Readonly<Record<string, CelType>>): CelType {
  return { kind: 'object', name: `kubernetes.${name}`, fields: new Map(Object.entries(fields)) };
}

const text = types.stringType;
const texts = types.listType(text);
const kind = object('GroupVersionKind', { group: text, version: text, kind: text });
const resource = object('GroupVersionResource', { group: text, version: text, resource: text });
const userInfo = object('UserInfo', {
  username: text,
  uid: text,
  groups: texts,
  extra: types.mapType(text, texts),
});
const variables: ReadonlyMap<string, CelType> = new Map([
  ['object', types.dynType],
  ['oldObject', types.dynType],
  [
    'request',
    object('AdmissionRequest', {
      kind,
      resource,
      subResource: text,
      requestKind: kind,
      requestResource: resource,
      requestSubResource: text,
      name: text,
      namespace: text,
      operation: text,
      userInfo,
      dryRun: types.boolType,
      options: types.dynType,
    }),
  ],
]);
