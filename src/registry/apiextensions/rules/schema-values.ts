/** CEL values of the parts of a custom object (`apiserver/pkg/cel/common/values.go` UnstructuredToVal). */
import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { isRecord, jsonEqual, type JsonRecord } from '../../../objects/json.ts';
import { equals } from '../../../cel/equality.ts';
import { parseGoDuration, parseTimestamp } from '../../../cel/json-values.ts';
import type { Meter } from '../../../cel/meter.ts';
import {
  Duration,
  EvaluationError,
  isList,
  isMap,
  listItems as itemsOfList,
  type ListValue,
  type MapValue,
  Timestamp,
  type Value,
} from '../../../cel/values.ts';
import { itemSchemaOf, valuesOf } from '../schema/json-schema.ts';
import { isEmbedded, withTypeMeta, escapeName, unescapeName } from './decl-type.ts';

/** @throws {EvaluationError} when the part does not match the schema. */
export function toValue(schema: JSONSchemaProps, data: unknown): Value {
  if (data === null || data === undefined) {
    if (schema.nullable === true) return null;
    throw new EvaluationError('invalid data, got null for schema with nullable=false');
  }
  if (schema['x-kubernetes-int-or-string'] === true) {
    if (typeof data === 'string') return data;
    if (Number.isInteger(data)) return integer(data);
    throw new EvaluationError('invalid data, expected XIntOrString value to be either a string or integer');
  }
  switch (schema.type) {
    case 'object':
      if (isRecord(data)) return new SchemaMap(isEmbedded(schema) ? withTypeMeta(schema) : schema, data);
      throw new EvaluationError('invalid data, expected a map for the provided schema with type=object');
    case 'array':
      if (Array.isArray(data)) return new SchemaList(schema, data);
      throw new EvaluationError('invalid data, expected an array for the provided schema with type=array');
    case 'string':
      if (typeof data === 'string') return textValue(schema.format, data);
      throw new EvaluationError(`invalid data, expected string, got ${typeof data}`);
    case 'number':
      if (typeof data === 'number') return data;
      throw new EvaluationError(`invalid data, expected float, got ${typeof data}`);
    case 'integer':
      return integer(data);
    case 'boolean':
      if (typeof data === 'boolean') return data;
      throw new EvaluationError(`invalid data, expected bool, got ${typeof data}`);
    default:
      throw new EvaluationError(
        `invalid type, expected object, array, number, integer, boolean or string, or no type with x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got ${schema.type ?? ''}`,
      );
  }
}

function integer(data: unknown): bigint {
  if (typeof data === 'number' && Number.isInteger(data)) return BigInt(data);
  throw new EvaluationError(`invalid data, expected int, got ${typeof data}`);
}

const millisPerDay = 86_400_000n;
const longUnits = /^(\d+)\s*(d|day|days|w|wk|wks|week|weeks)$/;

function textValue(format: string | undefined, data: string): Value {
  switch (format) {
    case 'byte':
      return Buffer.from(data, 'base64');
    case 'duration': {
      const long = longUnits.exec(data);
      if (long === null) return parseGoDuration(data.replace(/\s+/g, ''));
      const days = BigInt(long[1] ?? '0') * (long[2]?.startsWith('w') === true ? 7n : 1n);
      return new Duration(days * millisPerDay * 1_000_000n);
    }
    case 'date':
      return parseTimestamp(`${data}T00:00:00Z`);
    case 'date-time':
      // A time without a zone is one in UTC.
      return parseTimestamp(/[T ][^Zz+-]*$/.test(data) ? `${data}Z` : data);
    default:
      return data;
  }
}

/** An object with declared properties, or a map. */
class SchemaMap implements MapValue {
  readonly kind = 'map';
  readonly #schema: JSONSchemaProps;
  readonly #data: JsonRecord;
  /** A cache of members that were read: rules read the same ones repeatedly. */
  readonly #found = new Map<string, Value>();
  #keys: readonly Value[] | undefined;
  #size: number | undefined;

  constructor(schema: JSONSchemaProps, data: JsonRecord) {
    this.#schema = schema;
    this.#data = data;
  }

