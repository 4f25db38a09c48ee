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
    if (property !== undefined && !Object.hasOwn(value, name)) setDefault(property, value, name);
  }
  const values = valuesOf(schema);
  for (const name of Object.keys(value)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : values;
    if (property === undefined) continue;
    if (value[name] === null && property.nullable !== true) replaceNull(property, value, name);
    applyDefaults(property, value[name], depth + 1);
  }
}

function replaceNull(property: JsonSchema, object: JsonRecord, name: string): void {
  if (property.default === undefined) Reflect.deleteProperty(object, name);
  else setDefault(property, object, name);
}

function setDefault(property: JsonSchema, object: JsonRecord, name: string): void {
  if (property.default === undefined) return;
  // Not by assignment: a definition may name a property __proto__.
  const value: unknown = structuredClone(property.default);
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}
