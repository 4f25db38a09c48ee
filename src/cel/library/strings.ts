import {
  dynamic,
  intParam,
  type Library,
  listOf,
  member,
  type Overload,
  overload1,
  overload2,
  overload3,
  overload4,
  stringParam,
} from '../overload.ts';
import { goQuote } from '../../objects/go-text.ts';
import type { Meter } from '../meter.ts';
import * as types from '../types.ts';
import { EvaluationError, listItems, noSuchOverload, PlainList, type ListValue } from '../values.ts';
import { formatText } from './format-text.ts';
import { indexOfPart, lastIndexOfPart, splitAtPart } from './substrings.ts';
import { walk } from '../walk.ts';

/** White space as Unicode and Go define it: without zero-width spaces and byte order marks. */
const space = /\p{White_Space}/u;

function outOfRange(index: bigint | number): EvaluationError {
  return new EvaluationError(`index out of range: ${index}`);
}

/** Go's `strings.TrimSpace`. */
function trim(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && space.test(value.charAt(start))) start++;
  while (end > start && space.test(value.charAt(end - 1))) end--;
  return value.slice(start, end);
}

/** The code points of a string, which indexes count, instead of UTF-16 units. */
function characters(value: string): readonly string[] {
  return Array.from(value);
}

function charAt(value: string, index: bigint, meter: Meter): string {
  walk(meter, value);
  const list = characters(value);
  if (index < 0n || index > list.length) throw outOfRange(index);
  return list[Number(index)] ?? '';
}

function find(value: string, part: string, from: bigint, meter: Meter): bigint {
  walk(meter, value, part);
  const list = characters(value);
  if (from < 0n || from > list.length) throw outOfRange(from);
  const start = list.slice(0, Number(from)).join('').length;
  const found = indexOfPart(value, part, start);
  return found === -1 ? -1n : BigInt(characters(value.slice(0, found)).length);
}

function findLast(value: string, part: string, from: bigint | undefined, meter: Meter): bigint {
  walk(meter, value, part);
  const list = characters(value);
  if (from !== undefined && (from < 0n || from >= list.length)) throw outOfRange(from);
  const start = from === undefined ? value.length : list.slice(0, Number(from)).join('').length;
  const found = lastIndexOfPart(value, part, start);
  return found === -1 ? -1n : BigInt(characters(value.slice(0, found)).length);
}

function substring(value: string, start: bigint, end: bigint | undefined, meter: Meter): string {
  walk(meter, value);
  const list = characters(value);
  const last = end ?? BigInt(list.length);
  if (start < 0n || start > list.length) throw outOfRange(start);
  if (last < 0n || last > list.length) throw outOfRange(last);
  if (start > last) throw new EvaluationError(`invalid substring range. start: ${start}, end: ${last}`);
  return list.slice(Number(start), Number(last)).join('');
}

function replace(value: string, from: string, to: string, limit: bigint, meter: Meter): string {
  walk(meter, value, value);
  const pieces = from === '' ? ['', ...characters(value), ''] : splitAtPart(value, from);
  const most = limit < 0n ? pieces.length - 1 : Math.min(Number(limit), pieces.length - 1);
  // Charged in advance, since a long replacement can turn a short string into a very long one.
  meter.work(Math.ceil(most * to.length * 0.1));
  return pieces.slice(0, most).join(to) + (most > 0 ? to : '') + pieces.slice(most).join(from);
}

function split(value: string, separator: string, limit: bigint, meter: Meter): ListValue {
  walk(meter, value, value);
  if (limit === 0n) return new PlainList([]);
  const pieces = separator === '' ? characters(value) : splitAtPart(value, separator);
  const most = limit < 0n ? pieces.length : Number(limit);
  if (pieces.length <= most) return new PlainList(pieces);
  return new PlainList([...pieces.slice(0, most - 1), pieces.slice(most - 1).join(separator)]);
}

function join(list: ListValue, separator: string, meter: Meter): string {
  walk(meter, list);
  const pieces = listItems(list).map((item) => {
    if (typeof item !== 'string') throw noSuchOverload();
    walk(meter, item, separator);
    return item;
  });
  return pieces.join(separator);
}

/** A member function of strings without arguments. */
function onText(result: types.CelType, run: (value: string, meter: Meter) => string): Overload {
  return member(
    overload1(stringParam, result, (value, meter) => {
      walk(meter, value);
      return run(value, meter);
    }),
  );
}

function test(run: (value: string, other: string) => boolean): Overload[] {
  return [
    member(
      overload2(stringParam, stringParam, types.boolType, (value, other, meter) => {
        walk(meter, value);
        return run(value, other);
      }),
    ),
  ];
}

const { intType, stringType } = types;
const strings = types.listType(stringType);

/** CEL's string functions, and cel-go's `ext.Strings`, version 2, as in Kubernetes. */
export const stringFunctions: Library = [
  ['contains', test((value, other) => indexOfPart(value, other) !== -1)],
  ['startsWith', test((value, other) => value.startsWith(other))],
  ['endsWith', test((value, other) => value.endsWith(other))],
  ['charAt', [member(overload2(stringParam, intParam, stringType, charAt))]],
  [
    'indexOf',
    [
      member(
        overload2(stringParam, stringParam, intType, (value, part, meter) => find(value, part, 0n, meter)),
      ),
      member(overload3(stringParam, stringParam, intParam, intType, find)),
    ],
  ],
  [
    'lastIndexOf',
    [
      member(
        overload2(stringParam, stringParam, intType, (value, part, meter) =>
          findLast(value, part, undefined, meter),
        ),
      ),
      member(overload3(stringParam, stringParam, intParam, intType, findLast)),
    ],
  ],
  ['lowerAscii', [onText(stringType, (value) => value.replace(/[A-Z]+/g, (part) => part.toLowerCase()))]],
  ['upperAscii', [onText(stringType, (value) => value.replace(/[a-z]+/g, (part) => part.toUpperCase()))]],
  ['trim', [onText(stringType, trim)]],
  [
    'replace',
    [
      member(
        overload3(stringParam, stringParam, stringParam, stringType, (value, from, to, meter) =>
          replace(value, from, to, -1n, meter),
        ),
      ),
      member(overload4(stringParam, stringParam, stringParam, intParam, stringType, replace)),
    ],
  ],
  [
    'split',
    [
      member(
        overload2(stringParam, stringParam, strings, (value, separator, meter) =>
          split(value, separator, -1n, meter),
        ),
      ),
      member(overload3(stringParam, stringParam, intParam, strings, split)),
    ],
  ],
  [
    'join',
    [
      member(overload1(listOf(stringType), stringType, (list, meter) => join(list, '', meter))),
      member(overload2(listOf(stringType), stringParam, stringType, join)),
    ],
  ],
  [
    'substring',
    [
      member(
        overload2(stringParam, intParam, stringType, (value, start, meter) =>
          substring(value, start, undefined, meter),
        ),
      ),
      member(overload3(stringParam, intParam, intParam, stringType, substring)),
    ],
  ],
  ['format', [member(overload2(stringParam, listOf(dynamic.type), stringType, formatText))]],
  [
    'strings.quote',
    [
      overload1(stringParam, stringType, (value, meter) => {
        walk(meter, value);
        return goQuote(value);
      }),
    ],
  ],
];
