import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { isRecord, jsonEqual } from '../../../objects/json.ts';
import {
  itemSchemaOf,
  valuesOf,
  stepsOfCheck,
  ValidationBudget,
  errorField,
  isFull,
  merge,
  type Placed,
  push,
  type SchemaErrors,
} from './json-schema.ts';
import { duplicate, type FieldError, invalid, required, tooMany } from '../../validation/field-errors.ts';
import { validateEnum, validateNumber, validateString, validateType } from './validate-scalar.ts';

/**
 * - Lists that are sets or maps (apiextensions `schema/listtype/validation.go`).
 * - Validates values against structural schemas, with the texts of kube-openapi's validator as
 *   apiextensions-apiserver returns them (`apiserver/validation/validation.go`, kube-openapi `validation/validate`).
 */

/** Values deeper than this are refused elsewhere. */
const maxDepth = 500;

/** A set has no equal values, a map no equal keys. A value that occurs three times is reported once. */
export function validateListTypes(
  schema: JSONSchemaProps,
  value: unknown,
  path = '',
  depth = 0,
): FieldError[] {
  if (depth > maxDepth) return [];
  if (Array.isArray(value)) {
    const items = itemSchemaOf(schema);
    const errors = validateList(schema, value, path);
    if (items === undefined) return errors;
    return [
      ...errors,
      ...value.flatMap((item, i) => validateListTypes(items, item, `${path}[${i}]`, depth + 1)),
    ];
  }
  if (!isRecord(value)) return [];
  const { properties = {} } = schema;
  const values = valuesOf(schema);
  return Object.entries(value).flatMap(([name, member]) => {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property !== undefined) {
      return validateListTypes(property, member, path === '' ? name : `${path}.${name}`, depth + 1);
    }
    return values === undefined ? [] : validateListTypes(values, member, `${path}[${name}]`, depth + 1);
  });
}

function validateList(schema: JSONSchemaProps, list: readonly unknown[], path: string): FieldError[] {
  const listType = schema['x-kubernetes-list-type'];
  if (listType !== 'set' && listType !== 'map') return [];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  if (listType === 'map') {
    const odd = list.findIndex((item) => item !== null && !isRecord(item));
    const detail = 'must be an object for an array of list-type map';
    if (odd !== -1) return [invalid(`${path}[${odd}]`, list[odd], detail)];
  }
  const seen = new Map<string, number>();
  return list.flatMap((item, i) => {
    const identity = listType === 'set' ? item : listMapKeyOf(item, keys);
    const text = JSON.stringify(identity);
    const times = seen.get(text) ?? 0;
    seen.set(text, times + 1);
    return times === 1 ? [duplicate(`${path}[${i}]`, identity)] : [];
  });
}

/** The keys of an item of a map, without those that it lacks. */
export function listMapKeyOf(item: unknown, keys: readonly string[]): Record<string, unknown> {
  if (!isRecord(item)) return {};
  return Object.fromEntries(keys.filter((key) => Object.hasOwn(item, key)).map((key) => [key, item[key]]));
}

/** Values deeper than this are refused. */
const maxValueDepth = 500;

/**
 * All rules that a value breaks.
 *
 * @param path "" for the whole object.
 * @param old the stored value of an update: parts that do not change may stay as they are (CRDValidationRatcheting).
 * @param budget what the work may come to; of one object unless it is given.
 * @throws {StatusError} 413 when it comes to more.
 */
export function validateValue(
  schema: JSONSchemaProps,
  value: unknown,
  path: string,
  old?: { readonly value: unknown },
  budget = new ValidationBudget(),
): FieldError[] {
  return validateAt(schema, value, { path, depth: 0, old, budget }).errors;
}

/** The errors of a part of an object, with paths relative to it. */
export function validatePart(
  schema: JSONSchemaProps,
  value: unknown,
  path: string,
  old?: { readonly value: unknown },
  budget?: ValidationBudget,
): FieldError[] {
  return validateValue(schema, value, '', old, budget).map((error) => ({
    ...error,
    field: error.field === '<nil>' ? path : `${path}.${error.field}`,
  }));
}

function validateAt(schema: JSONSchemaProps, value: unknown, place: Placed): SchemaErrors {
  const { path, depth, old } = place;
  place.budget.take(stepsOfCheck);
  const result: SchemaErrors = { errors: [], length: 0, matches: 0 };
  if (depth > maxValueDepth) {
    push(result, invalid(errorField(path), '', `${path} in body is nested too deeply`));
    return result;
  }
  validateType(schema, value, path, result);
  if (value === null) {
    validateEnum(schema, value, place, result);
  } else {
    validateJunctors(schema, value, place, result);
    if (typeof value === 'string') validateString(schema, value, place, result);
    else if (typeof value === 'number') validateNumber(schema, value, path, result);
    else if (Array.isArray(value)) validateItems(schema, value, place, result);
    validateEnum(schema, value, place, result);
    result.matches++;
    if (isRecord(value)) validateProperties(schema, value, place, result);
    result.matches++;
  }
  const isRatcheted = result.errors.length > 0 && old !== undefined && jsonEqual(old.value, value);
  return isRatcheted ? { errors: [], length: 0, matches: result.matches } : result;
}

