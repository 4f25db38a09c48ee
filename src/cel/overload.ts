import type { Meter } from './meter.ts';
import * as types from './types.ts';
import { type CelType, formatType } from './types.ts';
import {
  type Duration,
  isBytes,
  isDuration,
  isList,
  isMap,
  isOptional,
  isTimestamp,
  isUint,
  type ListValue,
  type MapValue,
  type Optional,
  type Timestamp,
  type Uint,
  type Value,
  type OpaqueValue,
} from './values.ts';
import type { Call, Expression } from './syntax/ast.ts';

/** Declarations of functions: parameter types for the checker, and guards for the evaluation. */

/** A parameter. */
export interface Param<T extends Value> {
  readonly type: types.CelType;
  is(value: Value): value is T;
}

/** One overload of a function. */
export interface Overload {
  /** Called as `target.name(args)`: the target is the first of the parameters. */
  readonly member: boolean;
  readonly params: readonly types.CelType[];
  readonly result: types.CelType;
  /** Undefined when the arguments do not match this overload. @throws {EvaluationError} @throws {CostLimitError} */
  call(args: readonly Value[], meter: Meter): Value | undefined;
}

/** Functions by name. */
export type Library = readonly (readonly [name: string, overloads: readonly Overload[]])[];

/** An overload without parameters. */
export function overload0(result: types.CelType, run: () => Value): Overload {
  return { member: false, params: [], result, call: (args) => (args.length === 0 ? run() : undefined) };
}

/** An overload with one parameter. */
export function overload1<A extends Value>(
  a: Param<A>,
  result: types.CelType,
  run: (a: A, meter: Meter) => Value,
): Overload {
  return {
    member: false,
    params: [a.type],
    result,
    call([first, ...more], meter) {
      return first !== undefined && more.length === 0 && a.is(first) ? run(first, meter) : undefined;
    },
  };
}

/** An overload with two parameters. */
export function overload2<A extends Value, B extends Value>(
  a: Param<A>,
  b: Param<B>,
  result: types.CelType,
  run: (a: A, b: B, meter: Meter) => Value,
): Overload {
  return {
    member: false,
    params: [a.type, b.type],
    result,
    call([first, second, ...more], meter) {
      if (first === undefined || second === undefined || more.length > 0) return undefined;
      return a.is(first) && b.is(second) ? run(first, second, meter) : undefined;
    },
  };
}

/** An overload with three parameters. */
export function overload3<A extends Value, B extends Value, C extends Value>(
  a: Param<A>,
  b: Param<B>,
  c: Param<C>,
  result: types.CelType,
  run: (a: A, b: B, c: C, meter: Meter) => Value,
): Overload {
  return {
    member: false,
    params: [a.type, b.type, c.type],
    result,
    call([first, second, third, ...more], meter) {
      if (first === undefined || second === undefined || third === undefined || more.length > 0)
        return undefined;
      return a.is(first) && b.is(second) && c.is(third) ? run(first, second, third, meter) : undefined;
    },
  };
}

/** An overload with four parameters. */
export function overload4<A extends Value, B extends Value, C extends Value, D extends Value>(
  a: Param<A>,
  b: Param<B>,
  c: Param<C>,
  d: Param<D>,
  result: types.CelType,
  run: (a: A, b: B, c: C, d: D, meter: Meter) => Value,
): Overload {
  return {
    member: false,
    params: [a.type, b.type, c.type, d.type],
    result,
    call([first, second, third, fourth], meter) {
      if (first === undefined || second === undefined || third === undefined || fourth === undefined)
        return undefined;
      if (!a.is(first) || !b.is(second) || !c.is(third) || !d.is(fourth)) return undefined;
      return run(first, second, third, fourth, meter);
    },
  };
}

/** The overload that is called on its first argument. */
export function member(overload: Overload): Overload {
  return { ...overload, member: true };
}

export const stringParam: Param<string> = {
  type: types.stringType,
  is: (value): value is string => typeof value === 'string',
};
export const intParam: Param<bigint> = {
  type: types.intType,
  is: (value): value is bigint => typeof value === 'bigint',
};
export const doubleParam: Param<number> = {
  type: types.doubleType,
  is: (value): value is number => typeof value === 'number',
};
export const boolParam: Param<boolean> = {
  type: types.boolType,
  is: (value): value is boolean => typeof value === 'boolean',
};
export const uintParam: Param<Uint> = { type: types.uintType, is: isUint };
export const bytesParam: Param<Uint8Array> = { type: types.bytesType, is: isBytes };
export const timestampParam: Param<Timestamp> = { type: types.timestampType, is: isTimestamp };
export const durationParam: Param<Duration> = { type: types.durationType, is: isDuration };
const a = types.paramType('A');
const b = types.paramType('B');

/** Any type, the same for all such parameters of an overload. */
export const anything: Param<Value> = { type: a, is: (_value): _value is Value => true };
export const dynamic: Param<Value> = { type: types.dynType, is: anything.is.bind(anything) };
export const listOfAny: Param<ListValue> = { type: types.listType(a), is: isList };
export const mapOfAny: Param<MapValue> = { type: types.mapType(a, b), is: isMap };
export const optionalOfAny: Param<Optional> = { type: types.optionalType(a), is: isOptional };

/** A list with items of a type; items are checked when they are used. */
export function listOf(type: types.CelType): Param<ListValue> {
  return { type: types.listType(type), is: isList };
}

const typeNames: ReadonlyMap<string, CelType> = new Map([
  ...[types.boolType, types.intType, types.uintType, types.doubleType, types.stringType, types.bytesType].map(
    (type): [string, CelType] => [formatType(type), type],
  ),
  ['null_type', types.nullType],
  ['list', types.listType(types.dynType)],
  ['map', types.mapType(types.dynType, types.dynType)],
  ...['net.IP', 'net.CIDR'].map((name): [string, CelType] => [name, { kind: 'opaque', name }]),
  ['optional_type', types.optionalType(types.dynType)],
  ['type', types.typeType(types.dynType)],
  ['google.protobuf.Timestamp', types.timestampType],
  ['google.protobuf.Duration', types.durationType],
]);

/** The type of a type name such as `string`; undefined for other names. */
export function namedType(name: string): CelType | undefined {
  return typeNames.get(name);
}

/** The text of a path of names, `a.b.c`. */
export function qualifiedName(expression: Expression): string | undefined {
  if (expression.kind === 'ident') return expression.name;
  if (expression.kind !== 'select' || expression.test) return undefined;
  const operand = qualifiedName(expression.operand);
  return operand === undefined ? undefined : `${operand}.${expression.field}`;
}

/** The name of the function that a checked call refers to, with its namespace, such as `sets.contains`. */
export function functionName({ name, target }: Call, overloads: readonly Overload[]): string {
  if (target === undefined || overloads[0]?.member !== false) return name;
  return `${qualifiedName(target) ?? ''}.${name}`;
}

/** The type of a library's values. */
export function opaque(name: string): CelType & { kind: 'opaque' } {
  return { kind: 'opaque', name };
}

/** A parameter whose values are of a library's class. */
export function instance<T extends OpaqueValue>(
  type: CelType & { kind: 'opaque' },
  made: abstract new (...args: never[]) => T,
): Param<T> {
  return { type, is: (value: Value): value is T => value instanceof made };
}
