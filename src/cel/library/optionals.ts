import {
  anything,
  type Library,
  listOf,
  member,
  optionalOfAny,
  overload0,
  overload1,
  overload2,
} from '../overload.ts';
import * as types from '../types.ts';
import {
  EvaluationError,
  isDuration,
  isList,
  isMap,
  isOptional,
  isTimestamp,
  isUint,
  listItems,
  noValue,
  Optional,
  PlainList,
  type Value,
} from '../values.ts';

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
