/** Structural schemas (apiextensions `apiserver/schema/{validation,complete}.go`, KEP 20190425): what a schema must be. */
import { type FieldError, forbiddenField, invalid, notSupported, required } from '../field-errors.ts';
import { isPattern } from '../customresource/pattern.ts';
import { validateValue } from '../customresource/validate-value.ts';
import { itemsOf, type JsonSchema, valuesOf } from './json-schema.ts';

const types = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
/** Deeper schemas are refused: nobody writes them, and they cost time at every write. */
const maxDepth = 100;

/** All rules that a version's schema breaks. */
export function validateStructural(schema: JsonSchema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  validateNode(schema, path, 'root', errors, 0);
  if (schema.type !== undefined && schema.type !== 'object' && types.includes(schema.type)) {
    errors.push(invalid(`${path}.type`, schema.type, 'must be object at the root'));
  }
  return errors;
}

type Place = 'root' | 'object fields' | 'array items';

function validateNode(
  schema: JsonSchema,
  path: string,
  place: Place,
  errors: FieldError[],
  depth: number,
): void {
  if (depth > maxDepth) {
    errors.push(forbiddenField(path, `schemas may be nested ${maxDepth} levels deep`));
    return;
  }
  validateType(schema, path, place, errors);
  validateForbidden(schema, path, errors);
  validateExtensions(schema, path, errors);
  const { properties = {}, default: value } = schema;
  if (value !== undefined && errors.length === 0) {
    errors.push(
      ...validateValue(schema, value, '').map((error) => ({
        ...error,
        field: `${path}.default${suffix(error.field)}`,
      })),
    );
  }
  const items = itemsOf(schema);
  if (schema.type === 'array' && items === undefined)
    errors.push(required(`${path}.items`, 'must be specified'));
  if (items !== undefined) validateNode(items, `${path}.items`, 'array items', errors, depth + 1);
  for (const name of Object.keys(properties).sort()) {
    const property = properties[name];
    if (property === undefined || (place === 'root' && implied.has(name))) continue;
    validateNode(property, `${path}.properties[${name}]`, 'object fields', errors, depth + 1);
  }
  const values = valuesOf(schema);
  if (values !== undefined) {
    if (Object.keys(properties).length > 0) {
      errors.push(
        forbiddenField(
          `${path}.additionalProperties`,
          'additionalProperties and properties are mutual exclusive',
        ),
      );
    }
    validateNode(values, `${path}.additionalProperties`, 'object fields', errors, depth + 1);
  } else if (schema.additionalProperties === false) {
    errors.push(
      forbiddenField(`${path}.additionalProperties`, 'additionalProperties cannot be set to false'),
    );
  }
  const nested = ['allOf', 'anyOf', 'oneOf'] as const;
  for (const word of nested) {
    schema[word]?.forEach((part, i) => validateJunctor(part, `${path}.${word}[${i}]`, errors, depth + 1));
  }
  if (schema.not !== undefined) validateJunctor(schema.not, `${path}.not`, errors, depth + 1);
}

/** `apiVersion`, `kind` and `metadata` of the root are known without being declared. */
const implied = new Set(['apiVersion', 'kind', 'metadata']);

/** Where in a default an error is. The default itself has no name. */
function suffix(field: string): string {
  if (field === '' || field === '<nil>') return '';
  return field.startsWith('[') ? field : `.${field}`;
}

function validateType(schema: JsonSchema, path: string, place: Place, errors: FieldError[]): void {
  const { type } = schema;
  const typeless =
    schema['x-kubernetes-int-or-string'] === true || schema['x-kubernetes-preserve-unknown-fields'] === true;
  if (type === undefined || type === '') {
    if (typeless && place !== 'root') return;
    const where =
      place === 'root' ? 'must not be empty at the root' : `must not be empty for specified ${place}`;
    errors.push(required(`${path}.type`, where));
  } else if (!types.includes(type)) {
    errors.push(notSupported(`${path}.type`, type, types));
  }
}

function validateForbidden(schema: JsonSchema, path: string, errors: FieldError[]): void {
  const refused = [
    ['$ref', '$ref is not supported'],
    ['id', 'id is not supported'],
    ['patternProperties', 'patternProperties is not supported'],
    ['definitions', 'definitions is not supported'],
    ['dependencies', 'dependencies is not supported'],
    ['additionalItems', 'additionalItems is not supported'],
  ] as const;
  for (const [word, why] of refused)
    if (schema[word] !== undefined) errors.push(forbiddenField(`${path}.${word}`, why));
  if (schema.uniqueItems === true) {
    errors.push(
      forbiddenField(
        `${path}.uniqueItems`,
        'uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
      ),
    );
  }
  if (schema.pattern !== undefined && !isPattern(schema.pattern)) {
    errors.push(invalid(`${path}.pattern`, schema.pattern, "must be a valid regular expression, but isn't"));
  }
}

function validateExtensions(schema: JsonSchema, path: string, errors: FieldError[]): void {
  if ((schema['x-kubernetes-validations'] ?? []).length > 0) {
    errors.push(
      forbiddenField(
        `${path}.x-kubernetes-validations`,
        'this server does not evaluate CEL rules; remove them, or use a cluster, rather than have them ignored',
      ),
    );
  }
  const listType = schema['x-kubernetes-list-type'];
  if (listType !== undefined) {
    if (schema.type !== 'array')
      errors.push(
        invalid(`${path}.type`, schema.type ?? '', 'must be array if x-kubernetes-list-type is specified'),
      );
    if (!['atomic', 'set', 'map'].includes(listType)) {
      errors.push(notSupported(`${path}.x-kubernetes-list-type`, listType, ['atomic', 'set', 'map']));
    }
  }
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  if (listType === 'map' && keys.length === 0) {
    errors.push(
      required(`${path}.x-kubernetes-list-map-keys`, 'must not be empty if x-kubernetes-list-type is map'),
    );
  }
  if (schema['x-kubernetes-embedded-resource'] === true && schema.type !== 'object') {
    errors.push(
      invalid(`${path}.type`, schema.type ?? '', 'must be object if x-kubernetes-embedded-resource is true'),
    );
  }
}

/** Inside of allOf, anyOf, oneOf and not only validations are allowed, nothing that tells a type. */
function validateJunctor(schema: JsonSchema, path: string, errors: FieldError[], depth: number): void {
  if (depth > maxDepth) return;
  const words = [
    'type',
    'default',
    'nullable',
    'x-kubernetes-preserve-unknown-fields',
    'x-kubernetes-embedded-resource',
  ] as const;
  for (const word of words) {
    const inIntOrString = word === 'type' && (schema.type === 'integer' || schema.type === 'string');
    if (schema[word] !== undefined && !inIntOrString) {
      errors.push(forbiddenField(`${path}.${word}`, 'must be undefined to be structural'));
    }
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    validateJunctor(property, `${path}.properties[${name}]`, errors, depth + 1);
  }
  const items = itemsOf(schema);
  if (items !== undefined) validateJunctor(items, `${path}.items`, errors, depth + 1);
  for (const word of ['allOf', 'anyOf', 'oneOf'] as const) {
    schema[word]?.forEach((part, i) => validateJunctor(part, `${path}.${word}[${i}]`, errors, depth + 1));
  }
  if (schema.not !== undefined) validateJunctor(schema.not, `${path}.not`, errors, depth + 1);
}
