import { compare, equals, walk, walkItems } from '../equality.ts';
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
  intParam,
  overload3,
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
  isList,
  PlainList,
} from '../values.ts';

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

/** The internal function of `sortBy`, under a name that no expression can contain. */
export const sortByKeys = '@sortByAssociatedKeys';

const comparable = new Set([
  ...['bool', 'int', 'uint', 'double', 'string', 'bytes'],
  ...['google.protobuf.Timestamp', 'google.protobuf.Duration'],
]);
/** Steps for each item of a range, so that ranges beyond the cost limit are refused before they are created. */
const stepsPerNumber = 10;

const listOfLists = { ...listOfAny, type: types.listType(listOfAny.type) };
const listOfDyn = { ...listOfAny, type: types.listType(types.dynType) };

/** cel-go's list functions, version 3 (`ext/lists.go`), which Kubernetes has since 1.34. */
export const listExtensions: Library = [
  ['slice', [member(overload3(listOfAny, intParam, intParam, listOfAny.type, slice))]],
  [
    'flatten',
    [
      member(overload1(listOfLists, listOfAny.type, (list, meter) => flat(list, 1n, meter))),
      member(overload2(listOfDyn, intParam, listOfDyn.type, flat)),
    ],
  ],
  [
    'lists.range',
    [
      overload1(intParam, types.listType(types.intType), (length, meter) => {
        meter.work(Math.max(0, Number(length)) * stepsPerNumber);
        return new PlainList(Array.from({ length: Math.max(0, Number(length)) }, (_, i) => BigInt(i)));
      }),
    ],
  ],
  [
    'reverse',
    [
      member(
        overload1(listOfAny, listOfAny.type, (list, meter) => {
          walk(meter, list);
          return new PlainList(listItems(list).reverse());
        }),
      ),
    ],
  ],
  ['distinct', [member(overload1(listOfAny, listOfAny.type, distinct))]],
  [
    'sort',
    orderedTypes.map((type) =>
      member(overload1(listOf(type), types.listType(type), (list, meter) => sortedBy(list, list, meter))),
    ),
  ],
  [
    sortByKeys,
    orderedTypes.map((type) => member(overload2(listOfAny, listOf(type), listOfAny.type, sortedBy))),
  ],
];

function slice(list: ListValue, start: bigint, end: bigint, meter: Meter): Value {
  const call = `cannot slice(${start}, ${end})`;
  if (start < 0n || end < 0n) throw new EvaluationError(`${call}, negative indexes not supported`);
  if (start > end) throw new EvaluationError(`${call}, start index must be less than or equal to end index`);
  if (BigInt(list.size) < end) throw new EvaluationError(`${call}, list is length ${list.size}`);
  walk(meter, list);
  return new PlainList(listItems(list).slice(Number(start), Number(end)));
}

function flat(list: ListValue, depth: bigint, meter: Meter): PlainList {
  if (depth < 0n) throw new EvaluationError('level must be non-negative');
  walk(meter, list);
  return new PlainList(
    listItems(list).flatMap((item) =>
      depth > 0n && isList(item) ? listItems(flat(item, depth - 1n, meter)) : [item],
    ),
  );
}

function distinct(list: ListValue, meter: Meter): Value {
  const found: Value[] = [];
  for (const item of listItems(list)) {
    if (!found.some((one) => equals(item, one, meter))) found.push(item);
  }
  return new PlainList(found);
}

/** The items of a list in the order of their keys. @throws {EvaluationError} when the keys are not comparable. */
export function sortedBy(list: ListValue, keys: ListValue, meter: Meter): Value {
  if (list.size !== keys.size) {
    const sizes = `${list.size} and ${keys.size} elements respectively`;
    const wanted = 'expected a list of the same size as the associated keys list, but got';
    throw new EvaluationError(`${sortByKeys}() ${wanted} ${sizes}`);
  }
  const found = listItems(keys);
  const [first] = found;
  if (first === undefined) return list;
  const type = typeName(first);
  if (!comparable.has(type)) throw new EvaluationError('list elements must be comparable');
  // Go finds the different type while it compares.
  if (found.length > 1 && found.some((key) => typeName(key) !== type))
    throw new EvaluationError('list elements must have the same type');
  meter.work(list.size ** 2);
  const pairs = listItems(list).map((item, i): [Value, Value] => [item, found[i] ?? null]);
  return new PlainList(pairs.sort(([, a], [, b]) => compare(a, b) ?? 0).map(([item]) => item));
}
