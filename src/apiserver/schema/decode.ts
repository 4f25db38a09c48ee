/**
 * Turns parsed JSON into an object of a schema as Go's decoder and encoder do together: types are checked, unknown
 * fields dropped, zero values of omitempty fields dropped, those of other fields written out, times and quantities
 * put into canonical form.
 */
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { decodeAmount, decodeLeaf } from './decode-leaf.ts';
import { DecodeError, UnmarshalTypeError, Walk } from './decode-walk.ts';
import { type ParsedJson, RawNumber } from './json.ts';
import {
  type Field,
  type ListSchema,
  type MapSchema,
  type Schema,
  setMember,
  type StructSchema,
  type UnionSchema,
  zeroValue,
} from './schema.ts';

export { DecodeError };

export interface Decoded {
  readonly object: JsonRecord;
  /** What Strict mode complains of, in document order: `unknown field "spec.x"`, `duplicate field "spec.y"`. */
  readonly strictErrors: readonly string[];
}

/**
 * Decodes a value of a Go type. `null` stands for the empty object. The result shares nothing with `parsed` but
 * values of type any.
 *
 * @throws {DecodeError} for the first value, in document order, that its type's own parser refuses (times,
 * quantities), or else for the first that does not fit.
 */
export function decodeStruct(schema: StructSchema, parsed: ParsedJson): Decoded {
  const walk = new Walk(parsed);
  const decoded = decode(schema, parsed.value, walk);
  if (walk.firstMismatch !== undefined) throw walk.firstMismatch;
  const object = isRecord(decoded) ? decoded : {};
  return { object, strictErrors: walk.strictErrors };
}

/** {@link decodeStruct} for a value in memory. */
export function decodeValue(schema: StructSchema, value: unknown): Decoded {
  return decodeStruct(schema, { value, repeated: undefined, hasRawNumbers: true });
}

/**
 * As {@link decodeValue}, but as apimachinery's `DefaultUnstructuredConverter` turns a map into an object: fields
 * are taken in struct order, strict errors come sorted, and the error texts are the converter's.
 *
 * @throws {DecodeError} for the first value that does not fit.
 */
export function decodeMapValue(schema: StructSchema, value: unknown): Decoded {
  const walk = new Walk({ value, repeated: undefined, hasRawNumbers: true }, true);
  const decoded = decode(schema, value, walk);
  return { object: isRecord(decoded) ? decoded : {}, strictErrors: walk.strictErrors.sort() };
}

/**
 * What Strict mode complains of in a value of any Go type, which is not kept.
 *
 * @throws {DecodeError} as {@link decodeStruct}.
 */
export function checkValue(schema: Schema, parsed: ParsedJson): readonly string[] {
  const walk = new Walk(parsed);
  decode(schema, parsed.value, walk);
  if (walk.firstMismatch !== undefined) throw walk.firstMismatch;
  return walk.strictErrors;
}

/** Types whose values can be wrong as misfits only. */
const misfits: ReadonlySet<Schema['type']> = new Set([
  'string',
  'boolean',
  'bytes',
  'int32',
  'int64',
  'number',
]);

/** The decoded value, or undefined for null, for what Go would encode as nothing, and for what does not fit. */
function decode(schema: Schema, value: unknown, walk: Walk): unknown {
  // Only the first is reported: a body may have thousands.
  if (walk.firstMismatch !== undefined && misfits.has(schema.type)) return undefined;
  try {
    return decodeAny(schema, value, walk);
  } catch (error) {
    if (!(error instanceof UnmarshalTypeError)) throw error;
    walk.firstMismatch ??= error;
    return undefined;
  }
}

function decodeAny(schema: Schema, value: unknown, walk: Walk): unknown {
  switch (schema.type) {
    case 'struct':
      return decodeMembers(schema, value, walk);
    case 'map':
      return decodeMap(schema, value, walk);
    case 'list':
      return decodeList(schema, value, walk);
    case 'union':
      return leniently(walk, () => decodeUnion(schema, value, walk));
    default:
      return value === null ? undefined : decodeLeaf(schema, value, walk);
  }
}

function decodeMembers(schema: StructSchema, value: unknown, walk: Walk): JsonRecord | undefined {
  if (value === null || value === undefined) return fillAbsent(schema, {});
  if (!isRecord(value) || value instanceof RawNumber) throw walk.mismatch(value, schema);
  const object: JsonRecord = {};
  const repeated = walk.repeated(value);
  if (repeated === undefined) {
    for (const key of walk.fromMap ? structOrder(schema, value) : Object.keys(value))
      decodeMember(schema, object, key, value[key], walk);
  } else {
    const seen = new Set<string>();
    for (const [key, member] of repeated) {
      if (seen.has(key) && schema.byName.has(key)) walk.strict('duplicate', key);
      seen.add(key);
      decodeMember(schema, object, key, member, walk);
    }
  }
  return fillAbsent(schema, object);
}

/** Declared members in struct order, then the others. */
function structOrder(schema: StructSchema, value: JsonRecord): string[] {
  const declared = schema.fields.filter(({ name }) => Object.hasOwn(value, name)).map(({ name }) => name);
  return [...declared, ...Object.keys(value).filter((key) => !schema.byName.has(key))];
}

