import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { canonicalAmount, canonicalQuantity } from '../../objects/formats/quantity.ts';
import { DecodeError, literalOf, UnmarshalTypeError, type Walk } from './decode-walk.ts';
import { RawNumber } from './json.ts';
import { type LeafSchema, type Schema, setMember } from './schema.ts';

/**
 * - Base64 as Go's base64.StdEncoding reads it, its error texts included.
 * - RFC 3339 times as Go's time.Parse reads them, its error texts included.
 * - Decodes scalars: types checked with Go's texts, times, quantities and base64 put into canonical form.
 */

/** A text that is no base64; the message is Go's CorruptInputError. */
class Base64Error extends Error {
  override readonly name = 'Base64Error';
  constructor(offset: number) {
    super(`illegal base64 data at input byte ${offset}`);
  }
}

const clean = /^[A-Za-z0-9+/]*={0,2}$/;
/** By code unit, whether it is one of the 64 digits: a pattern asked of each takes a tenth of a second a megabyte. */
const isDigit = Array.from({ length: 128 }, (_, code) => /[A-Za-z0-9+/]/.test(String.fromCharCode(code)));

/** The same bytes in canonical spelling: no line breaks, no stray bits. @throws {Base64Error} */
export function canonicalBase64(text: string): string {
  if (text.length % 4 !== 0 || !clean.test(text)) checkQuanta(text);
  else if (!text.endsWith('=')) return text;
  return Buffer.from(text, 'base64').toString('base64');
}

function isBreak(character: string): boolean {
  return character === '\n' || character === '\r';
}

/** Walks groups of four as decodeQuantum does, to find the offset that Go complains about. */
function checkQuanta(text: string): void {
  let at = 0;
  for (;;) {
    for (let n = 0; n < 4;) {
      if (at >= text.length) {
        if (n === 0) return;
        throw new Base64Error(at - n);
      }
      const character = text.charAt(at++);
      if (isDigit[character.charCodeAt(0)] === true) {
        n++;
      } else if (!isBreak(character)) {
        if (character !== '=' || n < 2) throw new Base64Error(at - 1);
        if (n === 2) {
          while (isBreak(text.charAt(at))) at++;
          if (at >= text.length) throw new Base64Error(text.length);
          if (text.charAt(at++) !== '=') throw new Base64Error(at - 1);
        }
        while (isBreak(text.charAt(at))) at++;
        if (at < text.length) throw new Base64Error(at);
        return;
      }
    }
  }
}

/** A text that is no time, or a value out of range; the message is Go's. */
class TimeSyntaxError extends Error {
  override readonly name = 'TimeSyntaxError';
}

const secondsLayout = '2006-01-02T15:04:05Z07:00';
const microLayout = '2006-01-02T15:04:05.000000Z07:00';

/** Date and time up to the minutes: layout element, digits, and the range with its name. */
const elements = [
  { layout: '2006', digits: 4, min: 0, max: 9999, name: 'year', before: '' },
  { layout: '01', digits: 2, min: 1, max: 12, name: 'month', before: '-' },
  { layout: '02', digits: 2, min: 1, max: 31, name: 'day', before: '-' },
  { layout: '15', digits: 2, min: 0, max: 23, name: 'hour', before: 'T' },
  { layout: '04', digits: 2, min: 0, max: 59, name: 'minute', before: ':' },
  { layout: '05', digits: 2, min: 0, max: 59, name: 'second', before: ':' },
] as const;

/**
 * A metav1.Time: UTC, whole seconds (`2024-01-02T03:04:05Z`); undefined for Go's zero time, which is encoded as null.
 * @throws {TimeSyntaxError}
 */
export function canonicalTime(text: string): string | undefined {
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text) && isCanonical(text)) return nonZero(text);
  const { milliseconds } = parse(text, secondsLayout, false);
  return nonZero(`${new Date(milliseconds).toISOString().slice(0, 19)}Z`);
}

