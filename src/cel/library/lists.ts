import { compare, equals } from '../equality.ts';
import type { Meter } from '../meter.ts';
import {
  anything,
  type Library,
  listOf,
  listOfAny,
  member,
  type Overload,
  overload1,
  overload2,
} from '../overload.ts';
import * as types from '../types.ts';
import {
  checkedInt,
  checkedUint,
  Duration,
  EvaluationError,
  isDuration,
  isUint,
  listItems,
  type ListValue,
  noSuchOverload,
  Optional,
  typeName,
  Uint,
  type Value,
} from '../values.ts';
import { walk, walkItems } from '../walk.ts';

/** Types with an order. */
export const orderedTypes = [
  types.intType,
  types.uintType,
  types.doubleType,
  types.boolType,
  types.durationType,
  types.timestampType,
  types.stringType,
  types.bytesType,
];

function order(a: Value, b: Value): number {
  const found = compare(a, b);
  if (found === undefined) throw noSuchOverload();
  return found;
}

function isSorted(list: ListValue, meter: Meter): boolean {
  walkItems(meter, list);
  const items = listItems(list);
  return items.every((item, i) => i === 0 || order(items[i - 1] ?? null, item) <= 0);
}

function extreme(name: string, sign: 1 | -1): Overload[] {
  return orderedTypes.map((type) =>
    member(
      overload1(listOf(type), type, (list, meter) => {
        walkItems(meter, list);
        const [first, ...rest] = listItems(list);
        if (first === undefined) throw new EvaluationError(`${name} called on empty list`);
        return rest.reduce((best, item) => (order(item, best) * sign > 0 ? item : best), first);
      }),
    ),
  );
}

/** True for lists whose first item has the type: cel-go chooses an overload by it where the type is unknown. */
function startsWith(list: ListValue, type: types.CelType): boolean {
  const first = list.at(0);
  const name = type === types.durationType ? 'google.protobuf.Duration' : types.formatType(type);
  return first === undefined || typeName(first) === name;
}

function summing(type: types.CelType, zero: Value, add: (a: Value, b: Value) => Value): Overload {
  const items = listOf(type);
  const ofThese = {
    ...items,
    is: (value: Value): value is ListValue => items.is(value) && startsWith(value, type),
  };
  return member(
    overload1(ofThese, type, (list, meter) => {
      walk(meter, list);
      return listItems(list).reduce(add, zero);
    }),
  );
}

function indexIn(items: readonly Value[], wanted: Value, meter: Meter): number {
  return items.findIndex((item) => equals(item, wanted, meter));
}

/** Kubernetes' list functions (`apiserver/pkg/cel/library/lists.go`), and `first` and `last`. */
export const listFunctions: Library = [
  ['isSorted', orderedTypes.map((type) => member(overload1(listOf(type), types.boolType, isSorted)))],
  ['min', extreme('min', -1)],
  ['max', extreme('max', 1)],
  [
    'sum',
    [
      summing(types.intType, 0n, (a, b) => {
        if (typeof a === 'bigint' && typeof b === 'bigint') return checkedInt(a + b);
        throw noSuchOverload();
      }),
      summing(types.uintType, new Uint(0n), (a, b) => {
        if (isUint(a) && isUint(b)) return checkedUint(a.value + b.value);
        throw noSuchOverload();
      }),
      summing(types.doubleType, 0, (a, b) => {
        if (typeof a === 'number' && typeof b === 'number') return a + b;
        throw noSuchOverload();
      }),
      summing(types.durationType, new Duration(0n), (a, b) => {
        if (isDuration(a) && isDuration(b)) return new Duration(checkedInt(a.nanos + b.nanos));
        throw noSuchOverload();
      }),
    ],
  ],
  [
    'indexOf',
    [
      member(
        overload2(listOfAny, anything, types.intType, (list, wanted, meter) =>
          BigInt(indexIn(listItems(list), wanted, meter)),
        ),
      ),
    ],
  ],
  [
    'lastIndexOf',
    [
      member(
        overload2(listOfAny, anything, types.intType, (list, wanted, meter) => {
          const found = indexIn(listItems(list).reverse(), wanted, meter);
          return BigInt(found === -1 ? -1 : list.size - 1 - found);
        }),
      ),
    ],
  ],
  [
    'first',
    [
      member(
        overload1(listOfAny, types.optionalType(types.paramType('A')), (list) => new Optional(list.at(0))),
      ),
    ],
  ],
  [
    'last',
    [
      member(
        overload1(
          listOfAny,
          types.optionalType(types.paramType('A')),
          (list) => new Optional(list.at(list.size - 1)),
        ),
      ),
    ],
  ],
];

/** `sets.contains`, `sets.equivalent`, `sets.intersects` (cel-go `ext/sets.go`). */
export const setFunctions: Library = [
  ['sets.contains', [setFunction(contains)]],
  ['sets.equivalent', [setFunction((a, b, meter) => contains(a, b, meter) && contains(b, a, meter))]],
  ['sets.intersects', [setFunction((a, b, meter) => a.some((item) => indexIn(b, item, meter) !== -1))]],
];

function contains(all: readonly Value[], some: readonly Value[], meter: Meter): boolean {
  return some.every((item) => indexIn(all, item, meter) !== -1);
}

function setFunction(run: (a: readonly Value[], b: readonly Value[], meter: Meter) => boolean): Overload {
  return overload2(listOfAny, listOfAny, types.boolType, (a, b, meter) => {
    walk(meter, a, b);
    return run(listItems(a), listItems(b), meter);
  });
}
