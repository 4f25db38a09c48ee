import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { itemSchemaOf, valuesOf } from '../schema/json-schema.ts';

const rulesWithin = new WeakMap<JSONSchemaProps, boolean>();
/** Deeper schemas are refused. */
const maxDepth = 100;

/** True when the schema or a part of it has rules. */
export function hasRules(schema: JSONSchemaProps, depth = 0): boolean {
  if (depth > maxDepth) return false;
  const known = rulesWithin.get(schema);
  if (known !== undefined) return known;
  const parts = [itemSchemaOf(schema), valuesOf(schema), ...Object.values(schema.properties ?? {})];
  const own = (schema['x-kubernetes-validations'] ?? []).length > 0;
  const found = own || parts.some((part) => part !== undefined && hasRules(part, depth + 1));
  rulesWithin.set(schema, found);
  return found;
}