/** A metav1.MicroTime: UTC with six digits behind the point. @throws {TimeSyntaxError} */
export function canonicalMicroTime(text: string): string | undefined {
  const { milliseconds, fraction } = parse(text, microLayout, true);
  return nonZero(`${new Date(milliseconds).toISOString().slice(0, 19)}.${fraction}Z`);
}

function isCanonical(text: string): boolean {
  const milliseconds = Date.parse(text);
  return !Number.isNaN(milliseconds) && new Date(milliseconds).toISOString().startsWith(text.slice(0, 19));
}

function nonZero(text: string): string | undefined {
  return text.startsWith('0001-01-01T00:00:00') ? undefined : text;
}

function parse(text: string, layout: string, micro: boolean): { milliseconds: number; fraction: string } {
  let rest = text;
  const fail = (element: string): TimeSyntaxError =>
    new TimeSyntaxError(
      `parsing time ${JSON.stringify(text)} as "${layout}": cannot parse ${JSON.stringify(rest)} as "${element}"`,
    );
  const range = (what: string): TimeSyntaxError =>
    new TimeSyntaxError(`parsing time ${JSON.stringify(text)}: ${what} out of range`);
  const numbers: number[] = [];
  for (const element of elements) {
    if (!rest.startsWith(element.before)) throw fail(element.before);
    rest = rest.slice(element.before.length);
    const digits = rest.slice(0, element.digits);
    // Go reads one or two digits for the hour, exactly two for the others.
    const found = /^\d+$/.test(digits) && digits.length === element.digits ? digits : '';
    const short = element.name === 'hour' && found === '' ? (/^\d/.exec(rest)?.[0] ?? '') : found;
    if (short === '') throw fail(element.layout);
    const value = Number(short);
    // Go checks the day of a month only when all is read.
    if (element.name === 'day' ? false : value < element.min || value > element.max)
      throw range(element.name);
    numbers.push(value);
    rest = rest.slice(short.length);
  }
  let fraction = '000000';
  if (micro) {
    const match = /^[.,](\d{6})/.exec(rest);
    if (match?.[1] === undefined) throw fail('.000000');
    fraction = match[1];
    rest = rest.slice(7);
  } else {
    rest = rest.replace(/^[.,]\d+/, '');
  }
  let offsetMinutes = 0;
  if (rest.startsWith('Z')) {
    rest = rest.slice(1);
  } else {
    const zone = /^([+-])(\d\d):(\d\d)/.exec(rest);
    if (zone === null) throw fail('Z07:00');
    const hours = Number(zone[2]);
    const minutes = Number(zone[3]);
    if (hours > 24) throw range('time zone offset hour');
    if (minutes > 60) throw range('time zone offset minute');
    offsetMinutes = (hours * 60 + minutes) * (zone[1] === '-' ? -1 : 1);
    rest = rest.slice(6);
  }
  if (rest !== '') {
    throw new TimeSyntaxError(`parsing time ${JSON.stringify(text)}: extra text: ${JSON.stringify(rest)}`);
  }
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = numbers;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (day < 1 || date.getUTCMonth() !== month - 1) throw range('day');
  date.setUTCHours(hour, minute - offsetMinutes, second);
  return { milliseconds: date.getTime(), fraction };
}

interface Width {
  readonly bits: number;
  readonly min: bigint;
  readonly max: bigint;
}
/** Used in errors only. */
const uint8: LeafSchema = { type: 'int32', goType: 'uint8' };
const int32: Width = { bits: 32, min: -(2n ** 31n), max: 2n ** 31n - 1n };
const int64: Width = { bits: 64, min: -(2n ** 63n), max: 2n ** 63n - 1n };

