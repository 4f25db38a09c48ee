import { goQuote } from '../../objects/formats/go-text.ts';
import { type ParsedJson, RawNumber } from './json.ts';
import type { Schema } from './schema.ts';
import { isRecord, countJsonValues } from '../../objects/json.ts';
import { tooLarge } from '../../objects/status.ts';

/**
 * - The path of a decode, its errors, and their texts in Go.
 * - Repeated keys of values that are not decoded into a type: patches, custom resources.
 * - Limits of one body. kube-apiserver limits bytes, and has many threads. Here one request must not hold the event
 *   loop, and its cost depends on the number of its values.
 */

/** A value that does not fit its type; the message is Go's. */
export class DecodeError extends Error {
  override readonly name: string = 'DecodeError';
}

/** A value of another type than its field's. Go continues to decode: an error of a type's own parser comes first. */
export class UnmarshalTypeError extends DecodeError {
  override readonly name = 'UnmarshalTypeError';
}

/** The limit of strict errors of one body in kube-apiserver (sigs.k8s.io/json). */
const maxStrictErrors = 100;

/** The state of one decode. */
export class Walk {
  readonly #parsed: ParsedJson;
  readonly hasRawNumbers: boolean;
  readonly strictErrors: string[] = [];
  /** Struct fields only: what Go's type errors show. */
  readonly fields: string[] = [];
  /** The Go struct of the innermost field. */
  struct = '';
  /** Fields, map keys and list positions: what strict errors show. */
  readonly path: (string | number)[] = [];

  /** The first value that did not fit, to be reported when the whole body was read. */
  firstMismatch: UnmarshalTypeError | undefined;
  /** Inside a type with a parser of its own (UnmarshalJSON), which minds no strictness. */
  lenient = false;

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
    if (this.lenient || this.strictErrors.length >= maxStrictErrors) return;
    let text = '';
    for (const segment of [...this.path, key]) {
      if (typeof segment === 'number') text += `[${segment}]`;
      else text += text === '' ? segment : `.${segment}`;
    }
    const error = `${what} field ${goQuote(text)}`;
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
    const Kind = custom || this.fromMap ? DecodeError : UnmarshalTypeError;
    return new Kind(`json: cannot unmarshal ${goValueName(value, goType)} into ${where} of type ${goType}`);
  }
}

/** The error of `DefaultUnstructuredConverter.FromUnstructured` for a value of a wrong type. */
function converterError(value: unknown, schema: Schema): string {
  const kind = goKind(value);
  if (schema.type === 'struct') return `cannot restore struct from: ${kind}`;
  if (schema.type === 'map') return `cannot restore map from ${kind}`;
  if (schema.type === 'list' || schema.type === 'bytes') return `cannot restore slice from ${kind}`;
  const converts =
    (schema.type === 'string' && kind === 'int64') ||
    ((schema.type === 'int32' || schema.type === 'int64') && kind === 'float64');
  if (converts) return `cannot convert ${kind} to ${schema.goType}`;
  return `unrecognized type: ${schema.goType === 'uint8' ? 'uint8' : (plainKinds.get(schema.type) ?? schema.type)}`;
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
  if (value instanceof RawNumber) return value.isInteger ? 'int64' : 'float64';
  return typeof value === 'string' ? 'string' : 'map';
}

const integerTypes = new Set(['uint8', 'int32', 'int64', 'float64']);

/** The name of a JSON value in Go's UnmarshalTypeError; a number that does not fit a number type is shown. */
function goValueName(value: unknown, goType: string): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number' || value instanceof RawNumber) {
    return integerTypes.has(goType) ? `number ${literalOf(value)}` : 'number';
  }
  return typeof value === 'string' ? 'string' : 'object';
}

/** A number as the text spells it. */
export function literalOf(value: number | RawNumber): string {
  return typeof value === 'number' ? String(value) : value.literal;
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
      if (seen.has(key)) found.add(`duplicate field ${goQuote(inner)}`);
      seen.add(key);
      collectRepeated(parsed, member, inner, found, depth + 1);
    }
  }
}

/**
 * Values of a JSON body at all depths: objects, lists, strings, numbers, booleans and nulls. A value of a write takes up
 * to 5 µs from parsing to storing. The largest definitions that people apply have 30,000.
 */
export const maxJsonValues = 40_000;
/** Values of a body in YAML or protobuf, which take longer to read. */
const maxValues = 20_000;

function tooManyValues(limit: number): Error {
  return tooLarge(`Request entity too large: limit is ${limit} values`);
}

/** Refuses a JSON text of too many values, before it is parsed. @throws {StatusError} 413 */
export function checkJsonSize(bytes: Buffer): void {
  // A value takes two bytes at least.
  if (bytes.length < 2 * maxJsonValues) return;
  if (countJsonValues(bytes.toString('latin1'), maxJsonValues) > maxJsonValues)
    throw tooManyValues(maxJsonValues);
}

/** Counts the values of a body that is not JSON while it is read. */
export class ValueCounter {
  #values = 0;

  /** @throws {StatusError} 413 */
  count(): void {
    this.#values += 1;
    if (this.#values > maxValues) throw tooManyValues(maxValues);
  }
}
