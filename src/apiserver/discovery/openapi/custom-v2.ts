import { isRecord, isStringList, type JsonRecord } from '../../../objects/json.ts';
import { publishedSchema } from './custom-component.ts';

const groupVersionKind = 'x-kubernetes-group-version-kind';
const selectableFields = 'x-kubernetes-selectable-fields';
const preservesUnknown = 'x-kubernetes-preserve-unknown-fields';

/**
 * The component of a custom resource in OpenAPI v2: without properties where it preserves unknown fields, since kubectl
 * refuses fields that are not listed (apiextensions-apiserver `pkg/controller/openapi/builder`).
 */
export function customComponentV2(component: JsonRecord): JsonRecord {
  if (component[preservesUnknown] !== true) return publishedSchema(withoutV3(component, 0), true);
  const { [groupVersionKind]: kind, [selectableFields]: fields } = component;
  return {
    type: 'object',
    [groupVersionKind]: kind,
    ...(fields === undefined ? {} : { [selectableFields]: fields }),
  };
}

/** Keywords that v2 lacks, and those that are added to the result below. */
const rewritten: ReadonlySet<string> = new Set([
  ...['allOf', 'anyOf', 'oneOf', 'not', 'nullable', 'type', 'items', 'properties', 'required'],
]);

/** Deeper schemas are empty. */
const maxDepth = 100;

/**
 * A structural schema without features that v2 lacks or that kubectl cannot parse (apiextensions-apiserver
 * `pkg/controller/openapi/v2`, `ToStructuralOpenAPIV2`).
 */
function withoutV3(schema: unknown, depth: number): JsonRecord {
  if (!isRecord(schema) || depth > maxDepth) return {};
  if (isReference(schema)) return schema;
  const { nullable, type, items, properties, additionalProperties, required } = schema;
  const preserves = schema[preservesUnknown] === true;
  const open = nullable === true || preserves;
  const typeless =
    nullable === true ||
    (type === 'array' && (open || items === undefined)) ||
    (type === 'object' && preserves);
  const result = Object.fromEntries(Object.entries(schema).filter(([keyword]) => !rewritten.has(keyword)));
  if (type !== undefined && !typeless) result['type'] = type;
  if (!open && items !== undefined) result['items'] = withoutV3(items, depth + 1);
  if (!open && isRecord(properties)) {
    result['properties'] = Object.fromEntries(
      Object.entries(properties).map(([name, property]) => [name, withoutV3(property, depth + 1)]),
    );
  }
  if (isRecord(additionalProperties))
    result['additionalProperties'] = withoutV3(additionalProperties, depth + 1);
  // Nullable members are not required in v2.
  const isNullableMember = (name: string): boolean =>
    !open && isRecord(properties) && isNullable(properties[name]);
  const needed =
    isStringList(required) && !isNullable(additionalProperties)
      ? required.filter((name) => !isNullableMember(name))
      : [];
  if (needed.length > 0) result['required'] = needed;
  return result;
}

function isNullable(schema: unknown): boolean {
  return isRecord(schema) && schema['nullable'] === true;
}

/** True for the `metadata` of the component; schemas of definitions have no references. */
function isReference({ allOf }: JsonRecord): boolean {
  const only: unknown = Array.isArray(allOf) ? allOf[0] : undefined;
  return isRecord(only) && only['$ref'] !== undefined;
}
