/**
 * Values against structural schemas, in the words of kube-openapi's validator as apiextensions-apiserver passes them
 * on (`apiserver/validation/validation.go`).
 */
import { isRecord, jsonEqual } from '../../objects/json.ts';
import { itemsOf, type JsonSchema, valuesOf } from '../customresourcedefinition/json-schema.ts';
import {
  duplicate,
  type FieldError,
  invalid,
  notSupported,
  required,
  tooLong,
  tooMany,
} from '../field-errors.ts';
import { hasFormat } from './formats.ts';
import { matchesPattern } from './pattern.ts';

/** Values deeper than this are refused. */
const maxDepth = 500;

/** All rules that a value breaks; `path` is "" for the whole object. */
export function validateValue(schema: JsonSchema, value: unknown, path: string, depth = 0): FieldError[] {
  if (depth > maxDepth) return [invalid(path, '', `${path} in body is nested too deeply`)];
  if (value === null) {
    return schema.nullable === true || acceptsAnything(schema) ? [] : [wrongType(path, schema, 'null')];
  }
  const type = jsonType(value);
  if (!hasType(schema, type)) return [wrongType(path, schema, type)];
  const errors: FieldError[] = [];
  if (typeof value === 'string') validateString(schema, value, path, errors);
  else if (typeof value === 'number') validateNumber(schema, value, path, errors);
  else if (Array.isArray(value)) validateList(schema, value, path, errors, depth);
  if (schema.enum !== undefined && !schema.enum.some((allowed) => jsonEqual(allowed, value))) {
    const words = schema.enum.map((allowed) =>
      typeof allowed === 'string' ? allowed : JSON.stringify(allowed),
    );
    errors.push(notSupported(path, value, words));
  }
  if (isRecord(value)) validateObject(schema, value, path, errors, depth);
  validateJunctors(schema, value, path, errors, depth);
  return errors;
}

function acceptsAnything(schema: JsonSchema): boolean {
  return (schema.type ?? '') === '' && schema['x-kubernetes-int-or-string'] !== true;
}

function jsonType(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value === 'object' ? 'object' : typeof value;
}

function hasType(schema: JsonSchema, type: string): boolean {
  if (schema['x-kubernetes-int-or-string'] === true) return type === 'integer' || type === 'string';
  const wanted = schema.type ?? '';
  return wanted === '' || wanted === type || (wanted === 'number' && type === 'integer');
}

function inBody(path: string): string {
  return `${path} in body`;
}

function wrongType(path: string, schema: JsonSchema, type: string): FieldError {
  const wanted = schema['x-kubernetes-int-or-string'] === true ? 'integer,string' : (schema.type ?? '');
  const detail = `${inBody(path)} must be of type ${wanted}: ${JSON.stringify(type)}`;
  return {
    field: path === '' ? '<nil>' : path,
    reason: 'FieldValueTypeInvalid',
    body: `Invalid value: ${JSON.stringify(type)}: ${detail}`,
  };
}

function validateString(schema: JsonSchema, value: string, path: string, errors: FieldError[]): void {
  const { minLength, maxLength, pattern, format } = schema;
  const length = Array.from(value).length;
  if (maxLength !== undefined && length > maxLength) errors.push(tooLong(path, maxLength));
  if (minLength !== undefined && length < minLength) {
    errors.push(invalid(path, value, `${inBody(path)} should be at least ${minLength} chars long`));
  }
  if (pattern !== undefined && pattern !== '' && !matchesPattern(pattern, value)) {
    errors.push(invalid(path, value, `${inBody(path)} should match '${pattern}'`));
  }
  if (format !== undefined && !hasFormat(format, value)) {
    errors.push(invalid(path, value, `${inBody(path)} must be of type ${format}: ${JSON.stringify(value)}`));
  }
}

