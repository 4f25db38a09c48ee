/** JSONSchemaProps of apiextensions.k8s.io/v1, as decoded from a CustomResourceDefinition. */
export interface JsonSchema {
  readonly type?: string;
  readonly format?: string;
  readonly default?: unknown;
  readonly nullable?: boolean;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema | readonly JsonSchema[];
  readonly required?: readonly string[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly allOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly not?: JsonSchema;
  readonly $ref?: string;
  readonly id?: string;
  readonly patternProperties?: object;
  readonly definitions?: object;
  readonly dependencies?: object;
  readonly additionalItems?: unknown;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-embedded-resource'?: boolean;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: string;
  readonly 'x-kubernetes-validations'?: readonly ValidationRule[];
}

/** A rule of a schema in CEL (apiextensions `ValidationRule`). */
export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
  /** `oldSelf` is an optional, and the rule is evaluated on create as well. */
  readonly optionalOldSelf?: boolean;
}

/** The schema of list items; undefined when there is none, or several (which no structural schema has). */
export function itemsOf(schema: JsonSchema): JsonSchema | undefined {
  const { items } = schema;
  return items === undefined || isSeveral(items) ? undefined : items;
}

function isSeveral(items: JsonSchema | readonly JsonSchema[]): items is readonly JsonSchema[] {
  return Array.isArray(items);
}

/** The schema of members that `properties` does not name; undefined when there is none. */
export function valuesOf(schema: JsonSchema): JsonSchema | undefined {
  const { additionalProperties } = schema;
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}