/** The canonical value; undefined for a zero time. @throws {DecodeError} */
export function decodeLeaf(schema: LeafSchema, value: unknown, walk: Walk): unknown {
  switch (schema.type) {
    case 'string':
      if (typeof value !== 'string') throw walk.mismatch(value, schema);
      return value;
    case 'boolean':
      if (typeof value !== 'boolean') throw walk.mismatch(value, schema);
      return value;
    case 'int32':
      return decodeInteger(value, int32, schema, schema.goType, walk);
    case 'int64':
      return decodeInteger(value, int64, schema, schema.goType, walk);
    case 'number':
      return decodeNumber(value, schema, walk);
    case 'intOrString':
      return typeof value === 'string' ? value : decodeInteger(value, int32, schema, 'int32', walk);
    case 'time':
      if (typeof value !== 'string') throw walk.mismatch(value, schema, 'string');
      return translated(() => canonicalTime(value));
    case 'microTime':
      if (typeof value !== 'string') throw walk.mismatch(value, schema, 'string');
      return translated(() => canonicalMicroTime(value));
    case 'bytes':
      if (Array.isArray(value)) return bytesOf(value, walk);
      if (typeof value !== 'string') throw walk.mismatch(value, schema);
      return walk.fromMap
        ? translated(() => canonicalBase64(value), 'error decoding from json: ')
        : translated(() => canonicalBase64(value), '', UnmarshalTypeError);
    case 'quantity':
      return translated(() => canonicalQuantity(quantityText(value)));
    case 'any':
    case 'fieldsV1':
      return walk.hasRawNumbers ? withoutRawNumbers(value) : value;
  }
}

/** Bytes may also come as a list of numbers, as any list in Go. */
function bytesOf(list: readonly unknown[], walk: Walk): string {
  const bytes = list.map((item) => {
    if (item === null) return 0;
    if (typeof item === 'number' && item >= 0 && item < 256) return item;
    throw walk.mismatch(item, uint8);
  });
  return Buffer.from(bytes).toString('base64');
}

/** A quantity in a map, which is a list of resources. @throws {DecodeError} when it is none. */
export function decodeAmount(value: unknown): string {
  return translated(() => canonicalAmount(quantityText(value)));
}

/** A value has invalid syntax: the message is sent to the client unchanged. */
function translated<T>(parse: () => T, prefix = '', Kind = DecodeError): T {
  try {
    return parse();
  } catch (error) {
    throw error instanceof Error ? new Kind(prefix + error.message) : error;
  }
}

/** Quantity.UnmarshalJSON takes any JSON text, without its quotes. */
function quantityText(value: unknown): string {
  if (typeof value === 'string') return value.trim();
  if (typeof value === 'number' || value instanceof RawNumber) return literalOf(value);
  return JSON.stringify(value);
}

function decodeInteger(value: unknown, width: Width, schema: Schema, goType: string, walk: Walk): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= -(2 ** 31) && value < 2 ** 31)
    return value;
  if (typeof value !== 'number' && !(value instanceof RawNumber)) throw walk.mismatch(value, schema, goType);
  const literal = literalOf(value);
  if (/^-?\d{1,20}$/.test(literal)) {
    const exact = BigInt(literal);
    if (exact >= width.min && exact <= width.max) return Number(exact);
    // Go converts a map's int64 to a smaller type without looking.
    if (walk.fromMap) return Number(BigInt.asIntN(width.bits, exact));
  } else if (walk.fromMap && Number.isSafeInteger(Number(literal))) {
    return Number(literal);
  }
  throw walk.mismatch(value, schema, goType);
}

function decodeNumber(value: unknown, schema: Schema, walk: Walk): number {
  if (typeof value === 'number') return value;
  if (value instanceof RawNumber) {
    const number = Number(value.literal);
    if (Number.isFinite(number)) return number;
  }
  throw walk.mismatch(value, schema);
}

/** A copy of a JSON value with plain numbers, or the value itself if all are plain. */
export function withoutRawNumbers(value: unknown): unknown {
  if (value instanceof RawNumber) return Number(value.literal);
  if (Array.isArray(value)) return value.map(withoutRawNumbers);
  if (!isRecord(value)) return value;
  const copy: JsonRecord = {};
  for (const [key, member] of Object.entries(value)) setMember(copy, key, withoutRawNumbers(member));
  return copy;
}
