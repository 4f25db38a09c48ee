import { compare, equals, walk } from '../equality.ts';
import {
  anything,
  boolParam,
  bytesParam,
  doubleParam,
  durationParam,
  intParam,
  type Library,
  listOf,
  listOfAny,
  mapOfAny,
  member,
  optionalOfAny,
  type Overload,
  overload1,
  overload2,
  overload3,
  stringParam,
  timestampParam,
  uintParam,
  overload0,
} from '../overload.ts';
import { later } from '../json-values.ts';
import * as types from '../types.ts';
import {
  checkedInt,
  checkedUint,
  Duration,
  EvaluationError,
  isList,
  isMap,
  listItems,
  noSuchOverload,
  Optional,
  typeName,
  type Value,
  isDuration,
  isOptional,
  isTimestamp,
  isUint,
  noValue,
  PlainList,
} from '../values.ts';

/** Types with an order; numbers are comparable across types (`CrossTypeNumericComparisons`). */
const orderedPairs: readonly (readonly [types.CelType, types.CelType])[] = [
  ...[
    types.boolType,
    types.intType,
    types.uintType,
    types.doubleType,
    types.stringType,
    types.bytesType,
    types.timestampType,
    types.durationType,
  ].map((type): [types.CelType, types.CelType] => [type, type]),
  [types.intType, types.doubleType],
  [types.intType, types.uintType],
  [types.uintType, types.doubleType],
  [types.uintType, types.intType],
  [types.doubleType, types.intType],
  [types.doubleType, types.uintType],
];

function ordering(holds: (order: number) => boolean): Overload[] {
  return orderedPairs.map(([left, right]) =>
    overload2({ ...anything, type: left }, { ...anything, type: right }, types.boolType, (a, b, meter) => {
      if (typeof a === 'string') walk(meter, a);
      const order = compare(a, b);
      if (order === undefined) throw noSuchOverload();
      return holds(order);
    }),
  );
}

/** An integer operation for ints and uints. */
function whole(run: (a: bigint, b: bigint) => bigint): Overload[] {
  return [
    overload2(intParam, intParam, types.intType, (a, b) => checkedInt(run(a, b))),
    overload2(uintParam, uintParam, types.uintType, (a, b) => checkedUint(run(a.value, b.value))),
  ];
}

function divided(a: bigint, b: bigint): bigint {
  if (b === 0n) throw new EvaluationError('division by zero');
  return a / b;
}

function remainder(a: bigint, b: bigint): bigint {
  if (b === 0n) throw new EvaluationError('modulus by zero');
  return a % b;
}

function span(nanos: bigint): Duration {
  return new Duration(checkedInt(nanos));
}

/** For the checker only: the evaluator compares. */
const equality = [overload2(anything, anything, types.boolType, () => false)];

/** CEL's operators (cel-spec `doc/langdef.md`), without those whose operands are evaluated lazily (`evaluate.ts`). */
export const operators: Library = [
  ['_==_', equality],
  ['_!=_', equality],
  ['_?_:_', [overload3(boolParam, anything, anything, types.paramType('A'), (_, yes) => yes)]],
  ['!_', [overload1(boolParam, types.boolType, (a) => !a)]],
  [
    '-_',
    [
      overload1(intParam, types.intType, (a) => checkedInt(-a)),
      overload1(doubleParam, types.doubleType, (a) => -a),
      overload1(durationParam, types.durationType, (a) => span(-a.nanos)),
    ],
  ],
  ['_<_', ordering((order) => order < 0)],
  ['_<=_', ordering((order) => order <= 0)],
  ['_>_', ordering((order) => order > 0)],
  ['_>=_', ordering((order) => order >= 0)],
  [
    '_+_',
    [
      ...whole((a, b) => a + b),
      overload2(doubleParam, doubleParam, types.doubleType, (a, b) => a + b),
      overload2(stringParam, stringParam, types.stringType, (a, b, meter) => {
        walk(meter, a, b);
        return a + b;
      }),
      overload2(bytesParam, bytesParam, types.bytesType, (a, b, meter) => {
        walk(meter, a, b);
        return Buffer.concat([a, b]);
      }),
      overload2(listOfAny, listOfAny, types.listType(types.paramType('A')), (a, b, meter) => {
        walk(meter, a, b);
        return a.concat(b);
      }),
      overload2(timestampParam, durationParam, types.timestampType, (a, b) => later(a, b.nanos)),
      overload2(durationParam, timestampParam, types.timestampType, (a, b) => later(b, a.nanos)),
      overload2(durationParam, durationParam, types.durationType, (a, b) => span(a.nanos + b.nanos)),
    ],
  ],
  [
    '_-_',
    [
      ...whole((a, b) => a - b),
      overload2(doubleParam, doubleParam, types.doubleType, (a, b) => a - b),
      overload2(timestampParam, timestampParam, types.durationType, (a, b) => span(a.nanos - b.nanos)),
      overload2(timestampParam, durationParam, types.timestampType, (a, b) => later(a, -b.nanos)),
      overload2(durationParam, durationParam, types.durationType, (a, b) => span(a.nanos - b.nanos)),
    ],
  ],
  [
    '_*_',
    [...whole((a, b) => a * b), overload2(doubleParam, doubleParam, types.doubleType, (a, b) => a * b)],
  ],
  ['_/_', [...whole(divided), overload2(doubleParam, doubleParam, types.doubleType, (a, b) => a / b)]],
  ['_%_', whole(remainder)],
  [
    '@in',
    [
      overload2(anything, listOfAny, types.boolType, (item, list, meter) => {
        walk(meter, list);
        return listItems(list).some((one) => equals(item, one, meter));
      }),
      overload2(anything, mapOfAny, types.boolType, (key, map) => map.find(key) !== undefined),
    ],
  ],
  [
    '_[_]',
    [
      overload2(listOfAny, intParam, types.paramType('A'), (list, index) => itemAt(list, index)),
      overload2(mapOfAny, anything, types.paramType('B'), (map, key) => {
        const value = map.find(key);
        if (value === undefined) throw new EvaluationError(`no such key: ${keyText(key)}`);
        return value;
      }),
      overload2(
        { ...optionalOfAny, type: types.optionalType(types.listType(types.paramType('V'))) },
        intParam,
        types.optionalType(types.paramType('V')),
        ({ value }, index) => new Optional(memberAt(value, index)),
      ),
      overload2(
        { ...optionalOfAny, type: types.optionalType(mapOfAny.type) },
        anything,
        types.optionalType(types.paramType('B')),
        ({ value }, key) => new Optional(memberAt(value, key)),
      ),
    ],
  ],
  [
    '_[?_]',
    [
      overload2(listOf(types.paramType('V')), intParam, types.optionalType(types.paramType('V')), unused),
      overload2(mapOfAny, anything, types.optionalType(types.paramType('B')), unused),
      overload2(
        { ...optionalOfAny, type: types.optionalType(types.listType(types.paramType('V'))) },
        intParam,
        types.optionalType(types.paramType('V')),
        unused,
      ),
      overload2(
        { ...optionalOfAny, type: types.optionalType(mapOfAny.type) },
        anything,
        types.optionalType(types.paramType('B')),
        unused,
      ),
    ],
  ],
  [
    'size',
    [stringParam, bytesParam, listOfAny, mapOfAny].flatMap((param) => {
      const form = overload1<Value>(param, types.intType, (value, meter) => {
        if (typeof value === 'string') walk(meter, value);
        return size(value);
      });
      return [form, member(form)];
    }),
  ],
];

