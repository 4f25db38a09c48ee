/** Lists that are sets or maps (apiextensions `schema/listtype/validation.go`). */
import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { isRecord } from '../../../objects/json.ts';
import { itemSchemaOf, valuesOf } from './json-schema.ts';
import { duplicate, type FieldError, invalid } from '../../validation/field-errors.ts';

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
