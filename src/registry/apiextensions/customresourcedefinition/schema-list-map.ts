import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { type FieldError, forbiddenField, invalid, required } from '../../validation/field-errors.ts';
import { itemSchemaOf } from '../schema/json-schema.ts';

const forKeys = 'this property is in x-kubernetes-list-map-keys, so it';

/** The keys of lists of type map, and the items of sets and maps (`validateMapListKeysMapSet`). */
export function validateListMap(schema: JSONSchemaProps, path: string): FieldError[] {
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
