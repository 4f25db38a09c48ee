/** The changes of a MutatingAdmissionPolicy (apiserver `admission/plugin/policy/mutating`, KEP 3962). */
import type {
  MutatingAdmissionPolicySpec,
  Mutation,
} from '../../../objects/types/admissionregistration.generated.ts';
import type { JsonRecord } from '../../../objects/json.ts';
import { toJson } from '../../../cel/json-values.ts';
import { jsonPatchType, patchStructs } from '../../../cel/environment.ts';
import type { Program } from '../../../cel/program.ts';
import { type CelType, listType } from '../../../cel/types.ts';
import { EvaluationError, isList, isMap, listItems, StructValue, type Value } from '../../../cel/values.ts';
import { conditionsHold, type PolicyInput } from '../expressions.ts';
import { bindPolicy, policyBudget, policyScope, perCallLimit, type PolicyScope } from './evaluate.ts';

/** The result of one mutation: fields to merge into the object, or operations on it. */
export type Patch =
  | { readonly type: 'ApplyConfiguration'; readonly config: JsonRecord }
  | { readonly type: 'JSONPatch'; readonly operations: readonly JsonRecord[] };

interface CompiledMutations extends Pick<PolicyScope, 'variables' | 'conditions'> {
  /** Undefined where a mutation has no expression; a text is the reason why there is no program. */
  readonly mutations: readonly (Program | string | undefined)[];
}

const compiled = new WeakMap<MutatingAdmissionPolicySpec, CompiledMutations>();
const patchTypes: ReadonlyMap<string, CelType> = new Map<string, CelType>([
  ['JSONPatch', listType(jsonPatchType)],
  ...[patchStructs('Object')].flatMap((type): [string, CelType][] =>
    type === undefined ? [] : [['ApplyConfiguration', type]],
  ),
]);

/** The expression of a mutation; undefined when it has none. */
function expressionOf({ patchType, applyConfiguration, jsonPatch }: Mutation): string | undefined {
  return patchType === 'JSONPatch' ? jsonPatch?.expression : applyConfiguration?.expression;
}

/** All expressions of a policy, compiled once. */
export function compileMutations(spec: MutatingAdmissionPolicySpec): CompiledMutations {
  const known = compiled.get(spec);
  if (known !== undefined) return known;
  const { variables, conditions, compile } = policyScope(spec);
  const mutations = (spec.mutations ?? []).map((mutation) => {
    const source = expressionOf(mutation);
    const wanted = patchTypes.get(mutation.patchType);
    return source === undefined || wanted === undefined ? undefined : compile(source, [wanted], 'patch');
  });
  const made = { variables, conditions, mutations };
  compiled.set(spec, made);
  return made;
}

/** Whether the conditions of a policy hold; a text is the evaluation error. */
export function evaluateMutations(spec: MutatingAdmissionPolicySpec, input: PolicyInput): boolean | string {
  const { conditions, variables } = compileMutations(spec);
  return conditionsHold(conditions, bindPolicy(input, variables));
}

/** The patch of the mutation with the index; a text is the reason why there is none. */
export function patchOf(
  spec: MutatingAdmissionPolicySpec,
  index: number,
  input: PolicyInput,
): Patch | string {
  const { variables, mutations } = compileMutations(spec);
  const program = mutations[index];
  const mutation = spec.mutations?.[index];
  if (program === undefined || mutation === undefined) return 'the mutation has no expression';
  if (typeof program === 'string') return program;
  const { value, error } = program.evaluate(
    bindPolicy(input, variables),
    Math.min(perCallLimit, policyBudget),
  );
  if (value === undefined) {
    return `expression '${expressionOf(mutation) ?? ''}' resulted in error: ${error?.message ?? 'no value'}`;
  }
  try {
    return mutation.patchType === 'JSONPatch' ? operationsOf(value) : configOf(value);
  } catch (failure) {
    if (failure instanceof EvaluationError) return failure.message;
    throw failure;
  }
}

function configOf(value: Value): Patch {
  checkTypeNames(value, ['Object']);
  const config = toJson(value);
  if (typeof config !== 'object' || config === null || Array.isArray(config)) {
    throw new EvaluationError('unsupported return type from ApplyConfiguration expression');
  }
  return { type: 'ApplyConfiguration', config: { ...config } };
}

function operationsOf(value: Value): Patch {
  if (!isList(value)) {
    throw new EvaluationError('type mismatch: JSONPatchType.expression should evaluate to array');
  }
  const operations = listItems(value).map((item) => {
    const member = (name: string) => (isMap(item) ? item.find(name) : undefined);
    const from = member('from') ?? '';
    const content = member('value');
    if (content instanceof StructValue) checkTypeNames(content, content.name.split('.'));
    return {
      op: member('op') ?? '',
      path: member('path') ?? '',
      ...(from === '' ? {} : { from }),
      ...(content === undefined ? {} : { value: toJson(content) }),
    };
  });
  return { type: 'JSONPatch', operations };
}

/** Checks that a nested object has the type of its field: `Object.spec` in the field `spec` of `Object`. */
function checkTypeNames(value: Value, path: readonly string[]): void {
  if (isList(value)) {
    for (const item of listItems(value)) checkTypeNames(item, path);
    return;
  }
  if (!(value instanceof StructValue)) return;
  const expected = path.join('.');
  if (value.name !== expected) {
    const why = `unexpected type name "${value.name}", expected "${expected}"`;
    throw new EvaluationError(`type mismatch: ${why}, which matches field name path from root Object type`);
  }
  for (const key of value.keys()) {
    checkTypeNames(value.find(key) ?? null, [...path, typeof key === 'string' ? key : '']);
  }
}
