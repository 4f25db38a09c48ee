import type {
  MutatingAdmissionPolicySpec,
  ValidatingAdmissionPolicyBinding,
  ValidatingAdmissionPolicySpec,
  Validation,
} from '../../../objects/types/admissionregistration.generated.ts';
import type { Purpose } from '../../../cel/environment.ts';
import { fromJson } from '../../../cel/json-values.ts';
import type { Program } from '../../../cel/program.ts';
import * as types from '../../../cel/types.ts';
import { type CelType, boolType, dynType, nullType, stringType } from '../../../cel/types.ts';
import { EvaluationError, type MapValue, type Value } from '../../../cel/values.ts';
import {
  type CompiledCondition,
  type PolicyInput,
  admissionBindings,
  admissionVariables,
  authorizerVariables,
  compileExpression,
  namespaceType,
  conditionsHold,
} from '../expressions.ts';
import { pushAll } from '../../../objects/lists.ts';

/**
 * - The compiled expressions of a policy with their variables (apiserver `admission/plugin/cel/composition.go`).
 * - The decision of a ValidatingAdmissionPolicy about a write (apiserver
 *   `admission/plugin/policy/validating/validator.go`).
 */

/** The members of policies of both kinds. */
export type CommonPolicySpec = Pick<
  ValidatingAdmissionPolicySpec & MutatingAdmissionPolicySpec,
  'paramKind' | 'matchConstraints' | 'variables' | 'matchConditions' | 'failurePolicy'
>;

/** A ValidatingAdmissionPolicyBinding, or a MutatingAdmissionPolicyBinding, which has no actions. */
export type PolicyBinding = ValidatingAdmissionPolicyBinding;

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

const maxMessage = 5 * 1024;

/** A refusal of a policy. */
export interface PolicyRefusal {
  readonly message: string;
  /** A reason of a Status; "" for the default. */
  readonly reason: string;
  /** Denied under all bindings: an audit annotation that cannot be evaluated. */
  readonly always?: boolean;
}

interface CompiledPolicy extends Pick<PolicyScope, 'variables' | 'conditions'> {
  readonly validations: readonly CompiledValidation[];
  readonly annotations: readonly { readonly source: string; readonly program: Program | string }[];
}

interface CompiledValidation {
  readonly validation: Validation;
  /** A text: the reason why there is no value. */
  readonly program: Program | string;
  readonly message: Program | string | undefined;
}

const compiled = new WeakMap<ValidatingAdmissionPolicySpec, CompiledPolicy>();

/** All expressions of a policy, compiled once. */
export function compilePolicy(spec: ValidatingAdmissionPolicySpec): CompiledPolicy {
  const known = compiled.get(spec);
  if (known !== undefined) return known;
  const { variables, conditions, compile, compileText } = policyScope(spec);
  const validations = (spec.validations ?? []).map((validation) => {
    const { expression, messageExpression = '' } = validation;
    return {
      validation,
      program: compile(expression, [boolType]),
      message: messageExpression === '' ? undefined : compileText(messageExpression, [stringType]),
    };
  });
  const annotations = (spec.auditAnnotations ?? []).map(({ valueExpression: source }) => ({
    source,
    program: compileText(source, [stringType, nullType, dynType]),
  }));
  const made = { variables, conditions, validations, annotations };
  compiled.set(spec, made);
  return made;
}

/**
 * The refusals of a policy for a write; none when all validations hold or its conditions do not match. Evaluation
 * errors are refusals, unless `failurePolicy` ignores them. Yields between validations.
 */
export function* evaluatePolicy(
  spec: ValidatingAdmissionPolicySpec,
  input: PolicyInput,
): Generator<undefined, PolicyRefusal[], undefined> {
  const ignores = spec.failurePolicy === 'Ignore';
  const { variables, conditions, validations, annotations } = compilePolicy(spec);
  const bindings = bindPolicy(input, variables);
  const meant = conditionsHold(conditions, bindings);
  if (meant === false) return [];
  if (typeof meant === 'string') return ignores ? [] : [{ message: meant, reason: '' }];
  let left = policyBudget;
  const refusals: PolicyRefusal[] = [];
  for (const compiledOne of validations) {
    const { validation, program } = compiledOne;
    const { expression, reason = '' } = validation;
    yield;
    const fail = (why: string) => {
      if (!ignores)
        refusals.push({ message: `expression '${expression}' resulted in error: ${why}`, reason: '' });
    };
    if (typeof program === 'string') {
      fail(program);
      continue;
    }
    const { value, error, burden } = program.evaluate(bindings, Math.min(perCallLimit, left));
    left -= burden;
    if (error !== undefined) fail(error.message);
    else if (value !== true) refusals.push({ message: messageOf(compiledOne, bindings, left), reason });
  }
  if (ignores) return refusals;
  yield;
  pushAll(refusals, annotationFaults(annotations, bindings));
  return refusals;
}

function messageOf(
  { validation, message }: CompiledValidation,
  bindings: ReadonlyMap<string, Value>,
  costLimit: number,
): string {
  if (typeof message === 'object') {
    const { value } = message.evaluate(bindings, Math.min(perCallLimit, Math.max(costLimit, 0)));
    const text = typeof value === 'string' ? value.trim() : '';
    if (text !== '' && !text.includes('\n') && Buffer.byteLength(text) <= maxMessage) return text;
  }
  const given = (validation.message ?? '').trim();
  return given === '' ? `failed expression: ${validation.expression.trim()}` : given;
}

/** Audit annotations are dropped, as there is no audit log; but an evaluation error refuses the write. */
function annotationFaults(
  annotations: CompiledPolicy['annotations'],
  bindings: ReadonlyMap<string, Value>,
): PolicyRefusal[] {
  let left = policyBudget;
  return annotations.flatMap(({ source, program }) => {
    const refusal = (message: string): PolicyRefusal[] => [{ message, reason: '', always: true }];
    const failed = (why: string) => refusal(`expression '${source}' resulted in error: ${why}`);
    if (typeof program === 'string') return failed(program);
    const { value, error, burden } = program.evaluate(bindings, Math.min(perCallLimit, left));
    left -= burden;
    if (error !== undefined) return failed(error.message);
    if (value === null || typeof value === 'string') return [];
    const why = 'unsupported return type. Return type must be either string or null.';
    return refusal(`valueExpression '${source}' resulted in ${why}`);
  });
}