  get size(): number {
    return (this.#size ??= Object.keys(this.#data).length);
  }

  /** Null counts as absent in a property, and as a value in a map. */
  find(key: Value): Value | undefined {
    if (typeof key !== 'string') return undefined;
    const known = this.#found.get(key);
    if (known !== undefined) return known;
    const isObject = this.#schema.properties !== undefined;
    const name = isObject ? unescapeName(key) : key;
    if (name === undefined || !Object.hasOwn(this.#data, name)) return undefined;
    const data = this.#data[name];
    if (isObject && data === null) return undefined;
    const schema = this.#schemaOf(name);
    if (schema === undefined) return undefined;
    const value = toValue(schema, data);
    this.#found.set(key, value);
    return value;
  }

  keys(): readonly Value[] {
    const isObject = this.#schema.properties !== undefined;
    return (this.#keys ??= Object.keys(this.#data)
      .filter((name) => this.#schemaOf(name) !== undefined)
      .map((name) => (isObject ? (escapeName(name) ?? name) : name)));
  }

  /** Members without a schema are compared as JSON. */
  sameAs(other: MapValue, meter: Meter): boolean | undefined {
    if (!(other instanceof SchemaMap)) return undefined;
    if (this.size !== other.size) return false;
    meter.work(this.size);
    return Object.entries(this.#data).every(([name, mine]) => {
      const schema = this.#schemaOf(name);
      if (!Object.hasOwn(other.#data, name)) return schema === undefined;
      const theirs = other.#data[name];
      if (schema === undefined || mine === null || theirs === null) return jsonEqual(mine, theirs);
      const otherSchema = other.#schemaOf(name) ?? schema;
      return equals(toValue(schema, mine), toValue(otherSchema, theirs), meter);
    });
  }

  #schemaOf(name: string): JSONSchemaProps | undefined {
    const { properties } = this.#schema;
    if (properties === undefined) return valuesOf(this.#schema);
    return Object.hasOwn(properties, name) ? properties[name] : undefined;
  }
}

/** A list with its type: atomic, set or map (`x-kubernetes-list-type`). */
class SchemaList implements ListValue {
  readonly kind = 'list';
  readonly #schema: JSONSchemaProps;
  readonly #data: readonly unknown[];
  #values: Value[] | undefined;

  /** @param values the items after those of `data`, or all when there is no data. */
  constructor(schema: JSONSchemaProps, data: readonly unknown[], values?: Value[]) {
    this.#schema = schema;
    this.#data = data;
    this.#values = values;
  }

  get size(): number {
    return this.#values?.length ?? this.#data.length;
  }

  at(index: number): Value | undefined {
    return this.#all()[index];
  }

  /** Joins another list: a set keeps one of equal items, a map replaces items with equal keys. */
  concat(other: ListValue): ListValue {
    const items = [...this.#all()];
    const places = new Map(items.map((item, i) => [this.#identity(item), i]));
    const type = this.#schema['x-kubernetes-list-type'];
    for (const item of itemsOfList(other)) {
      const identity = this.#identity(item);
      const place = type === 'set' || type === 'map' ? places.get(identity) : undefined;
      if (place !== undefined) {
        if (type === 'map') items[place] = item;
        continue;
      }
      places.set(identity, items.length);
      items.push(item);
    }
    return new SchemaList(this.#schema, [], items);
  }

  /** Equality of sets and maps ignores the order. */
  sameAs(other: ListValue, meter: Meter): boolean | undefined {
    const type = this.#schema['x-kubernetes-list-type'];
    if (type !== 'set' && type !== 'map') return undefined;
    if (this.size !== other.size) return false;
    meter.work(this.size);
    const mine = new Map(this.#all().map((item) => [this.#identity(item), item]));
    const seen = new Set<string>();
    const isPart = itemsOfList(other).every((item) => {
      const identity = this.#identity(item);
      seen.add(identity);
      const found = mine.get(identity);
      return found !== undefined && (type === 'set' || equals(found, item, meter));
    });
    // A list with an item twice is no set: it has fewer than it seems.
    return isPart && seen.size === mine.size;
  }

  #all(): readonly Value[] {
    this.#values ??= this.#data.map((item) => this.#convert(item));
    return this.#values;
  }

  #convert(item: unknown): Value {
    const schema = itemSchemaOf(this.#schema);
    if (schema === undefined)
      throw new EvaluationError('invalid array type, expected Items with a non-empty Schema');
    return toValue(schema, item);
  }

  /** The identity of an item of a set or a map. */
  #identity(item: Value): string {
    const keys = this.#schema['x-kubernetes-list-map-keys'];
    const type = this.#schema['x-kubernetes-list-type'];
    if (type === 'set' && (isList(item) || isMap(item))) {
      throw new EvaluationError('listSet operations are only supported on lists of scalar values');
    }
    if (type !== 'map' || keys === undefined || !isMap(item)) return scalarText(item);
    return keys.map((key) => scalarText(item.find(escapeName(key) ?? key) ?? null)).join('\u0000');
  }
}

function scalarText(value: Value): string {
  if (typeof value !== 'object' || value === null) return `${typeof value}:${String(value)}`;
  if (value instanceof Timestamp || value instanceof Duration) return `${value.kind}:${value.nanos}`;
  return value instanceof Uint8Array ? `bytes:${Buffer.from(value).toString('hex')}` : 'object';
}
