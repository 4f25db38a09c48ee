import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import { plainError } from '../../../objects/status.ts';
import { itemSchemaOf, valuesOf } from './json-schema.ts';
import { pushAll } from '../../../objects/lists.ts';
import type { ObjectMeta, OwnerReference } from '../../../objects/meta.ts';
import { type FieldError, invalid, required } from '../../validation/field-errors.ts';
import { validateCustomObjectMeta } from '../../generic/metadata.ts';
import { isDNS1035Label, nameIsPathSegment } from '../../../objects/names.ts';

/**
 * - Defaults of structural schemas (apiextensions `schema/defaulting`).
 * - Embedded resources (apiextensions `schema/objectmeta/validation.go`).
 */

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

/** Values deeper than this are refused elsewhere. */
const maxEmbeddedDepth = 500;

/** An `x-kubernetes-embedded-resource` must have apiVersion and kind, and valid metadata if any. */
export function validateEmbedded(
  schema: JSONSchemaProps,
  value: unknown,
  path = '',
  depth = 0,
): FieldError[] {
  if (depth > maxEmbeddedDepth) return [];
  if (Array.isArray(value)) {
    const items = itemSchemaOf(schema);
    if (items === undefined) return [];
    return value.flatMap((item, i) => validateEmbedded(items, item, `${path}[${i}]`, depth + 1));
  }
  if (!isRecord(value)) return [];
  const { properties = {} } = schema;
  const values = valuesOf(schema);
  const errors = schema['x-kubernetes-embedded-resource'] === true ? validateObject(value, path) : [];
  for (const [name, member] of Object.entries(value)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const at = path === '' ? name : `${path}.${name}`;
    if (property !== undefined) pushAll(errors, validateEmbedded(property, member, at, depth + 1));
    else if (values !== undefined) {
      pushAll(errors, validateEmbedded(values, member, `${path}[${name}]`, depth + 1));
    }
  }
  return errors;
}

function validateObject(value: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  const errors = validateTypeMeta(value, path);
  // The metadata of the root object is checked with the object.
  if (path === '' || !isRecord(value['metadata'])) return errors;
  const metadata = metadataOf(value['metadata']);
  const namespaced = (metadata.namespace ?? '') !== '';
  return [
    ...errors,
    ...validateCustomObjectMeta(metadata, {
      namespaced,
      nameRule: nameIsPathSegment,
      path: `${path}.metadata`,
    }),
  ];
}

/** The rules of embedded metadata, for members of the right type; a name is not required. */
function metadataOf(value: Readonly<Record<string, unknown>>): ObjectMeta {
  const text = (member: string) => (typeof value[member] === 'string' ? value[member] : '');
  const texts = (member: string) => {
    const entries = isRecord(value[member]) ? Object.entries(value[member]) : [];
    return Object.fromEntries(
      entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    );
  };
  const list = (member: string): unknown[] => (Array.isArray(value[member]) ? value[member] : []);
  const generation = value['generation'];
  return {
    name: text('name') === '' ? 'fakename' : text('name'),
    generateName: text('generateName'),
    namespace: text('namespace'),
    labels: texts('labels'),
    annotations: texts('annotations'),
    finalizers: list('finalizers').filter((finalizer) => typeof finalizer === 'string'),
    ownerReferences: list('ownerReferences').filter(isOwnerReference),
    managedFields: list('managedFields').filter(isRecord),
    ...(typeof generation === 'number' ? { generation } : {}),
  };
}

function isOwnerReference(value: unknown): value is OwnerReference {
  return (
    isRecord(value) && ['apiVersion', 'kind', 'name', 'uid'].every((key) => typeof value[key] === 'string')
  );
}

function validateTypeMeta(value: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  const members = ['apiVersion', 'kind'] as const;
  const errors = members
    .filter((member) => !Object.hasOwn(value, member))
    .map((member) => required(`${path}.${member}`));
  for (const member of members) {
    if (!Object.hasOwn(value, member)) continue;
    const text = value[member];
    const fail = (detail: string) => errors.push(invalid(`${path}.${member}`, text, detail));
    if (typeof text !== 'string') fail('must be a string');
    else if (text === '') fail('must not be empty');
    else if (member === 'kind') {
      const faults = isDNS1035Label(text.toLowerCase());
      if (faults.length > 0) fail(`may have mixed case, but should otherwise match: ${faults.join(',')}`);
    } else if (text.split('/').length > 2) {
      fail(`unexpected GroupVersion string: ${text}`);
    }
  }
  return errors;
}
