/**
 * The decision of a ValidatingAdmissionPolicy about a write (apiserver
 * `admission/plugin/policy/validating/validator.go`).
 */
import type {
  ValidatingAdmissionPolicySpec,
  Validation,
} from '../../../objects/types/admissionregistration.generated.ts';
import type { Program } from '../../../cel/program.ts';
import { boolType, dynType, nullType, stringType } from '../../../cel/types.ts';
import type { Value } from '../../../cel/values.ts';
import { pushAll } from '../../../objects/lists.ts';
import { conditionsHold } from '../expressions/evaluate-conditions.ts';
import { bindPolicy, perCallLimit, policyBudget, policyScope, type PolicyScope } from './compile.ts';
import type { PolicyInput } from '../expressions/input.ts';

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
export function* judgePolicy(
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
