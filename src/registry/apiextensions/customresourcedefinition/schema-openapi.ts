import type { JSONSchemaProps, ValidationRule } from '../../../objects/types/apiextensions.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  required,
  notSupported,
} from '../../validation/field-errors.ts';
import { itemSchemaOf, valuesOf } from '../schema/json-schema.ts';
import { readFieldPath } from '../rules/compile-rules.ts';

/**
 * - The keys of lists of type map.
 * - The OpenAPI v3 features that a schema may use (apiextensions `validation.go`
 *   ValidateCustomResourceDefinitionOpenAPISchema).
 */

const forKeys = 'this property is in x-kubernetes-list-map-keys, so it';

/** The keys of lists of type map, and the items of sets and maps (`validateMapListKeysMapSet`). */
function validateListMap(schema: JSONSchemaProps, path: string): FieldError[] {
  const listType = schema['x-kubernetes-list-type'];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const keysPath = `${path}.x-kubernetes-list-map-keys`;
  const items = itemSchemaOf(schema);
  const errors: FieldError[] = [];
  if (listType === 'map') {
    if (keys.length === 0) {
      errors.push(required(keysPath, 'must not be empty if x-kubernetes-list-type is map'));
    }
    if (schema.items === undefined) {
      errors.push(required(`${path}.items`, 'must have a schema if x-kubernetes-list-type is map'));
    }
    if (items !== undefined) pushAll(errors, validateKeys(keys, items, path));
  }
  if (items === undefined || (listType !== 'set' && listType !== 'map')) return errors;
  if (items.nullable === true) {
    const detail = `cannot be nullable when x-kubernetes-list-type is ${listType}`;
    errors.push(forbiddenField(`${path}.items.nullable`, detail));
  }
  if (listType === 'set') return errors;
  for (const key of keys) {
    const property = propertyOf(items, key);
    if (property === undefined) continue;
    const at = `${path}.items.properties[${key}]`;
    if (items.required?.includes(key) !== true && property.default === undefined) {
      errors.push(required(`${at}.default`, `${forKeys} must have a default or be a required property`));
    }
    if (property.nullable === true)
      errors.push(forbiddenField(`${at}.nullable`, `${forKeys} cannot be nullable`));
  }
  return errors;
}

function validateKeys(keys: readonly string[], items: JSONSchemaProps, path: string): FieldError[] {
  const { type = '' } = items;
  if (type !== 'object') {
    const detail = "must be object if parent array's x-kubernetes-list-type is map";
    return [invalid(`${path}.items.type`, type, detail)];
  }
  const keysPath = `${path}.x-kubernetes-list-map-keys`;
  return keys.flatMap((key, i) => {
    const errors: FieldError[] = [];
    const property = propertyOf(items, key);
    if (property === undefined) {
      errors.push(invalid(keysPath, keys, 'entries must all be names of item properties'));
    } else if (property.type === 'array' || property.type === 'object') {
      const detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
      errors.push(invalid(`${path}.items.properties[${key}].type`, type, detail));
    }
    if (keys.indexOf(key) < i) errors.push(invalid(keysPath, keys, 'must not contain duplicate entries'));
    return errors;
  });
}

function propertyOf({ properties = {} }: JSONSchemaProps, name: string): JSONSchemaProps | undefined {
  return Object.hasOwn(properties, name) ? properties[name] : undefined;
}

const types = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
const listTypes = ['atomic', 'set', 'map'];
const mapTypes = ['atomic', 'granular'];
const implied = new Set(['apiVersion', 'kind', 'metadata']);
const maxDepth = 100;

/** All rules that a schema and its parts break. */
export function validateOpenApi(schema: JSONSchemaProps, path: string): FieldError[] {
  const errors: FieldError[] = [];
  visit(schema, path, { depth: 0, root: true, noDefault: undefined }, errors);
  return errors;
}

interface Context {
  readonly depth: number;
  readonly root: boolean;
  /** Why a default is not allowed here. */
  readonly noDefault: string | undefined;
}

function visit(schema: JSONSchemaProps, path: string, context: Context, errors: FieldError[]): void {
  const { depth, root, noDefault } = context;
  if (depth > maxDepth) return;
  pushForbidden(schema, path, noDefault, errors);
  const inner: Context = { depth: depth + 1, root: false, noDefault };
  const { properties = {}, additionalProperties } = schema;
  const names = Object.keys(properties).sort();
  if (additionalProperties !== undefined && additionalProperties !== true && names.length > 0) {
    const detail = 'additionalProperties and properties are mutual exclusive';
    errors.push(forbiddenField(`${path}.additionalProperties`, detail));
  }
  const values = valuesOf(schema);
  if (values !== undefined) visit(values, `${path}.additionalProperties`, inner, errors);
  for (const name of names) {
    const property = properties[name];
    if (property === undefined) continue;
    const why = root && implied.has(name) ? `in top-level ${name}` : noDefault;
    visit(property, `${path}.properties[${name}]`, { ...inner, noDefault: why }, errors);
  }
  if (schema.not !== undefined) visit(schema.not, `${path}.not`, inner, errors);
  for (const word of ['allOf', 'oneOf', 'anyOf'] as const) {
    schema[word]?.forEach((part, i) => visit(part, `${path}.${word}[${i}]`, inner, errors));
  }
  const items = itemSchemaOf(schema);
  if (items !== undefined) visit(items, `${path}.items`, inner, errors);
  pushExtensionErrors(schema, path, errors);
}