function decodeMember(
  schema: StructSchema,
  object: JsonRecord,
  key: string,
  value: unknown,
  walk: Walk,
): void {
  // Objects in memory may have members that are undefined: they are absent.
  if (value === undefined) return;
  const field = schema.byName.get(key);
  if (field === undefined) {
    walk.strict('unknown', key);
    return;
  }
  const { struct } = walk;
  walk.struct = schema.name;
  walk.fields.push(key);
  walk.path.push(key);
  const decoded = value === null ? undefined : decode(field.schema, value, walk);
  walk.fields.pop();
  walk.path.pop();
  walk.struct = struct;
  if (value === null) {
    // Go leaves a value alone that meets null, and clears pointers, maps and lists.
    if (!field.dropZero || typeof object[key] === 'object') Reflect.deleteProperty(object, key);
  } else if (decoded !== undefined) {
    const merged = object[key] === undefined ? decoded : mergeRepeated(field.schema, object[key], decoded);
    if (field.dropZero && isZero(merged) && !isEmptyListOfMeaning(schema, key))
      Reflect.deleteProperty(object, key);
    else object[key] = merged;
  }
}

/**
 * Lists whose emptiness counts until they are stored: one of managedFields is an order (give up tracking), and the
 * errors of the others show whether the client sent `[]` or nothing.
 */
const emptyListsOfMeaning = new Set([
  'ObjectMeta.managedFields',
  'IngressSpec.rules',
  'ServiceCIDRSpec.cidrs',
  'CustomResourceDefinitionSpec.versions',
]);

function isEmptyListOfMeaning(schema: StructSchema, key: string): boolean {
  return emptyListsOfMeaning.has(`${schema.name}.${key}`);
}

/** A field that came twice: Go decodes the second value into the first. */
function mergeRepeated(schema: Schema, before: unknown, after: unknown): unknown {
  if (!isRecord(before) || !isRecord(after)) return after;
  if (schema.type === 'map') return { ...before, ...after };
  if (schema.type !== 'struct') return after;
  const merged: JsonRecord = { ...before };
  for (const field of schema.fields) {
    const next = after[field.name];
    if (next === undefined || isUnset(field, next)) continue;
    merged[field.name] = mergeRepeated(field.schema, before[field.name], next);
  }
  return merged;
}

function isUnset(field: Field, value: unknown): boolean {
  return field.absent !== 'omit' && (value === null || isZero(value));
}

function isZero(value: unknown): boolean {
  if (typeof value !== 'object') return value === '' || value === 0 || value === false;
  if (value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  for (const _name in value) return false;
  return true;
}

function fillAbsent(schema: StructSchema, object: JsonRecord): JsonRecord {
  for (const field of alwaysWritten(schema)) {
    if (object[field.name] === undefined) {
      object[field.name] = field.absent === 'null' ? null : zeroValue(field.schema);
    }
  }
  return object;
}

const alwaysWrittenOf = new WeakMap<StructSchema, readonly Field[]>();

function alwaysWritten(schema: StructSchema): readonly Field[] {
  let fields = alwaysWrittenOf.get(schema);
  if (fields === undefined) {
    fields = schema.fields.filter((field) => field.absent !== 'omit');
    alwaysWrittenOf.set(schema, fields);
  }
  return fields;
}

function decodeMap(schema: MapSchema, value: unknown, walk: Walk): JsonRecord | undefined {
  if (value === null) return undefined;
  if (!isRecord(value) || value instanceof RawNumber) throw walk.mismatch(value, schema);
  const object: JsonRecord = {};
  const repeated = walk.repeated(value);
  const seen = new Set<string>();
  for (const [key, member] of repeated ?? Object.entries(value)) {
    if (repeated !== undefined) {
      if (seen.has(key)) walk.strict('duplicate', key);
      seen.add(key);
    }
    walk.path.push(key);
    const isAmount = schema.values.type === 'quantity' && member !== null;
    const decoded = isAmount ? decodeAmount(member) : decode(schema.values, member, walk);
    setMember(object, key, decoded ?? zeroValue(schema.values));
    walk.path.pop();
  }
  return object;
}

function decodeList(schema: ListSchema, value: unknown, walk: Walk): unknown[] | undefined {
  if (value === null) return undefined;
  if (!Array.isArray(value)) throw walk.mismatch(value, schema);
  const list: unknown[] = [];
  for (let i = 0; i < value.length; i++) {
    walk.path.push(i);
    list.push(decode(schema.items, value[i], walk) ?? zeroValue(schema.items));
    walk.path.pop();
  }
  return list;
}

function leniently<T>(walk: Walk, read: () => T): T {
  const { lenient } = walk;
  walk.lenient = true;
  const result = read();
  walk.lenient = lenient;
  return result;
}

function decodeUnion(schema: UnionSchema, value: unknown, walk: Walk): unknown {
  if (value === null) return undefined;
  if (isRecord(value) && !(value instanceof RawNumber)) return decodeMembers(schema.object, value, walk);
  if (schema.other === 'boolean') {
    if (typeof value === 'boolean') return value;
    throw new DecodeError('boolean or JSON schema expected');
  }
  if (Array.isArray(value)) {
    if (schema.other === 'structs') {
      return value.map((item) => decodeMembers(schema.object, item, walk));
    }
    return value.map((item) => {
      if (typeof item !== 'string') throw walk.mismatch(item, schema, 'string');
      return item;
    });
  }
  throw walk.mismatch(value, schema, schema.other === 'strings' ? '[]string' : schema.object.goType);
}
