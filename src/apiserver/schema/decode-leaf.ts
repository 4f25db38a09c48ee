/** Decodes scalars: types checked with Go's texts, times, quantities and base64 put into canonical form. */
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { canonicalAmount, canonicalQuantity } from '../../objects/quantity.ts';
import { DecodeError, literalOf, UnmarshalTypeError, type Walk } from './decode-walk.ts';
import { canonicalBase64 } from './go-base64.ts';
import { canonicalMicroTime, canonicalTime } from './go-time.ts';
import { RawNumber } from './json/go-json.ts';
import { type LeafSchema, type Schema, setMember } from './schema.ts';

interface Width {
  readonly bits: number;
  readonly min: bigint;
  readonly max: bigint;
}
/** Used in errors only. */
const uint8: LeafSchema = { type: 'int32', goType: 'uint8' };
const int32: Width = { bits: 32, min: -(2n ** 31n), max: 2n ** 31n - 1n };
const int64: Width = { bits: 64, min: -(2n ** 63n), max: 2n ** 63n - 1n };

/** The canonical value; undefined for a zero time. @throws {DecodeError} */
export function decodeLeaf(schema: LeafSchema, value: unknown, walk: Walk): unknown {
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
      if (Array.isArray(value)) return bytesOf(value, walk);
      if (typeof value !== 'string') throw walk.mismatch(value, schema);
      return walk.fromMap
        ? translated(() => canonicalBase64(value), 'error decoding from json: ')
        : translated(() => canonicalBase64(value), '', UnmarshalTypeError);
    case 'quantity':
      return translated(() => canonicalQuantity(quantityText(value)));
    case 'any':
    case 'fieldsV1':
      return walk.hasRawNumbers ? withoutRawNumbers(value) : value;
  }
}

/** Bytes may also come as a list of numbers, as any list in Go. */
function bytesOf(list: readonly unknown[], walk: Walk): string {
  const bytes = list.map((item) => {
    if (item === null) return 0;
    if (typeof item === 'number' && item >= 0 && item < 256) return item;
    throw walk.mismatch(item, uint8);
  });
  return Buffer.from(bytes).toString('base64');
}

/** A quantity in a map, which is a list of resources. @throws {DecodeError} when it is none. */
export function decodeAmount(value: unknown): string {
  return translated(() => canonicalAmount(quantityText(value)));
}

/** A value has invalid syntax: the message is sent to the client unchanged. */
function translated<T>(parse: () => T, prefix = '', Kind = DecodeError): T {
  try {
    return parse();
  } catch (error) {
    throw error instanceof Error ? new Kind(prefix + error.message) : error;
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

/** A copy of a JSON value with plain numbers, or the value itself if all are plain. */
export function withoutRawNumbers(value: unknown): unknown {
  if (value instanceof RawNumber) return Number(value.literal);
  if (Array.isArray(value)) return value.map(withoutRawNumbers);
  if (!isRecord(value)) return value;
  const copy: JsonRecord = {};
  for (const [key, member] of Object.entries(value)) setMember(copy, key, withoutRawNumbers(member));
  return copy;
}
