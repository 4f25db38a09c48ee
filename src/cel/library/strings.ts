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
import { goQuote } from '../../objects/formats/go-text.ts';
import type { Meter } from '../meter.ts';
import * as types from '../types.ts';
import { boolType, listType } from '../types.ts';
import { EvaluationError, listItems, noSuchOverload, PlainList, type ListValue } from '../values.ts';
import { formatText } from './conversions.ts';
import { walk } from '../equality.ts';
import {
  compilePattern,
  isCompiled,
  type PatternProgram,
  findMatches,
  hasMatch,
} from '../patterns/program.ts';
import { compileSteps } from '../patterns/syntax.ts';

/**
 * Searches strings in linear time. `String.indexOf` takes time proportional to the product of both lengths for some
 * strings (`aaa…baaa…` in `aaa…`), and is used for short ones only.
 */
const smallProduct = 1_000_000;

function isSmall(text: string, part: string): boolean {
  return text.length * part.length <= smallProduct;
}

/** `text.indexOf(part, from)`. @param from in units of UTF-16. */
export function indexOfPart(text: string, part: string, from = 0): number {
  if (isSmall(text, part)) return text.indexOf(part, from);
  const [first] = starts(unitsOf(text, false), unitsOf(part, false), from, true);
  return first ?? -1;
}

/** `text.lastIndexOf(part, from)`. @param from in units of UTF-16. */
export function lastIndexOfPart(text: string, part: string, from = text.length): number {
  if (isSmall(text, part)) return text.lastIndexOf(part, from);
  // From the end: a part that begins at `from` or before ends before `from` plus its length.
  const behind = Math.max(text.length - part.length - from, 0);
  const [first] = starts(unitsOf(text, true), unitsOf(part, true), behind, true);
  return first === undefined ? -1 : text.length - first - part.length;
}

/** `text.split(part)`. @param part is not empty. */
export function splitAtPart(text: string, part: string): string[] {
  if (isSmall(text, part)) return text.split(part);
  const pieces: string[] = [];
  let at = 0;
  for (const start of starts(unitsOf(text, false), unitsOf(part, false), 0, false)) {
    pieces.push(text.slice(at, start));
    at = start + part.length;
  }
  return [...pieces, text.slice(at)];
}

function unitsOf(text: string, backwards: boolean): Uint16Array {
  const units = new Uint16Array(text.length);
  for (let at = 0; at < text.length; at++) units[at] = text.charCodeAt(at);
  return backwards ? units.reverse() : units;
}

/** The offsets of the parts that do not overlap (Knuth, Morris and Pratt). */
function starts(text: Uint16Array, part: Uint16Array, from: number, onlyFirst: boolean): number[] {
  const borders = bordersOf(part);
  const found: number[] = [];
  let matched = 0;
  for (let at = from; at < text.length; at++) {
    while (matched > 0 && part[matched] !== text[at]) matched = borders[matched] ?? 0;
    if (part[matched] === text[at]) matched += 1;
    if (matched < part.length) continue;
    found.push(at + 1 - part.length);
    if (onlyFirst) return found;
    matched = 0;
  }
  return found;
}

/** For each length of a prefix of the part: its longest proper prefix that is also a suffix of it. */
function bordersOf(part: Uint16Array): Uint32Array {
  const borders = new Uint32Array(part.length + 1);
  let length = 0;
  for (let at = 1; at < part.length; at++) {
    while (length > 0 && part[length] !== part[at]) length = borders[length] ?? 0;
    if (part[length] === part[at]) length += 1;
    borders[at + 1] = length;
  }
  return borders;
}

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

function compiled(pattern: string, meter: Meter): PatternProgram {
  meter.compile(pattern, compileSteps(pattern), isCompiled(pattern));
  return compilePattern(pattern);
}

/** @throws {EvaluationError} with the text of Kubernetes' functions. */
function found(value: string, pattern: string, limit: number, meter: Meter): string[] {
  let program: PatternProgram;
  try {
    program = compiled(pattern, meter);
  } catch (error) {
    if (error instanceof EvaluationError) throw new EvaluationError(`Illegal regex: ${error.message}`);
    throw error;
  }
  return findMatches(program, value, limit, meter);
}

function findAll(value: string, pattern: string, limit: bigint, meter: Meter): PlainList {
  return new PlainList(found(value, pattern, Number(limit), meter));
}

const matches = overload2(stringParam, stringParam, boolType, (value, pattern, meter) =>
  hasMatch(compiled(pattern, meter), value, meter),
);

const findOverload = overload2(
  stringParam,
  stringParam,
  stringType,
  (value, pattern, meter) => found(value, pattern, 1, meter)[0] ?? '',
);

/** `matches`, and Kubernetes' `find` and `findAll` (`apiserver/pkg/cel/library/regex.go`). */
export const patternFunctions: Library = [
  ['matches', [matches, member(matches)]],
  ['find', [member(findOverload)]],
  [
    'findAll',
    [
      member(
        overload2(stringParam, stringParam, listType(stringType), (value, pattern, meter) =>
          findAll(value, pattern, -1n, meter),
        ),
      ),
      member(overload3(stringParam, stringParam, intParam, listType(stringType), findAll)),
    ],
  ],
];
