/** What a ValidatingAdmissionPolicy says of a write (apiserver `admission/plugin/policy/validating/validator.go`). */
import { type AdmissionInput, admissionVariables } from '../admission-variables.ts';
import { ruleEngine } from '../cel/on-demand.ts';
import type { Program } from '../cel/program.ts';
import * as types from '../cel/types.ts';
import type { CelType } from '../cel/types.ts';
import { EvaluationError, type MapValue, type Value } from '../cel/values.ts';
import { matchConditions } from '../webhookconfiguration/match-conditions.ts';
import type { PolicySpec, Validation } from './policy.ts';

/** Units of cost for one expression, and for all of a policy (`apiserver/pkg/apis/cel/config.go`). */
const perCallLimit = 1_000_000;
const policyBudget = 10_000_000;
const maxMessage = 5 * 1024;

/** What a policy refuses. */
export interface Refusal {
  readonly message: string;
  /** A reason of a Status; "" for the usual one. */
  readonly reason: string;
}

/** What a policy sees beyond the write. */
export interface PolicyInput extends AdmissionInput {
  /** The object that `paramRef` names; null without one. */
  readonly params: unknown;
  /** The Namespace of the request; null for what is in none. */
  readonly namespaceObject: unknown;
}

interface CompiledPolicy {
  readonly variables: readonly (readonly [name: string, program: Program | string])[];
  readonly validations: readonly CompiledValidation[];
}

interface CompiledValidation {
  readonly validation: Validation;
  /** A text says why there is none. */
  readonly program: Program | string;
  readonly message: Program | string | undefined;
}

const compiled = new WeakMap<PolicySpec, CompiledPolicy>();

/** All expressions of a policy, compiled once. The engine must be loaded. */
export function compilePolicy(spec: PolicySpec): CompiledPolicy {
  const known = compiled.get(spec);
  if (known !== undefined) return known;
  const scope = new Map<string, CelType>([
    ...admissionVariables,
    ['params', types.dynType],
    ['namespaceObject', types.dynType],
  ]);
  const fields = new Map<string, CelType>();
  const variables = (spec.variables ?? []).map(({ name = '', expression = '' }) => {
    scope.set('variables', { kind: 'object', name: 'kubernetes.variables', fields: new Map(fields) });
    const program = compile(expression, scope);
    fields.set(name, typeof program === 'string' ? types.dynType : program.type);
    return [name, program] as const;
  });
  scope.set('variables', { kind: 'object', name: 'kubernetes.variables', fields });
  const validations = (spec.validations ?? []).map((validation) => {
    const { expression = '', messageExpression = '' } = validation;
    return {
      validation,
      program: compile(expression, scope, 'bool'),
      message: messageExpression === '' ? undefined : compile(messageExpression, scope, 'string'),
    };
  });
  const made = { variables, validations };
  compiled.set(spec, made);
  return made;
}

function compile(source: string, scope: ReadonlyMap<string, CelType>, wanted?: string): Program | string {
  const { Program: Engine, CompileError } = ruleEngine();
  try {
    const program = new Engine(source.trim(), scope);
    if (wanted === undefined || program.resultType === wanted) return program;
    return `must evaluate to ${wanted} but got ${program.resultType}`;
  } catch (error) {
    if (error instanceof CompileError) return error.fault;
    throw error;
  }
}

/**
 * What the policy refuses of a write; nothing when all holds or its conditions say that it is not meant. What cannot
 * be evaluated is refused, unless `failurePolicy` ignores that. The engine must be loaded.
 */
export function judgePolicy(spec: PolicySpec, input: PolicyInput): Refusal[] {
  const ignores = spec.failurePolicy === 'Ignore';
  const meant = matchConditions(spec.matchConditions ?? [], input);
  if (meant === false) return [];
  if (typeof meant === 'string') return ignores ? [] : [{ message: meant, reason: '' }];
  const { variables, validations } = compilePolicy(spec);
  const bindings = bind(input, variables);
  let left = policyBudget;
  const refusals: Refusal[] = [];
  for (const compiledOne of validations) {
    const { validation, program } = compiledOne;
    const { expression = '', reason = '' } = validation;
    const fail = (why: string) => {
      if (!ignores)
        refusals.push({ message: `expression '${expression}' resulted in error: ${why}`, reason: '' });
    };
    if (typeof program === 'string') {
      fail(program);
      continue;
    }
    const { value, error, cost } = program.evaluate(bindings, Math.min(perCallLimit, left));
    left -= cost;
    if (error !== undefined) fail(error.message);
    else if (value !== true) refusals.push({ message: messageOf(compiledOne, bindings, left), reason });
  }
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
  return given === '' ? `failed expression: ${(validation.expression ?? '').trim()}` : given;
}

function bind(input: PolicyInput, variables: CompiledPolicy['variables']): ReadonlyMap<string, Value> {
  const { fromJson } = ruleEngine();
  const bindings = new Map<string, Value>([
    ['object', fromJson(input.object)],
    ['oldObject', fromJson(input.oldObject)],
    ['request', fromJson(input.request)],
    ['params', fromJson(input.params)],
    ['namespaceObject', fromJson(input.namespaceObject)],
  ]);
  bindings.set('variables', new LazyVariables(new Map(variables), bindings));
  return bindings;
}

/** The variables of a policy: each is evaluated when it is first read, and once. */
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
