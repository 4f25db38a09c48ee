/**
 * Type errors of expressions for the kinds that they match (apiserver
 * `admission/plugin/policy/validating/typechecking.go`).
 */
import type {
  ExpressionWarning,
  ValidatingAdmissionPolicySpec,
} from '../../../objects/types/admissionregistration.generated.ts';
import type { JsonRecord } from '../../../objects/json.ts';
import { CompileError, Program } from '../../../cel/program.ts';
import * as types from '../../../cel/types.ts';
import type { CelType } from '../../../cel/types.ts';
import { openApiType } from './openapi-type.ts';

import { admissionVariables, authorizerVariables, namespaceType } from '../expressions/scope.ts';

/** A kind with its schema among those of an OpenAPI v3 document. */
export interface CheckedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly schemas: JsonRecord;
  readonly schema: string;
}

/**
 * The errors of a policy's validations for objects of each of the kinds, syntax errors included. The result type is not
 * checked.
 *
 * @param params the kind of the parameters, when the policy has a known one.
 */
export function checkPolicyTypes(
  { validations, variables }: ValidatingAdmissionPolicySpec,
  kinds: readonly CheckedKind[],
  params: CheckedKind | undefined,
): ExpressionWarning[] {
  const paramsType = params === undefined ? undefined : typeOf(params);
  const scopes = kinds.map((kind) => ({
    kind,
    scope: scopeOf(typeOf(kind), paramsType, variables ?? []),
  }));
  const warn = (fieldRef: string, expression: string): ExpressionWarning[] => {
    const issues = scopes.flatMap(({ kind: { group, version, kind }, scope }) => {
      const issue = issueOf(expression, scope);
      return issue === undefined ? [] : [`${group}/${version}, Kind=${kind}: ${issue}\n`];
    });
    return issues.length === 0 ? [] : [{ fieldRef, warning: issues.join('\n') }];
  };
  return (validations ?? []).flatMap(({ expression = '', messageExpression = '' }, index) => {
    const path = `spec.validations[${index}]`;
    return [
      ...warn(`${path}.expression`, expression),
      ...(messageExpression === '' ? [] : warn(`${path}.messageExpression`, messageExpression)),
    ];
  });
}

function typeOf({ schemas, schema, kind }: CheckedKind): CelType {
  return openApiType(schemas, schema, kind) ?? types.dynType;
}

function scopeOf(
  object: CelType,
  params: CelType | undefined,
  variables: NonNullable<ValidatingAdmissionPolicySpec['variables']>,
): ReadonlyMap<string, CelType> {
  const scope = new Map<string, CelType>([
    ...admissionVariables,
    ...authorizerVariables,
    ['namespaceObject', namespaceType],
    ['object', object],
    ['oldObject', object],
    ...(params === undefined ? [] : [['params', params] as const]),
  ]);
  const fields = new Map<string, CelType>();
  scope.set('variables', { kind: 'object', name: 'kubernetes.variables', fields });
  for (const { name = '', expression = '' } of variables) {
    fields.set(name, compiled(expression, scope) ?? types.dynType);
  }
  return scope;
}

/** The result type of an expression; undefined when it does not compile. */
function compiled(expression: string, scope: ReadonlyMap<string, CelType>): CelType | undefined {
  try {
    return new Program(expression, scope).type;
  } catch (error) {
    if (error instanceof CompileError) return undefined;
    throw error;
  }
}

function issueOf(expression: string, scope: ReadonlyMap<string, CelType>): string | undefined {
  try {
    new Program(expression, scope);
    return undefined;
  } catch (error) {
    if (!(error instanceof CompileError)) throw error;
    // Constants are folded when a program is made; type checking makes none.
    return error.stage === 'compilation' ? error.message : undefined;
  }
}
