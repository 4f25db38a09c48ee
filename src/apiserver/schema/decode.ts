/**
 * Turns parsed JSON into an object of a schema as Go's decoder and encoder do together: types are checked, unknown
 * fields dropped, zero values of omitempty fields dropped, those of other fields written out, times and quantities
 * put into canonical form.
 */
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { formatQuantity, parseQuantity } from '../../objects/quantity.ts';
import { canonicalBase64 } from './go-base64.ts';
import { canonicalMicroTime, canonicalTime } from './go-time.ts';
import { type ParsedJson, RawNumber } from './parse-json.ts';
import {
  type Field,
  type LeafSchema,
  type ListSchema,
  type MapSchema,
  type Schema,
  setMember,
  type StructSchema,
  type UnionSchema,
  zeroValue,
} from './schema.ts';

/** A value that does not fit its type; the message is Go's. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
}

export interface Decoded {
  readonly object: JsonRecord;
  /** What Strict mode complains of, in document order: `unknown field "spec.x"`, `duplicate field "spec.y"`. */
  readonly strictErrors: readonly string[];
}

/**
 * Decodes a value of a Go type. `null` stands for the empty object. The result shares nothing with `parsed` but
 * values of type any.
 *
 * @throws {DecodeError} for the first value, in document order, that does not fit.
 */
export function decodeStruct(schema: StructSchema, parsed: ParsedJson): Decoded {
  const walk = new Walk(parsed);
  const decoded = decode(schema, parsed.value, walk);
  const object = isRecord(decoded) ? decoded : {};
  return { object, strictErrors: walk.strictErrors };
}

/** As {@link decodeStruct} for a value that is in memory already. */
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

/** kube keeps so many strict errors of one body (sigs.k8s.io/json). */
const maxStrictErrors = 100;

class Walk {
  readonly #parsed: ParsedJson;
  readonly hasRawNumbers: boolean;
  readonly strictErrors: string[] = [];
  /** Struct fields only: what Go's type errors show. */
  readonly fields: string[] = [];
  /** The Go struct of the innermost field. */
  struct = '';
  /** Fields, map keys and list positions: what strict errors show. */
  readonly path: (string | number)[] = [];

  /** The value is a map that a strategic merge made. */
  readonly fromMap: boolean;

  constructor(parsed: ParsedJson, fromMap = false) {
    this.#parsed = parsed;
    this.hasRawNumbers = parsed.hasRawNumbers;
    this.fromMap = fromMap;
  }

  /** The members of an object in document order, repeated ones included. */
  repeated(object: object): readonly (readonly [string, unknown])[] | undefined {
    return this.#parsed.repeated?.get(object);
  }

  strict(what: 'unknown' | 'duplicate', key: string): void {
    if (this.strictErrors.length >= maxStrictErrors) return;
    let text = '';
    for (const segment of [...this.path, key]) {
      if (typeof segment === 'number') text += `[${segment}]`;
      else text += text === '' ? segment : `.${segment}`;
    }
    const error = `${what} field ${JSON.stringify(text)}`;
    if (!this.strictErrors.includes(error)) this.strictErrors.push(error);
  }

  /** `goType` when it is not the one of the schema: types with an UnmarshalJSON of their own. */
  mismatch(value: unknown, schema: Schema, goType = schema.goType): DecodeError {
    const custom = goType !== schema.goType;
    if (this.fromMap && !custom) return new DecodeError(converterError(value, schema));
    const where =
      this.fields.length === 0 || this.fromMap
        ? 'Go value'
        : `Go struct field ${this.struct}.${this.fields.join('.')}`;
    return new DecodeError(
      `json: cannot unmarshal ${goValueName(value, goType)} into ${where} of type ${goType}`,
    );
  }
}

/** What `DefaultUnstructuredConverter.FromUnstructured` says of a value that does not fit. */
function converterError(value: unknown, schema: Schema): string {
  const kind = goKind(value);
  if (schema.type === 'struct') return `cannot restore struct from: ${kind}`;
  if (schema.type === 'map') return `cannot restore map from ${kind}`;
  if (schema.type === 'list' || schema.type === 'bytes') return `cannot restore slice from ${kind}`;
  const converts =
    (schema.type === 'string' && kind === 'int64') ||
    ((schema.type === 'int32' || schema.type === 'int64') && kind === 'float64');
  if (converts) return `cannot convert ${kind} to ${schema.goType}`;
  return `unrecognized type: ${plainKinds.get(schema.type) ?? schema.type}`;
}

const plainKinds = new Map([
  ['boolean', 'bool'],
  ['number', 'float64'],
]);

/** The kind of a Go value in a `map[string]interface{}`. */
function goKind(value: unknown): string {
  if (Array.isArray(value)) return 'slice';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64';
  if (value instanceof RawNumber) return /^-?\d+$/.test(value.literal) ? 'int64' : 'float64';
  return typeof value === 'string' ? 'string' : 'map';
}

const integerTypes = new Set(['int32', 'int64', 'float64']);

/** How Go's UnmarshalTypeError names a JSON value; a number that does not fit a number type is shown. */
function goValueName(value: unknown, goType: string): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number' || value instanceof RawNumber) {
    return integerTypes.has(goType) ? `number ${literalOf(value)}` : 'number';
  }
  return typeof value === 'string' ? 'string' : 'object';
}

function literalOf(value: number | RawNumber): string {
  return typeof value === 'number' ? String(value) : value.literal;
}

