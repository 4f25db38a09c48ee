/** Defaults of structural schemas (apiextensions `schema/defaulting`). */
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { itemsOf, type JsonSchema, valuesOf } from '../customresourcedefinition/json-schema.ts';

const maxDepth = 500;

/**
 * Fills in defaults, in place: members that are missing, and those that are null where null is not allowed. A null
 * that is not allowed and has no default goes.
 */
export function applyDefaults(schema: JsonSchema, value: unknown, depth = 0): void {
  if (depth > maxDepth) return;
  if (Array.isArray(value)) {
    const items = itemsOf(schema);
    if (items !== undefined) for (const item of value) applyDefaults(items, item, depth + 1);
    return;
  }
  if (!isRecord(value)) return;
  const { properties = {} } = schema;
  for (const name of Object.keys(properties)) {
    const property = properties[name];
    if (property !== undefined) defaultMember(property, value, name);
  }
  const values = valuesOf(schema);
  for (const [name, member] of Object.entries(value)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : values;
    if (property !== undefined) applyDefaults(property, member, depth + 1);
  }
}

function defaultMember(property: JsonSchema, object: JsonRecord, name: string): void {
  const present = Object.hasOwn(object, name);
  const isNull = present && object[name] === null;
  if (present && !isNull) return;
  if (isNull && property.nullable === true) return;
  if (property.default !== undefined) {
    Object.defineProperty(object, name, {
      value: structuredClone(property.default),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  } else if (isNull && (property.type ?? '') !== '') {
    Reflect.deleteProperty(object, name);
  }
}
