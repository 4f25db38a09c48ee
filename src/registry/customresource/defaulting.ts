/** Defaults of structural schemas (apiextensions `schema/defaulting`). */
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { plainError } from '../../objects/status-errors.ts';
import { itemsOf, type JsonSchema, valuesOf } from '../customresourcedefinition/json-schema.ts';

const maxDepth = 500;
/**
 * Characters that defaults may add to an object: a list of a hundred thousand empty items can ask for gigabytes. etcd
 * keeps no object of more than some 1.5 MB.
 */
const maxAdded = 16 * 1024 * 1024;

/** What may still be added. */
interface Budget {
  left: number;
}

/**
 * Fills in defaults, in place: members that are missing, and those that are null where null is not allowed. A null
 * that is not allowed and has no default goes.
 *
 * @throws {StatusError} 500 in etcd's words when the object would become too large to be stored.
 */
export function applyDefaults(
  schema: JsonSchema,
  value: unknown,
  depth = 0,
  budget: Budget = { left: maxAdded },
): void {
  if (depth > maxDepth) return;
  if (Array.isArray(value)) {
    const items = itemsOf(schema);
    if (items !== undefined) for (const item of value) applyDefaults(items, item, depth + 1, budget);
    return;
  }
  if (!isRecord(value)) return;
  const { properties = {} } = schema;
  for (const name of Object.keys(properties)) {
    const property = properties[name];
    if (property !== undefined && !Object.hasOwn(value, name)) setDefault(property, value, name, budget);
  }
  const values = valuesOf(schema);
  for (const name of Object.keys(value)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : values;
    if (property === undefined) continue;
    if (value[name] === null && property.nullable !== true) replaceNull(property, value, name, budget);
    applyDefaults(property, value[name], depth + 1, budget);
  }
}

/** The object with the defaults of a schema that is newer than it, a copy where there are any. */
export function withDefaults<T extends object>(schema: JsonSchema, object: T): T {
  if (!mayDefault(schema)) return object;
  const copy = structuredClone(object);
  try {
    applyDefaults(schema, copy);
  } catch {
    // Too large with its defaults: it is shown as it was stored.
    return object;
  }
  return copy;
}

const defaulting = new WeakMap<JsonSchema, boolean>();

/** False when no part of the schema has a default; true may be wrong (a property of that name). */
function mayDefault(schema: JsonSchema): boolean {
  let may = defaulting.get(schema);
  if (may === undefined) {
    may = JSON.stringify(schema).includes('"default":');
    defaulting.set(schema, may);
  }
  return may;
}

function replaceNull(property: JsonSchema, object: JsonRecord, name: string, budget: Budget): void {
  if (property.default === undefined) Reflect.deleteProperty(object, name);
  else setDefault(property, object, name, budget);
}

function setDefault(property: JsonSchema, object: JsonRecord, name: string, budget: Budget): void {
  if (property.default === undefined) return;
  budget.left -= name.length + sizeOf(property.default);
  if (budget.left < 0) throw plainError('etcdserver: request is too large');
  // Not by assignment: a definition may name a property __proto__.
  const value = copyOf(property.default);
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

/** A default of its own for every object, but for the texts in it: a list can have a hundred thousand of them. */
function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOf);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copyOf(member)]));
}

const sizes = new WeakMap<object, number>();

/** Characters of a default as JSON, roughly. */
function sizeOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return String(value).length;
  let size = sizes.get(value);
  if (size === undefined) {
    size = JSON.stringify(value).length;
    sizes.set(value, size);
  }
  return size;
}