/** The decoded value, or undefined for null and for what Go would encode as nothing. */
function decode(schema: Schema, value: unknown, walk: Walk): unknown {
  switch (schema.type) {
    case 'struct':
      return decodeMembers(schema, value, walk);
    case 'map':
      return decodeMap(schema, value, walk);
    case 'list':
      return decodeList(schema, value, walk);
    case 'union':
      return decodeUnion(schema, value, walk);
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
    if (field.dropZero && isZero(merged) && !isTrackingReset(schema, key))
      Reflect.deleteProperty(object, key);
    else object[key] = merged;
  }
}

/** An empty list of managedFields is an order (give up tracking), which whoever tracks the write takes out again. */
function isTrackingReset(schema: StructSchema, key: string): boolean {
  return key === 'managedFields' && schema.name === 'ObjectMeta';
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
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0;
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
    setMember(object, key, decode(schema.values, member, walk) ?? zeroValue(schema.values));
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

interface Width {
  readonly bits: number;
  readonly min: bigint;
  readonly max: bigint;
}
const int32: Width = { bits: 32, min: -(2n ** 31n), max: 2n ** 31n - 1n };
const int64: Width = { bits: 64, min: -(2n ** 63n), max: 2n ** 63n - 1n };

function decodeLeaf(schema: LeafSchema, value: unknown, walk: Walk): unknown {
  switch (schema.type) {
    case 'string':
      if (typeof value !== 'string') throw walk.mismatch(value, schema);
      return value;
    case 'boolean':
      if (typeof value !== 'boolean') throw walk.mismatch(value, schema);
      return value;
    case 'int32':
      return decodeInteger(value, int32, schema, schema.goType, walk);
    case 'int64':
      return decodeInteger(value, int64, schema, schema.goType, walk);
    case 'number':
      return decodeNumber(value, schema, walk);
    case 'intOrString':
      return typeof value === 'string' ? value : decodeInteger(value, int32, schema, 'int32', walk);
    case 'time':
      if (typeof value !== 'string') throw walk.mismatch(value, schema, 'string');
      return translated(() => canonicalTime(value));
    case 'microTime':
      if (typeof value !== 'string') throw walk.mismatch(value, schema, 'string');
      return translated(() => canonicalMicroTime(value));
    case 'bytes':
      if (typeof value !== 'string') throw walk.mismatch(value, schema);
      return translated(() => canonicalBase64(value), walk.fromMap ? 'error decoding from base64: ' : '');
    case 'quantity':
      return translated(() => formatQuantity(parseQuantity(quantityText(value))));
    case 'any':
    case 'fieldsV1':
      return walk.hasRawNumbers ? withoutRawNumbers(value) : value;
  }
}

/** A value's own syntax is wrong: the reason reaches the client as it is. */
function translated<T>(parse: () => T, prefix = ''): T {
  try {
    return parse();
  } catch (error) {
    throw error instanceof Error ? new DecodeError(prefix + error.message) : error;
  }
}

/** Quantity.UnmarshalJSON takes any JSON text, without its quotes. */
function quantityText(value: unknown): string {
  if (typeof value === 'string') return value.trim();
  if (typeof value === 'number' || value instanceof RawNumber) return literalOf(value);
  return JSON.stringify(value);
}

function decodeInteger(value: unknown, width: Width, schema: Schema, goType: string, walk: Walk): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= -(2 ** 31) && value < 2 ** 31)
    return value;
  if (typeof value !== 'number' && !(value instanceof RawNumber)) throw walk.mismatch(value, schema, goType);
  const literal = literalOf(value);
  if (/^-?\d{1,20}$/.test(literal)) {
    const exact = BigInt(literal);
    if (exact >= width.min && exact <= width.max) return Number(exact);
    // Go converts a map's int64 to a smaller type without looking.
    if (walk.fromMap) return Number(BigInt.asIntN(width.bits, exact));
  } else if (walk.fromMap && Number.isSafeInteger(Number(literal))) {
    return Number(literal);
  }
  throw walk.mismatch(value, schema, goType);
}

function decodeNumber(value: unknown, schema: Schema, walk: Walk): number {
  if (typeof value === 'number') return value;
  if (value instanceof RawNumber) {
    const number = Number(value.literal);
    if (Number.isFinite(number)) return number;
  }
  throw walk.mismatch(value, schema);
}

/** A copy of a JSON value with plain numbers, or the value itself when it has none of the others. */
export function withoutRawNumbers(value: unknown): unknown {
  if (value instanceof RawNumber) return Number(value.literal);
  if (Array.isArray(value)) return value.map(withoutRawNumbers);
  if (!isRecord(value)) return value;
  const copy: JsonRecord = {};
  for (const [key, member] of Object.entries(value)) setMember(copy, key, withoutRawNumbers(member));
  return copy;
}

/** Nesting below which repeated keys are not looked for. */
const maxDepth = 1_000;

/** `duplicate field "a.b"` for every key that an untyped value repeats, in document order. */
export function repeatedFields(parsed: ParsedJson): string[] {
  const found = new Set<string>();
  if (parsed.repeated !== undefined) collectRepeated(parsed, parsed.value, '', found, 0);
  return [...found].slice(0, maxStrictErrors);
}

function collectRepeated(
  parsed: ParsedJson,
  value: unknown,
  path: string,
  found: Set<string>,
  depth: number,
): void {
  if (depth > maxDepth) return;
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) collectRepeated(parsed, item, `${path}[${i}]`, found, depth + 1);
  } else if (isRecord(value)) {
    const seen = new Set<string>();
    for (const [key, member] of parsed.repeated?.get(value) ?? Object.entries(value)) {
      const inner = path === '' ? key : `${path}.${key}`;
      if (seen.has(key)) found.add(`duplicate field ${JSON.stringify(inner)}`);
      seen.add(key);
      collectRepeated(parsed, member, inner, found, depth + 1);
    }
  }
}
