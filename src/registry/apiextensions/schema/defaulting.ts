/** Defaults of structural schemas (apiextensions `schema/defaulting`). */
import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import { plainError } from '../../../objects/status-errors.ts';
import { itemSchemaOf, valuesOf } from './json-schema.ts';

const maxDepth = 500;
/** Characters that defaults may add to an object: no larger one is stored. */
const maxAdded = 3 * 1024 * 1024;
/** The cost of a member with a default, in characters. */
const perMember = 60;

/** Options of defaulting. */
interface Defaulting {
  /** The characters that may still be added. */
  left: number;
  readonly keepNulls: boolean;
  /** False when only nulls are removed. */
  readonly fills: boolean;
}

/**
 * Fills in defaults, in place: members that are missing, and those that are null where null is not allowed. A null that
 * is not allowed and has no default is removed, unless `keepNulls` is set (`PruneNonNullableNullsWithoutDefaults`,
 * which decoders of requests do, and applies do not).
 *
 * @throws {StatusError} 500 with etcd's text when the object would become too large to be stored.
 */
export function applyDefaults(schema: JSONSchemaProps, object: object, keepNulls = false): void {
  visit(schema, object, 0, { left: maxAdded, keepNulls, fills: true });
}

/**
 * Removes nulls that are not allowed and have no default, in place, without defaulting: for results of conversions
 * (`PruneNonNullableNullsWithoutDefaults`).
 */
export function dropNulls(schema: JSONSchemaProps, object: object): void {
  visit(schema, object, 0, { left: maxAdded, keepNulls: false, fills: false });
}

function visit(schema: JSONSchemaProps, value: unknown, depth: number, defaulting: Defaulting): void {
  if (depth > maxDepth) return;
  if (Array.isArray(value)) {
    const items = itemSchemaOf(schema);
    if (items !== undefined) for (const item of value) visit(items, item, depth + 1, defaulting);
    return;
  }
  if (!isRecord(value)) return;
  const { properties = {} } = schema;
  for (const name of Object.keys(properties)) {
    const property = properties[name];
    if (property !== undefined && !Object.hasOwn(value, name)) setDefault(property, value, name, defaulting);
  }
  const values = valuesOf(schema);
  for (const name of Object.keys(value)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : values;
    if (property === undefined) continue;
    if (value[name] === null && property.nullable !== true) replaceNull(property, value, name, defaulting);
    visit(property, value[name], depth + 1, defaulting);
  }
}

/** The object with the defaults of a newer schema, a copy if there are any. */
export function withDefaults<T extends object>(schema: JSONSchemaProps, object: T): T {
  if (!mayDefault(schema)) return object;
  const copy = structuredClone(object);
  try {
    applyDefaults(schema, copy);
  } catch {
    // Too large with its defaults: it is returned as stored.
    return object;
  }
  return copy;
}

const haveDefaults = new WeakMap<JSONSchemaProps, boolean>();

/** False when no part of the schema has a default; may be true without one (a property of that name). */
export function mayDefault(schema: JSONSchemaProps): boolean {
  let may = haveDefaults.get(schema);
  if (may === undefined) {
    may = JSON.stringify(schema).includes('"default":');
    haveDefaults.set(schema, may);
  }
  return may;
}

function replaceNull(
  property: JSONSchemaProps,
  object: JsonRecord,
  name: string,
  defaulting: Defaulting,
): void {
  if (property.default !== undefined) setDefault(property, object, name, defaulting);
  else if (!defaulting.keepNulls) Reflect.deleteProperty(object, name);
}

function setDefault(
  property: JSONSchemaProps,
  object: JsonRecord,
  name: string,
  defaulting: Defaulting,
): void {
  if (property.default === undefined || !defaulting.fills) return;
  defaulting.left -= perMember + name.length + sizeOf(property.default);
  if (defaulting.left < 0) throw plainError('etcdserver: request is too large');
  // Not by assignment: a definition may name a property `__proto__`.
  const value = copyOf(property.default);
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

/** A copy of a default for each object, which shares its strings: a list can have 100,000 of them. */
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
