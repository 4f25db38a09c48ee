import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';

/** The schema of list items; undefined when there is none, or several (which no structural schema has). */
export function itemSchemaOf(schema: JSONSchemaProps): JSONSchemaProps | undefined {
  const { items } = schema;
  return items === undefined || isSeveral(items) ? undefined : items;
}

function isSeveral(items: JSONSchemaProps | readonly JSONSchemaProps[]): items is readonly JSONSchemaProps[] {
  return Array.isArray(items);
}

/** The schema of members that `properties` does not name; undefined when there is none. */
export function valuesOf(schema: JSONSchemaProps): JSONSchemaProps | undefined {
  const { additionalProperties } = schema;
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}
