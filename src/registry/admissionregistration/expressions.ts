import {
  type CheckAttributes,
  type CheckAccess,
  AuthorizerValue,
  authorizerType,
  resourceCheckType,
  ResourceCheckValue,
} from '../../cel/library/authorization.ts';
import type { Purpose } from '../../cel/environment.ts';
import { fromJson } from '../../cel/json-values.ts';
import { CompileError, Program } from '../../cel/program.ts';
import * as types from '../../cel/types.ts';
import { type CelType, formatType, boolType } from '../../cel/types.ts';
import type { Value } from '../../cel/values.ts';
import type { MatchCondition } from '../../objects/types/admissionregistration.generated.ts';
import { pushAll } from '../../objects/lists.ts';
import { duplicate, type FieldError, invalid, required, tooMany } from '../validation/field-errors.ts';
import { isQualifiedName } from '../../objects/names.ts';

/**
 * - The variables of admission expressions: the objects of a write and the request
 *   (`apiserver/pkg/admission/plugin/cel`).
 * - Whether the conditions of webhooks and policies hold (apiserver `admission/plugin/webhook/matchconditions`).
 * - `matchConditions` of webhooks and policies: CEL over the request.
 */

/** The write as expressions see it. */
export interface AdmissionInput {
  /** Null for a deletion. */
  readonly object: unknown;
  /** Null for a creation. */
  readonly oldObject: unknown;
  /** The AdmissionRequest without its objects. */
  readonly request: unknown;
  /** Checks the permissions of the requester. */
  readonly access: CheckAccess;
  /** The resource of the request, for `authorizer.requestResource`. */
  readonly requested: CheckAttributes;
}

/** The additional values for a policy. */
export interface PolicyInput extends AdmissionInput {
  /** The object that `paramRef` names; null without one. */
  readonly params: unknown;
  /** The Namespace of the request; null for cluster-scoped resources. */
  readonly namespaceObject: unknown;
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

/** The types of `object`, `oldObject` and `request`. */
export const admissionVariables: ReadonlyMap<string, CelType> = new Map([
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

/** The types of `authorizer` and `authorizer.requestResource`. */
export const authorizerVariables: ReadonlyMap<string, CelType> = new Map<string, CelType>([
  ['authorizer', authorizerType],
  ['authorizer.requestResource', resourceCheckType],
]);

const times = types.timestampType;
const labels = types.mapType(text, text);

/**
 * The type of `namespaceObject`: the fields of a Namespace that policies see (`admission/plugin/cel`
 * BuildNamespaceType).
 */
export const namespaceType: CelType = object('Namespace', {
  metadata: object('NamespaceMetadata', {
    name: text,
    generateName: text,
    namespace: text,
    labels,
    annotations: labels,
    UID: text,
    creationTimestamp: times,
    deletionGracePeriodSeconds: types.intType,
    deletionTimestamp: times,
    generation: types.intType,
    resourceVersion: text,
    finalizers: texts,
  }),
  spec: object('NamespaceSpec', { finalizers: texts }),
  status: object('NamespaceStatus', {
    conditions: types.listType(
      object('NamespaceCondition', {
        status: text,
        type: text,
        lastTransitionTime: times,
        message: text,
        reason: text,
      }),
    ),
    phase: text,
  }),
});

/** The values of all these variables but `namespaceObject`. */
export function admissionBindings(input: AdmissionInput): Map<string, Value> {
  return new Map<string, Value>([
    ['object', fromJson(input.object)],
    ['oldObject', fromJson(input.oldObject)],
    ['request', fromJson(input.request)],
    ['authorizer', new AuthorizerValue(input.access)],
    ['authorizer.requestResource', new ResourceCheckValue(input.access, input.requested)],
  ]);
}

/** An expression, or the error of its compilation, a wrong result type included. */
export function compileExpression(
  source: string,
  variables: ReadonlyMap<string, CelType>,
  wanted: readonly CelType[] = [],
  purpose: Purpose = 'rule',
): Program | string {
  try {
    const program = new Program(source.trim(), variables, purpose);
    const names = wanted.map(formatType);
    if (names.length === 0 || names.includes(program.resultType)) return program;
    if (names.length > 1) return `must evaluate to one of [${names.join(' ')}]`;
    return `must evaluate to ${names[0] ?? ''} but got ${program.resultType}`;
  } catch (error) {
    if (error instanceof CompileError) return error.fault;
    throw error;
  }
}

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
function compileCondition(source: string): Program | string {
  const known = compiled.get(source);
  if (known !== undefined) return known;
  const made = compileExpression(source, variables, [boolType]);
  if (compiled.size === maxCompiled) compiled.clear();
  compiled.set(source, made);
  return made;
}

const maxConditions = 64;

/**
 * The errors of conditions, compilation included.
 *
 * @param compile returns the compilation error of an expression as text; by default with the variables of webhooks.
 */
export function validateMatchConditions(
  conditions: readonly MatchCondition[],
  path: string,
  compile: (source: string) => unknown = (source) => compileCondition(source),
): FieldError[] {
  const errors: FieldError[] = [];
  if (conditions.length > maxConditions) errors.push(tooMany(path, conditions.length, maxConditions));
  const names = new Set<string>();
  conditions.forEach(({ name, expression }, i) => {
    const at = `${path}[${i}]`;
    const source = expression.trim();
    if (source === '') errors.push(required(`${at}.expression`));
    else {
      const fault = compile(source);
      if (typeof fault === 'string') errors.push(invalid(`${at}.expression`, expression, fault));
    }
    if (name === '') errors.push(required(`${at}.name`));
    else {
      pushAll(
        errors,
        isQualifiedName(name).map((fault) => invalid(`${at}.name`, name, fault)),
      );
      if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
    }
    names.add(name);
  });
  return errors;
}
