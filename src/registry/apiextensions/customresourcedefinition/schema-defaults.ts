/**
 * Defaults of structural schemas (apiextensions `schema/defaulting/validation.go`): they are valid, and have no unknown
 * fields.
 */
import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { isRecord } from '../../../objects/json.ts';
import { pushAll } from '../../../objects/lists.ts';
import { validateEmbedded } from '../schema/embedded.ts';
import { validatePart } from '../schema/validate-value.ts';
import { ValidationBudget } from '../schema/validation-budget.ts';
import { type FieldError, invalid } from '../../validation/field-errors.ts';
import { itemSchemaOf, valuesOf } from '../schema/json-schema.ts';

const maxDepth = 100;

/** The rules that defaults break, wherever they are. @throws {StatusError} 413 when that takes too long. */
export function validateSchemaDefaults(
  schema: JSONSchemaProps,
  path: string,
  depth = 0,
  budget = new ValidationBudget(),
): FieldError[] {
  if (depth > maxDepth) return [];
  // The root is a whole object.
  const whole = depth === 0 ? { ...schema, 'x-kubernetes-embedded-resource': true } : schema;
  const errors = schema.default === undefined ? [] : validateDefault(whole, `${path}.default`, budget);
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    pushAll(errors, validateSchemaDefaults(property, `${path}.properties[${name}]`, depth + 1, budget));
  }
  const items = itemSchemaOf(schema);
  if (items !== undefined) pushAll(errors, validateSchemaDefaults(items, `${path}.items`, depth + 1, budget));
  const values = valuesOf(schema);
  if (values !== undefined) {
    pushAll(errors, validateSchemaDefaults(values, `${path}.additionalProperties`, depth + 1, budget));
  }
  return errors;
}

function validateDefault(schema: JSONSchemaProps, path: string, budget: ValidationBudget): FieldError[] {
  const value = schema.default;
  const unknown = hasUnknown(schema, value) ? [invalid(path, value, 'must not have unknown fields')] : [];
  const embedded = validateEmbedded(schema, value, path);
  if (embedded.length > 0) return [...unknown, ...embedded];
  return [...unknown, ...validatePart(schema, value, path, undefined, budget)];
}

/** True where pruning would remove something. */
function hasUnknown(schema: JSONSchemaProps, value: unknown, depth = 0): boolean {
  if (depth > maxDepth) return false;
  const items = itemSchemaOf(schema);
  if (Array.isArray(value)) {
    return items !== undefined && value.some((item) => hasUnknown(items, item, depth + 1));
  }
  if (!isRecord(value)) return false;
  const { properties = {} } = schema;
  const values = valuesOf(schema);
  const keeps =
    schema['x-kubernetes-preserve-unknown-fields'] === true || schema.additionalProperties === true;
  const embedded = schema['x-kubernetes-embedded-resource'] === true;
  return Object.entries(value).some(([name, member]) => {
    const part = Object.hasOwn(properties, name) ? properties[name] : values;
    if (part !== undefined) return hasUnknown(part, member, depth + 1);
    return !keeps && !(embedded && ['apiVersion', 'kind', 'metadata'].includes(name));
  });
}