function validateNumber(schema: JsonSchema, value: number, path: string, errors: FieldError[]): void {
  const { minimum, maximum, multipleOf } = schema;
  const fail = (words: string) => errors.push(invalid(path, value, `${inBody(path)} ${words}`));
  if (multipleOf !== undefined && multipleOf > 0 && !Number.isInteger(value / multipleOf))
    fail(`should be a multiple of ${multipleOf}`);
  if (maximum !== undefined) {
    if (schema.exclusiveMaximum === true && value >= maximum) fail(`should be less than ${maximum}`);
    else if (schema.exclusiveMaximum !== true && value > maximum)
      fail(`should be less than or equal to ${maximum}`);
  }
  if (minimum !== undefined) {
    if (schema.exclusiveMinimum === true && value <= minimum) fail(`should be greater than ${minimum}`);
    else if (schema.exclusiveMinimum !== true && value < minimum)
      fail(`should be greater than or equal to ${minimum}`);
  }
  const limit = schema.format === 'int32' ? 2147483647 : Infinity;
  if (value > limit || value < -limit - 1) fail(`must be of type int32: ${JSON.stringify(String(value))}`);
}

function validateList(
  schema: JsonSchema,
  list: readonly unknown[],
  path: string,
  errors: FieldError[],
  depth: number,
): void {
  const { minItems, maxItems } = schema;
  const items = itemsOf(schema);
  if (items !== undefined) {
    list.forEach((item, i) => errors.push(...validateValue(items, item, `${path}[${i}]`, depth + 1)));
  }
  if (minItems !== undefined && list.length < minItems) {
    errors.push(invalid(path, list.length, `${inBody(path)} should have at least ${minItems} items`));
  }
  if (maxItems !== undefined && list.length > maxItems) errors.push(tooMany(path, list.length, maxItems));
  validateListType(schema, list, path, errors);
}

/** Sets hold no value twice, maps no key (`schema/listtype/validation.go`). */
function validateListType(
  schema: JsonSchema,
  list: readonly unknown[],
  path: string,
  errors: FieldError[],
): void {
  const listType = schema['x-kubernetes-list-type'];
  if (listType !== 'set' && listType !== 'map') return;
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const seen = new Set<string>();
  list.forEach((item, i) => {
    const identity = listType === 'set' ? item : keyOf(item, keys);
    const text = JSON.stringify(identity);
    if (seen.has(text)) errors.push(duplicate(`${path}[${i}]`, identity));
    seen.add(text);
  });
}

function keyOf(item: unknown, keys: readonly string[]): Record<string, unknown> {
  if (!isRecord(item)) return {};
  return Object.fromEntries(keys.map((key) => [key, Object.hasOwn(item, key) ? item[key] : null]));
}

function validateObject(
  schema: JsonSchema,
  value: Readonly<Record<string, unknown>>,
  path: string,
  errors: FieldError[],
  depth: number,
): void {
  const names = Object.keys(value);
  const { minProperties, maxProperties, properties = {} } = schema;
  if (minProperties !== undefined && names.length < minProperties) {
    errors.push(
      invalid(path, names.length, `${inBody(path)} should have at least ${minProperties} properties`),
    );
  }
  if (maxProperties !== undefined && names.length > maxProperties)
    errors.push(tooMany(path, names.length, maxProperties));
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(value, name)) errors.push(required(child(path, name)));
  }
  const values = valuesOf(schema);
  for (const name of names.sort()) {
    const member = Object.hasOwn(properties, name) ? properties[name] : values;
    if (member !== undefined)
      errors.push(...validateValue(member, value[name], child(path, name), depth + 1));
  }
}

function child(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

function validateJunctors(
  schema: JsonSchema,
  value: unknown,
  path: string,
  errors: FieldError[],
  depth: number,
): void {
  const holds = (part: JsonSchema): boolean => validateValue(part, value, path, depth + 1).length === 0;
  const fail = (words: string) => errors.push(invalid(path, value, `${JSON.stringify(path)} ${words}`));
  const { anyOf = [], oneOf = [], allOf = [], not } = schema;
  if (anyOf.length > 0 && schema['x-kubernetes-int-or-string'] !== true && !anyOf.some(holds)) {
    fail('must validate at least one schema (anyOf)');
  }
  if (oneOf.length > 0) {
    const valid = oneOf.filter(holds).length;
    if (valid !== 1) {
      fail(
        `must validate one and only one schema (oneOf). ${valid === 0 ? 'Found none valid' : `Found ${valid} valid alternatives`}`,
      );
    }
  }
  if (allOf.length > 0 && !allOf.every(holds)) fail('must validate all the schemas (allOf)');
  if (not !== undefined && holds(not)) fail('must not validate the schema (not)');
}
