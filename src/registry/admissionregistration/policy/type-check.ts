import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import * as types from '../../../cel/types.ts';
import type { CelType } from '../../../cel/types.ts';
import { declType } from '../../apiextensions/rules/decl-type.ts';
import type {
  ExpressionWarning,
  ValidatingAdmissionPolicySpec,
} from '../../../objects/types/admissionregistration.generated.ts';
import { CompileError, Program } from '../../../cel/program.ts';
import { admissionVariables, authorizerVariables, namespaceType } from '../expressions.ts';

/**
 * - CEL types of kinds from a server's OpenAPI document (`apiserver/pkg/cel/openapi/resolver`).
 * - Type errors of expressions for the kinds that they match (apiserver
 *   `admission/plugin/policy/validating/typechecking.go`).
 */

const reference = '#/components/schemas/';
/** Formats without a type of their own: IntOrString, Quantity. */
const unions: ReadonlyMap<string, JSONSchemaProps> = new Map<string, JSONSchemaProps>([
  ['io.k8s.apimachinery.pkg.util.intstr.IntOrString', { 'x-kubernetes-int-or-string': true }],
  ['io.k8s.apimachinery.pkg.api.resource.Quantity', { type: 'string' }],
]);

/**
 * The type of a kind; undefined when it has none that expressions can use.
 *
 * @param schemas `components.schemas` of an OpenAPI v3 document.
 * @param name the name of the kind's schema in it.
 */
function openApiType(schemas: JsonRecord, name: string, kind: string): CelType | undefined {
  const schema = named(schemas, name, []);
  return declType(schema, false, kind);
}

/** @param within the enclosing schemas: recursion ends at a schema that contains itself. */
function named(schemas: JsonRecord, name: string, within: readonly string[]): JSONSchemaProps {
  const union = unions.get(name);
  if (union !== undefined) return union;
  const schema = schemas[name];
  if (within.includes(name) || !isRecord(schema)) return { type: 'object' };
  return resolved(schemas, schema, [...within, name]);
}

function resolved(schemas: JsonRecord, schema: JsonRecord, within: readonly string[]): JSONSchemaProps {
  const part = (value: unknown): JSONSchemaProps => (isRecord(value) ? resolved(schemas, value, within) : {});
  const { $ref: to, allOf, type, format, properties, items, additionalProperties } = schema;
  if (typeof to === 'string') return named(schemas, to.slice(reference.length), within);
  // A reference with a description or a default beside it.
  if (type === undefined && Array.isArray(allOf) && allOf.length === 1) return part(allOf[0]);
  return {
    ...(typeof type === 'string' ? { type } : {}),
    ...(typeof format === 'string' ? { format } : {}),
    ...(schema['x-kubernetes-int-or-string'] === true ? { 'x-kubernetes-int-or-string': true } : {}),
    ...(schema['x-kubernetes-embedded-resource'] === true ? { 'x-kubernetes-embedded-resource': true } : {}),
    ...(isRecord(items) ? { items: part(items) } : {}),
    ...(isRecord(additionalProperties) ? { additionalProperties: part(additionalProperties) } : {}),
    ...(isRecord(properties)
      ? {
          properties: Object.fromEntries(
            Object.entries(properties).map(([key, value]) => [key, part(value)]),
          ),
        }
      : {}),
  };
}

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