function validateItems(
  schema: JSONSchemaProps,
  list: readonly unknown[],
  place: Placed,
  result: SchemaErrors,
): void {
  const { minItems, maxItems } = schema;
  const { path, depth, old } = place;
  const items = itemSchemaOf(schema);
  const before = Array.isArray(old?.value) ? storedItems(schema, old.value) : undefined;
  for (const [i, item] of list.entries()) {
    if (items === undefined || isFull(result)) break;
    const stored = before?.get(
      JSON.stringify(listMapKeyOf(item, schema['x-kubernetes-list-map-keys'] ?? [])),
    );
    merge(
      result,
      validateAt(items, item, { ...place, path: `${path}[${i}]`, depth: depth + 1, old: stored }),
      place,
    );
  }
  if (minItems !== undefined && list.length < minItems) {
    const detail = `${path} in body should have at least ${minItems} items`;
    push(result, invalid(errorField(path), list.length, detail));
  }
  if (maxItems !== undefined && list.length > maxItems) {
    push(result, tooMany(errorField(path), list.length, maxItems));
  }
  result.matches += 2;
}

/** The stored items by their keys; undefined where items cannot be correlated. */
function storedItems(
  schema: JSONSchemaProps,
  list: readonly unknown[],
): ReadonlyMap<string, { readonly value: unknown }> | undefined {
  if (schema['x-kubernetes-list-type'] !== 'map') return undefined;
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  return new Map(list.map((value) => [JSON.stringify(listMapKeyOf(value, keys)), { value }]));
}

function validateProperties(
  schema: JSONSchemaProps,
  value: Readonly<Record<string, unknown>>,
  place: Placed,
  result: SchemaErrors,
): void {
  const { path, depth, old } = place;
  const names = Object.keys(value).sort();
  const { minProperties, maxProperties, properties = {} } = schema;
  result.matches++;
  if (minProperties !== undefined && names.length < minProperties) {
    const detail = `${path} in body should have at least ${minProperties} properties`;
    push(result, invalid(errorField(path), names.length, detail));
    return;
  }
  if (maxProperties !== undefined && names.length > maxProperties) {
    push(result, tooMany(errorField(path), names.length, maxProperties));
    return;
  }
  const before = isRecord(old?.value) ? old.value : {};
  const member = (part: JSONSchemaProps, name: string, at: string) => {
    const stored = Object.hasOwn(before, name) ? { value: before[name] } : undefined;
    merge(
      result,
      validateAt(part, value[name], { ...place, path: at, depth: depth + 1, old: stored }),
      place,
    );
  };
  const values = valuesOf(schema);
  for (const name of names) {
    if (isFull(result)) break;
    if (values !== undefined && !Object.hasOwn(properties, name)) member(values, name, `${path}.${name}`);
  }
  for (const name of names) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property !== undefined) member(property, name, path === '' ? name : `${path}.${name}`);
  }
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(value, name)) push(result, required(errorField(`${path}.${name}`)));
  }
}

/** The error of a junctor, then the errors of the best alternative. */
function validateJunctors(
  schema: JSONSchemaProps,
  value: unknown,
  place: Placed,
  result: SchemaErrors,
): void {
  const nested: Placed = { ...place, depth: place.depth + 1 };
  const validated = (parts: readonly JSONSchemaProps[] = []) =>
    parts.map((part) => validateAt(part, value, nested));
  // This error has no field: it is about the alternatives.
  const fail = (words: string) =>
    push(result, invalid('<nil>', '', `${JSON.stringify(place.path)} ${words}`));
  const anyOf = validated(schema.anyOf);
  if (anyOf.length > 0) {
    const first = anyOf.find(({ errors }) => errors.length === 0);
    if (first === undefined) fail('must validate at least one schema (anyOf)');
    merge(result, first ?? closest(anyOf), place);
  }
  const oneOf = validated(schema.oneOf);
  if (oneOf.length > 0) {
    const valid = oneOf.filter(({ errors }) => errors.length === 0);
    const [first] = valid;
    if (valid.length !== 1) {
      const found = first === undefined ? 'Found none valid' : `Found ${valid.length} valid alternatives`;
      fail(`must validate one and only one schema (oneOf). ${found}`);
      if (first === undefined) merge(result, closest(oneOf), place);
    } else if (first !== undefined) {
      merge(result, first, place);
    }
  }
  const allOf = validated(schema.allOf);
  for (const part of allOf) merge(result, part, place);
  const failed = allOf.filter(({ errors }) => errors.length > 0).length;
  if (failed > 0)
    fail(`must validate all the schemas (allOf)${failed === allOf.length ? '. None validated' : ''}`);
  if (schema.not !== undefined && validateAt(schema.not, value, nested).errors.length === 0) {
    fail('must not validate the schema (not)');
  }
  result.matches += 2;
}

/** The failure with the most checks passed, the first among equals. */
function closest(failures: readonly SchemaErrors[]): SchemaErrors {
  return failures.reduce((best, next) => (next.matches > best.matches ? next : best));
}
