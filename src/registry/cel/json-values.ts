import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { type MapValue, PlainList, type Value } from './values.ts';

/** A value of which no schema is known: whole numbers are ints, others doubles. Members are read when they are asked for. */
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