/** A key as errors print it. */
function keyText(key: Value): string {
  return typeof key === 'object' && key !== null ? typeName(key) : String(key);
}

/** For the checker only: the evaluator reads optional members. */
function unused(): never {
  throw noSuchOverload();
}

/** The value of an optional list or map at an index or key. */
function memberAt(container: Value | undefined, key: Value): Value | undefined {
  if (container === undefined) return undefined;
  if (isMap(container)) return container.find(key);
  return isList(container) && typeof key === 'bigint' ? container.at(Number(key)) : undefined;
}

function itemAt(list: Value, index: bigint): Value {
  const value = isList(list) ? list.at(Number(index)) : undefined;
  if (value === undefined) throw new EvaluationError(`index out of bounds: ${index}`);
  return value;
}

/** The number of code points of a text, not of UTF-16 units. */
function size(value: Value): bigint {
  if (typeof value === 'string') return BigInt(Array.from(value).length);
  if (value instanceof Uint8Array) return BigInt(value.length);
  if (typeof value === 'object' && value !== null && 'size' in value) return BigInt(value.size);
  throw noSuchOverload();
}

const a = types.paramType('A');
const optional = types.optionalType(a);

/** 1 January of the year 1, Go's zero time. */
const zeroTime = -62_135_596_800_000_000_000n;

function isZero(value: Value): boolean {
  if (value === null || value === false || value === '' || value === 0n || value === 0) return true;
  if (typeof value !== 'object') return false;
  if (value instanceof Uint8Array) return value.length === 0;
  if (isUint(value)) return value.value === 0n;
  if (isDuration(value)) return value.nanos === 0n;
  if (isTimestamp(value)) return value.nanos === zeroTime;
  return (isList(value) || isMap(value)) && value.size === 0;
}

/** Optional values (cel-go `cel/library.go`, OptionalTypes). `or` and `orValue` are lazy, in `evaluate.ts`. */
export const optionalFunctions: Library = [
  ['optional.of', [overload1(anything, optional, (value) => new Optional(value))]],
  [
    'optional.ofNonZeroValue',
    [overload1(anything, optional, (value) => (isZero(value) ? noValue : new Optional(value)))],
  ],
  ['optional.none', [overload0(optional, () => noValue)]],
  ['hasValue', [member(overload1(optionalOfAny, types.boolType, ({ value }) => value !== undefined))]],
  [
    'value',
    [
      member(
        overload1(optionalOfAny, a, ({ value }) => {
          if (value === undefined) throw new EvaluationError('optional.none() dereference');
          return value;
        }),
      ),
    ],
  ],
  [
    'or',
    [
      member(
        overload2(optionalOfAny, optionalOfAny, optional, (value, other) =>
          value.value === undefined ? other : value,
        ),
      ),
    ],
  ],
  [
    'orValue',
    [
      member(
        overload2(optionalOfAny, anything, a, ({ value }, other) => (value === undefined ? other : value)),
      ),
    ],
  ],
  ['optional.unwrap', [overload1(listOf(optional), types.listType(a), (list) => unwrap(listItems(list)))]],
  ['unwrapOpt', [member(overload1(listOf(optional), types.listType(a), (list) => unwrap(listItems(list))))]],
];

function unwrap(items: readonly Value[]): PlainList {
  return new PlainList(
    items.flatMap((item) => (isOptional(item) && item.value !== undefined ? [item.value] : [])),
  );
}