function pushForbidden(
  schema: JSONSchemaProps,
  path: string,
  noDefault: string | undefined,
  errors: FieldError[],
): void {
  const { type = '' } = schema;
  if (type !== '' && !types.includes(type)) errors.push(notSupported(`${path}.type`, type, types));
  if (schema.default !== undefined && noDefault !== undefined) {
    errors.push(forbiddenField(`${path}.default`, `must not be set ${noDefault}`));
  }
  const refused = [
    'id',
    'additionalItems',
    'patternProperties',
    'definitions',
    'dependencies',
    '$ref',
  ] as const;
  for (const word of refused) {
    if (schema[word] !== undefined)
      errors.push(forbiddenField(`${path}.${word}`, `${word} is not supported`));
  }
  if (type === 'null') {
    const detail = 'type cannot be set to null, use nullable as an alternative';
    errors.push(forbiddenField(`${path}.type`, detail));
  }
  if (Array.isArray(schema.items)) {
    errors.push(forbiddenField(`${path}.items`, 'items must be a schema object and not an array'));
  }
  if (schema.uniqueItems === true) {
    const detail = 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic';
    errors.push(forbiddenField(`${path}.uniqueItems`, detail));
  }
}

function pushExtensionErrors(schema: JSONSchemaProps, path: string, errors: FieldError[]): void {
  const { type = '' } = schema;
  const mapType = schema['x-kubernetes-map-type'];
  const listType = schema['x-kubernetes-list-type'];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const needsType = (wanted: string, word: string) => {
    const detail = `must be ${wanted} if ${word} is specified`;
    errors.push(type === '' ? required(`${path}.type`, detail) : invalid(`${path}.type`, type, detail));
  };
  const preserves = schema['x-kubernetes-preserve-unknown-fields'];
  if (preserves === false) {
    errors.push(
      invalid(`${path}.x-kubernetes-preserve-unknown-fields`, preserves, 'must be true or undefined'),
    );
  }
  if (mapType !== undefined && type !== 'object') needsType('object', 'x-kubernetes-map-type');
  if (mapType !== undefined && !mapTypes.includes(mapType)) {
    errors.push(notSupported(`${path}.x-kubernetes-map-type`, mapType, mapTypes));
  }
  if (listType !== undefined && type !== 'array') needsType('array', 'x-kubernetes-list-type');
  else if (listType === 'set') pushAtomicItemErrors(itemSchemaOf(schema), `${path}.items`, errors);
  if (listType !== undefined && !listTypes.includes(listType)) {
    errors.push(notSupported(`${path}.x-kubernetes-list-type`, listType, listTypes));
  }
  if (keys.length > 0 && listType !== 'map') {
    const at = `${path}.x-kubernetes-list-type`;
    const detail = 'must be map if x-kubernetes-list-map-keys is non-empty';
    errors.push(listType === undefined ? required(at, detail) : invalid(at, listType, detail));
  }
  pushAll(errors, validateListMap(schema, path));
  pushAll(errors, validateRuleMembers(schema, path));
}

/** Items of a set are atomic. kube-apiserver shows the list type of the items in either case. */
function pushAtomicItemErrors(items: JSONSchemaProps | undefined, path: string, errors: FieldError[]): void {
  if (items === undefined) return;
  const listType = items['x-kubernetes-list-type'];
  const detail = 'must be atomic as item of a list with x-kubernetes-list-type=set';
  if (items.type === 'array' && listType !== undefined && listType !== 'atomic') {
    errors.push(invalid(`${path}.x-kubernetes-list-type`, listType, detail));
  } else if (items.type === 'object' && items['x-kubernetes-map-type'] !== 'atomic') {
    // kube-apiserver prints a nil pointer as a word.
    errors.push(invalid(`${path}.x-kubernetes-map-type`, listType ?? null, detail));
  }
}

const reasons = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'];

const lineBreak = /[\n\r]/;

/** The fields of one schema's rules, without their expressions. */
function validateRuleMembers(schema: JSONSchemaProps, path: string): FieldError[] {
  return (schema['x-kubernetes-validations'] ?? []).flatMap((rule, i) =>
    memberErrors(rule, schema, `${path}.x-kubernetes-validations[${i}]`),
  );
}

function memberErrors(rule: ValidationRule, schema: JSONSchemaProps, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const { message = '', messageExpression = '', reason, fieldPath = '' } = rule;
  const text = message.trim();
  const source = rule.rule.trim();
  if (source === '') errors.push(required(`${at}.rule`, 'rule is not specified'));
  else if (message !== '' && text === '') {
    errors.push(invalid(`${at}.message`, message, 'must be non-empty if specified'));
  } else if (lineBreak.test(text)) {
    errors.push(invalid(`${at}.message`, message, 'must not contain line breaks'));
  } else if (lineBreak.test(source) && text === '') {
    errors.push(required(`${at}.message`, 'message must be specified if rule contains line breaks'));
  }
  if (messageExpression !== '' && messageExpression.trim() === '') {
    errors.push(required(`${at}.messageExpression`, 'messageExpression must be non-empty if specified'));
  }
  if (reason !== undefined && !reasons.includes(reason)) {
    errors.push(notSupported(`${at}.reason`, reason, reasons));
  }
  const wrongPath = (detail: string) => errors.push(invalid(`${at}.fieldPath`, fieldPath, detail));
  if (fieldPath !== '' && fieldPath.trim() === '') wrongPath('must be non-empty if specified');
  if (lineBreak.test(fieldPath)) wrongPath('must not contain line breaks');
  if (readFieldPath(fieldPath, schema).fault !== undefined) wrongPath('must be a valid path');
  return errors;
}
