import { isRecord, type JsonRecord } from '../objects/json.ts';
import { formatDuration, formatTimestamp } from './go-time.ts';
import { EvaluationError, listItems, type MapValue, PlainList, typeName, type Value } from './values.ts';

/** A JSON value without a schema: whole numbers are ints, others doubles. Members of objects are converted on use. */
export function fromJson(data: unknown): Value {
  if (data === null || data === undefined) return null;
  if (typeof data === 'string' || typeof data === 'boolean') return data;
  if (typeof data === 'number') return Number.isInteger(data) ? BigInt(data) : data;
  if (Array.isArray(data)) return new PlainList(data.map(fromJson));
  return isRecord(data) ? new JsonMap(data) : null;
}

class JsonMap implements MapValue {
  readonly kind = 'map';
  readonly #data: JsonRecord;
  readonly #found = new Map<string, Value>();
  readonly #keys: readonly string[];

  constructor(data: JsonRecord) {
    this.#data = data;
    this.#keys = Object.keys(data).filter((key) => data[key] !== undefined);
  }

  get size(): number {
    return this.#keys.length;
  }

  find(key: Value): Value | undefined {
    if (typeof key !== 'string' || !Object.hasOwn(this.#data, key)) return undefined;
    const known = this.#found.get(key);
    if (known !== undefined) return known;
    const data = this.#data[key];
    if (data === undefined) return undefined;
    const value = fromJson(data);
    this.#found.set(key, value);
    return value;
  }

  keys(): readonly Value[] {
    return this.#keys;
  }

  sameAs(): undefined {
    return undefined;
  }
}

/** A value as JSON. @throws {EvaluationError} for values that JSON cannot represent. */
export function toJson(value: Value): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  switch (value.kind) {
    case 'uint':
      return Number(value.value);
    case 'timestamp':
      return formatTimestamp(value);
    case 'duration':
      return formatDuration(value.nanos);
    case 'list':
      return listItems(value).map(toJson);
    case 'map':
      return Object.fromEntries(
        value.keys().map((key) => [String(toJson(key)), toJson(value.find(key) ?? null)]),
      );
    case 'optional':
      return value.value === undefined ? null : toJson(value.value);
    case 'type':
    case 'opaque':
      throw new EvaluationError(`a value of type ${typeName(value)} cannot be marshaled to JSON`);
  }
}
