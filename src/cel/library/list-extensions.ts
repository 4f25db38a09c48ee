import { compare, equals } from '../equality.ts';
import type { Meter } from '../meter.ts';
import {
  intParam,
  type Library,
  listOf,
  listOfAny,
  member,
  overload1,
  overload2,
  overload3,
} from '../overload.ts';
import * as types from '../types.ts';
import {
  EvaluationError,
  isList,
  listItems,
  type ListValue,
  PlainList,
  typeName,
  type Value,
} from '../values.ts';
import { orderedTypes } from './lists.ts';
import { walk } from '../walk.ts';

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
