/** The rules of structural schemas (apiextensions `apiserver/schema/{validation,complete}.go`, KEP 20190425). */
import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { hasRules } from '../rules/has-rules.ts';
import { type FieldError, forbiddenField, invalid, required } from '../../validation/field-errors.ts';
import { itemSchemaOf, valuesOf } from '../schema/json-schema.ts';
import { validateRuleExpressions } from './rule-expressions.ts';
import { validateSchemaDefaults } from './schema-defaults.ts';
import { validateJunctorsCovered, validateNestedValues } from './schema-junctors.ts';
import { validateOpenApi } from './schema-openapi.ts';

/** Deeper schemas are refused, as every write would take time for them. */
const maxSchemaDepth = 100;

/**
 * All errors of a version's schema: its structure or else its defaults, then OpenAPI, then its CEL rules. CEL must be
 * loaded.
 */
export function validateSchema(schema: JSONSchemaProps, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (schema.nullable === true) {
    errors.push(forbiddenField(`${path}.nullable`, 'nullable cannot be true at the root'));
  }
  const structural = validateStructural(schema, path);
  pushAll(errors, structural.length > 0 ? structural : validateSchemaDefaults(schema, path));
  const broken = errors.length > 0;
  pushAll(errors, validateOpenApi(schema, path));
  // Rules are compiled against the types of a valid schema.
  if (!broken && hasRules(schema)) {
    pushAll(errors, validateRuleExpressions(schema, path, errors));
  }
  return errors;
}

/** Errors that kube-apiserver finds in random order are sorted by text. */
function validateStructural(schema: JSONSchemaProps, path: string): FieldError[] {
  const errors: FieldError[] = [];
  visit(schema, path, 'at the root', errors, 0);
  pushAll(errors, validateJunctorsCovered(schema, path));
  const text = ({ field, body }: FieldError) => `${field}: ${body}`;
  return errors.sort((a, b) => (text(a) < text(b) ? -1 : Number(text(a) > text(b))));
}

type Place = 'at the root' | 'for specified object fields' | 'for specified array items';

function visit(
  schema: JSONSchemaProps,
  path: string,
  place: Place,
  errors: FieldError[],
  depth: number,
): void {
  if (depth > maxSchemaDepth) {
    errors.push(forbiddenField(path, `schemas may be nested ${maxSchemaDepth} levels deep`));
    return;
  }
  const { type = '', properties = {}, additionalProperties } = schema;
  const items = itemSchemaOf(schema);
  if (type === 'array' && items === undefined) errors.push(required(`${path}.items`, 'must be specified'));
  if (items !== undefined) visit(items, `${path}.items`, 'for specified array items', errors, depth + 1);
  for (const [name, property] of Object.entries(properties)) {
    visit(property, `${path}.properties[${name}]`, 'for specified object fields', errors, depth + 1);
  }
  const root = place === 'at the root';
  if (root && additionalProperties !== undefined) {
    errors.push(forbiddenField(`${path}.additionalProperties`, 'must not be used at the root'));
  }
  const values = valuesOf(schema);
  if (values !== undefined) {
    visit(values, `${path}.additionalProperties`, 'for specified object fields', errors, depth + 1);
  }
  pushExtensionErrors(schema, path, errors);
  pushAll(errors, validateNestedValues(schema, path));
  pushTypeErrors(schema, path, place, errors);
  if (root || schema['x-kubernetes-embedded-resource'] === true) {
    pushTypeMetaErrors(properties, path, root, errors);
  }
}

function pushExtensionErrors(schema: JSONSchemaProps, path: string, errors: FieldError[]): void {
  if (schema['x-kubernetes-int-or-string'] !== true) return;
  for (const word of ['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource'] as const) {
    if (schema[word] !== true) continue;
    errors.push(invalid(`${path}.${word}`, true, 'must be false if x-kubernetes-int-or-string is true'));
  }
}

function pushTypeErrors(schema: JSONSchemaProps, path: string, place: Place, errors: FieldError[]): void {
  const { type = '', properties = {} } = schema;
  const unknown = schema['x-kubernetes-preserve-unknown-fields'] === true;
  const at = `${path}.type`;
  if (schema['x-kubernetes-embedded-resource'] === true) {
    const what = 'x-kubernetes-embedded-resource is true';
    if (type === '') errors.push(required(at, `must be object if ${what}`));
    else if (type !== 'object') errors.push(invalid(at, type, `must be object if ${what}`));
    if (schema.additionalProperties !== undefined) {
      const detail = 'must not be used if x-kubernetes-embedded-resource is set';
      errors.push(forbiddenField(`${path}.additionalProperties`, detail));
    }
    if (!unknown && Object.keys(properties).length === 0) {
      const detail = `must not be empty if ${what} without x-kubernetes-preserve-unknown-fields`;
      errors.push(required(`${path}.properties`, detail));
    }
  } else if (type === '' && !unknown && schema['x-kubernetes-int-or-string'] !== true) {
    errors.push(required(at, `must not be empty ${place}`));
  }
  if (place === 'at the root' && type !== '' && type !== 'object') {
    errors.push(invalid(at, type, 'must be object at the root'));
  }
}

/** `apiVersion`, `kind` and `metadata` are declared implicitly. */
function pushTypeMetaErrors(
  properties: Readonly<Record<string, JSONSchemaProps>>,
  path: string,
  root: boolean,
  errors: FieldError[],
): void {
  for (const [name, type] of [
    ['kind', 'string'],
    ['apiVersion', 'string'],
    ['metadata', 'object'],
  ] as const) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property === undefined || property.type === type) continue;
    errors.push(invalid(`${path}.properties[${name}].type`, property.type ?? '', `must be ${type}`));
  }
  const metadata = Object.hasOwn(properties, 'metadata') ? properties['metadata'] : undefined;
  if (!root || metadata === undefined) return;
  const { type: _type, default: _default, properties: members = {}, ...others } = metadata;
  const restricted = Object.keys(members).every((name) => name === 'name' || name === 'generateName');
  if (restricted && Object.keys(others).length === 0) return;
  const detail =
    'must not specify anything other than name and generateName, but metadata is implicitly specified';
  errors.push(forbiddenField(`${path}.properties[metadata]`, detail));
}
