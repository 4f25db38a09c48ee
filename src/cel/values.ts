/**
 * Values of CEL. Integers are bigints within 64 bits, doubles are numbers, strings, booleans and null are themselves,
 * bytes are a Uint8Array; the others are classes below or in `library/`.
 */
import type { Meter } from './meter.ts';
import type { CelType } from './types.ts';

export type Value = bigint | number | string | boolean | null | Uint8Array | ObjectValue;

/** Values that are instances of the classes here and in `library/`. */
export type ObjectValue =
  Uint | Timestamp | Duration | TypeValue | Optional | ListValue | MapValue | OpaqueValue;

/** An unsigned integer, 0 to 2^64-1. */
export class Uint {
  readonly kind = 'uint';
  readonly value: bigint;
  constructor(value: bigint) {
    this.value = value;
  }
}

/** A point in time in nanoseconds since 1970. */
export class Timestamp {
  readonly kind = 'timestamp';
  readonly nanos: bigint;
  /** The time zone in which it is shown, in minutes east of UTC. */
  readonly zone: number;
  constructor(nanos: bigint, zone = 0) {
    this.nanos = nanos;
    this.zone = zone;
  }
}

/** A span of time in nanoseconds, within 64 bits. */
export class Duration {
  readonly kind = 'duration';
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

/** The result of `type(x)`. */
export class TypeValue {
  readonly kind = 'type';
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** An optional value. */
export class Optional {
  readonly kind = 'optional';
  readonly value: Value | undefined;
  constructor(value: Value | undefined) {
    this.value = value;
  }
}

/** `optional.none()` */
export const noValue = new Optional(undefined);

/** A list. Lists with a schema are compared and concatenated by its `x-kubernetes-list-type`. */
export interface ListValue {
  readonly kind: 'list';
  readonly size: number;
  /** @throws {EvaluationError} when an item does not match its schema. */
  at(index: number): Value | undefined;
  /** This list followed by another. */
  concat(other: ListValue): ListValue;
  /** Whether the other list is equal; undefined where items have to be compared. */
  sameAs(other: ListValue, meter: Meter): boolean | undefined;
}

/** A map or an object. */
export interface MapValue {
  readonly kind: 'map';
  readonly size: number;
  find(key: Value): Value | undefined;
  keys(): readonly Value[];
  /** Whether the other map is equal; undefined where members have to be compared. */
  sameAs(other: MapValue, meter: Meter): boolean | undefined;
}

/** A value of one of Kubernetes' libraries. */
export interface OpaqueValue {
  readonly kind: 'opaque';
  readonly type: CelType & { kind: 'opaque' };
  /** Bytes, for values whose cost depends on them. */
  readonly size?: number;
  equals(other: OpaqueValue): boolean;
}

/** A list of given values. */
export class PlainList implements ListValue {
  readonly kind = 'list';
  readonly items: readonly Value[];
  constructor(items: readonly Value[]) {
    this.items = items;
  }
  get size(): number {
    return this.items.length;
  }
  at(index: number): Value | undefined {
    return this.items[index];
  }
  concat(other: ListValue): ListValue {
    return new PlainList([...this.items, ...listItems(other)]);
  }
  sameAs(): undefined {
    return undefined;
  }
}

/** A map of given values, in the order of the literal. */
export class PlainMap implements MapValue {
  readonly kind = 'map';
  readonly #entries: ReadonlyMap<string, readonly [Value, Value]>;

  /** @throws {EvaluationError} when a key is not a string, bool or whole number. */
  constructor(entries: Iterable<readonly [Value, Value]>) {
    const map = new Map<string, readonly [Value, Value]>();
    for (const entry of entries) {
      const key = keyText(entry[0]);
      if (key === undefined) throw new EvaluationError('unsupported key type');
      if (map.has(key)) throw new EvaluationError(`Failed with repeated key`);
      map.set(key, entry);
    }
    this.#entries = map;
  }
  get size(): number {
    return this.#entries.size;
  }
  find(key: Value): Value | undefined {
    const text = keyText(key);
    return text === undefined ? undefined : this.#entries.get(text)?.[1];
  }
  keys(): readonly Value[] {
    return [...this.#entries.values()].map(([key]) => key);
  }
  sameAs(): undefined {
    return undefined;
  }
}

/** An object of a named type, such as `Object.spec`. */
export class StructValue extends PlainMap {
  readonly name: string;

  constructor(name: string, entries: Iterable<readonly [Value, Value]>) {
    super(entries);
    this.name = name;
  }
}

/** The text of a key; equal numbers of different types are the same key. */
function keyText(key: Value): string | undefined {
  if (typeof key === 'string') return `s${key}`;
  if (typeof key === 'boolean') return `b${key}`;
  if (typeof key === 'bigint') return `n${key}`;
  if (typeof key === 'number') return Number.isSafeInteger(key) ? `n${key}` : undefined;
  return isUint(key) ? `n${key.value}` : undefined;
}

/** The items of a list. */
export function listItems(list: ListValue): Value[] {
  return Array.from({ length: list.size }, (_, i) => list.at(i) ?? null);
}

export function isUint(value: Value): value is Uint {
  return value instanceof Uint;
}
export function isTimestamp(value: Value): value is Timestamp {
  return value instanceof Timestamp;
}
export function isDuration(value: Value): value is Duration {
  return value instanceof Duration;
}
export function isOptional(value: Value): value is Optional {
  return value instanceof Optional;
}
export function isBytes(value: Value): value is Uint8Array {
  return value instanceof Uint8Array;
}
export function isList(value: Value): value is ListValue {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'list';
}
export function isMap(value: Value): value is MapValue {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'map';
}

/** The name of a value's type, as `type()` and errors show it. */
export function typeName(value: Value): string {
  if (typeof value === 'bigint') return 'int';
  if (typeof value === 'number') return 'double';
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  if (value === null) return 'null_type';
  if (value instanceof Uint8Array) return 'bytes';
  switch (value.kind) {
    case 'timestamp':
      return 'google.protobuf.Timestamp';
    case 'duration':
      return 'google.protobuf.Duration';
    case 'optional':
      return 'optional_type';
    case 'opaque':
      return value.type.name;
    case 'map':
      return value instanceof StructValue ? value.name : 'map';
    case 'uint':
    case 'type':
    case 'list':
      return value.kind;
  }
}

/** An evaluation error with cel-go's text; `&&` and `||` may ignore it. */
export class EvaluationError extends Error {
  override readonly name = 'EvaluationError';
}

/** The error for operands that match no overload. */
export function noSuchOverload(): EvaluationError {
  return new EvaluationError('no such overload');
}

const intBits = 64;

/** The integer, if it fits into 64 bits. @throws {EvaluationError} */
export function checkedInt(value: bigint): bigint {
  if (BigInt.asIntN(intBits, value) !== value) throw new EvaluationError('integer overflow');
  return value;
}

/** @throws {EvaluationError} */
export function checkedUint(value: bigint): Uint {
  if (BigInt.asUintN(intBits, value) !== value) throw new EvaluationError('unsigned integer overflow');
  return new Uint(value);
}
