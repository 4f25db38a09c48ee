/** The compiled expressions of a policy with their variables (apiserver `admission/plugin/cel/composition.go`). */
import type { Purpose } from '../../../cel/environment.ts';
import { fromJson } from '../../../cel/json-values.ts';
import type { Program } from '../../../cel/program.ts';
import * as types from '../../../cel/types.ts';
import type { CelType } from '../../../cel/types.ts';
import { EvaluationError, type MapValue, type Value } from '../../../cel/values.ts';
import type { CompiledCondition } from '../expressions/evaluate-conditions.ts';
import type { PolicyInput } from '../expressions/input.ts';
import type { CommonPolicySpec } from './policy.ts';
import {
  admissionBindings,
  admissionVariables,
  authorizerVariables,
  compileExpression,
  namespaceType,
} from '../expressions/scope.ts';

/** Units of cost for one expression, and for all of a policy (`apiserver/pkg/apis/cel/config.go`). */
export const perCallLimit = 1_000_000;
export const policyBudget = 10_000_000;

/** The variables of a policy, by name; a text is the reason why there are none. */
export type PolicyVariables = readonly (readonly [name: string, program: Program | string])[];

/** The part that the expressions of one policy share. */
export interface PolicyScope {
  readonly variables: PolicyVariables;
  readonly conditions: readonly CompiledCondition[];
  /** An expression, or the error of its compilation. */
  readonly compile: (source: string, wanted: readonly CelType[], purpose?: Purpose) => Program | string;
  /** An expression without the authorizer: messages and audit annotations. */
  readonly compileText: (source: string, wanted: readonly CelType[]) => Program | string;
}

/** Compiles what the expressions of a policy share: its variables, each with those before it, and its conditions. */
export function policyScope(spec: CommonPolicySpec): PolicyScope {
  const base = new Map<string, CelType>([
    ...admissionVariables,
    ['namespaceObject', namespaceType],
    ...(spec.paramKind === undefined ? [] : [['params', types.dynType] as const]),
  ]);
  const whole = new Map([...base, ...authorizerVariables]);
  const fields = new Map<string, CelType>();
  // It gets a field with each variable (`CompositionEnv.AddField`).
  const named: CelType = { kind: 'object', name: 'kubernetes.variables', fields };
  for (const scope of [base, whole]) scope.set('variables', named);
  const variables = (spec.variables ?? []).map(({ name, expression }) => {
    const program = compileExpression(expression, whole);
    fields.set(name, typeof program === 'string' ? types.dynType : program.type);
    return [name, program] as const;
  });
  const compile = (source: string, wanted: readonly CelType[], purpose?: Purpose) =>
    compileExpression(source, whole, wanted, purpose);
  return {
    variables,
    conditions: (spec.matchConditions ?? []).map(({ expression }) => ({
      expression,
      program: compile(expression, [types.boolType]),
    })),
    compile,
    compileText: (source, wanted) => compileExpression(source, base, wanted),
  };
}

/** The values of the names in a policy's expressions. */
export function bindPolicy(input: PolicyInput, variables: PolicyVariables): ReadonlyMap<string, Value> {
  const bindings = admissionBindings(input);
  bindings.set('params', fromJson(input.params));
  bindings.set('namespaceObject', fromJson(input.namespaceObject));
  bindings.set('variables', new LazyVariables(new Map(variables), bindings));
  return bindings;
}

/** The variables of a policy: each is evaluated on its first use, once. */
class LazyVariables implements MapValue {
  readonly kind = 'map';
  readonly #programs: ReadonlyMap<string, Program | string>;
  readonly #bindings: ReadonlyMap<string, Value>;
  readonly #known = new Map<string, Value>();

  constructor(programs: ReadonlyMap<string, Program | string>, bindings: ReadonlyMap<string, Value>) {
    this.#programs = programs;
    this.#bindings = bindings;
  }

  get size(): number {
    return this.#programs.size;
  }

  find(key: Value): Value | undefined {
    if (typeof key !== 'string') return undefined;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const program = this.#programs.get(key);
    if (program === undefined) return undefined;
    const fail = (why: string) =>
      new EvaluationError(`composited variable "${key}" fails to evaluate: ${why}`);
    if (typeof program === 'string') throw fail(program);
    const { value, error } = program.evaluate(this.#bindings, perCallLimit);
    if (value === undefined) throw fail(error?.message ?? 'no value');
    this.#known.set(key, value);
    return value;
  }

  keys(): readonly Value[] {
    return [...this.#programs.keys()];
  }

  sameAs(): undefined {
    return undefined;
  }
}
