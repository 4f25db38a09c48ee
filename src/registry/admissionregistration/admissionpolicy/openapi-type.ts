/** CEL types of kinds from a server's OpenAPI document (`apiserver/pkg/cel/openapi/resolver`). */
import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import type { CelType } from '../../../cel/types.ts';
import { declType } from '../../apiextensions/rules/decl-type.ts';

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
export function openApiType(schemas: JsonRecord, name: string, kind: string): CelType | undefined {
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
