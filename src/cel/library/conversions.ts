import {
  formatDuration,
  formatTimestamp,
  parseGoDuration,
  parseTimestamp,
  secondsOf,
} from '../json-values.ts';
import {
  anything,
  boolParam,
  bytesParam,
  doubleParam,
  durationParam,
  intParam,
  type Library,
  overload1,
  stringParam,
  timestampParam,
  uintParam,
} from '../overload.ts';
import * as types from '../types.ts';
import {
  checkedInt,
  checkedUint,
  Duration,
  EvaluationError,
  Timestamp,
  typeName,
  TypeValue,
  isList,
  isMap,
  isUint,
  listItems,
  type ListValue,
  type Value,
} from '../values.ts';
import { walk } from '../equality.ts';
import type { Meter } from '../meter.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });
const nanosPerSecond = 1_000_000_000n;
/** The number of digits of the largest 64-bit number. */
const maxDigits = 20;

/** A double without its fraction. @throws {EvaluationError} when it does not fit into 64 bits. */
function truncated(value: number): bigint {
  if (!Number.isFinite(value)) throw new EvaluationError('integer overflow');
  return BigInt(Math.trunc(value));
}

function wholeNumber(value: string): bigint {
  if (!/^[+-]?\d+$/.test(value))
    throw new EvaluationError(`strconv.ParseInt: parsing ${JSON.stringify(value)}: invalid syntax`);
  const digits = value.replace(/^[+-]?0*(?=\d)/, '');
  // More digits do not fit into 64 bits, and are slow to parse.
  const size = BigInt(digits.slice(0, maxDigits + 1));
  return value.startsWith('-') ? -size : size;
}

function fraction(value: string): number {
  const known = new Map([
    ['inf', Infinity],
    ['+inf', Infinity],
    ['-inf', -Infinity],
    ['infinity', Infinity],
    ['nan', Number.NaN],
  ]).get(value.toLowerCase());
  if (known !== undefined) return known;
  if (!/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(value)) {
    throw new EvaluationError(`strconv.ParseFloat: parsing ${JSON.stringify(value)}: invalid syntax`);
  }
  return Number(value);
}

/** A double as Go's `strconv.FormatFloat(f, 'g', -1, 64)` prints it: with an exponent below -4 and from 6 on. */
function formatDouble(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  if (Object.is(value, -0)) return '-0';
  const [mantissa = '0', power = '0'] = value.toExponential().split('e');
  const exponent = Number(power);
  if (exponent >= -4 && exponent < 6) return String(value);
  const digits = String(Math.abs(exponent)).padStart(2, '0');
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${digits}`;
}

function truth(value: string): boolean {
  if (['1', 't', 'T', 'TRUE', 'true', 'True'].includes(value)) return true;
  if (['0', 'f', 'F', 'FALSE', 'false', 'False'].includes(value)) return false;
  throw new EvaluationError(`strconv.ParseBool: parsing ${JSON.stringify(value)}: invalid syntax`);
}

/** Type conversions (cel-spec `doc/langdef.md`, "List of Standard Definitions"). */
export const conversions: Library = [
  ['dyn', [overload1(anything, types.dynType, (value) => value)]],
  [
    'type',
    [overload1(anything, types.typeType(types.paramType('A')), (value) => new TypeValue(typeName(value)))],
  ],
  [
    'int',
    [
      overload1(intParam, types.intType, (value) => value),
      overload1(uintParam, types.intType, ({ value }) => checkedInt(value)),
      overload1(doubleParam, types.intType, (value) => checkedInt(truncated(value))),
      overload1(stringParam, types.intType, (value) => checkedInt(wholeNumber(value))),
      overload1(timestampParam, types.intType, ({ nanos }) => nanos / nanosPerSecond),
      overload1(durationParam, types.intType, ({ nanos }) => nanos),
    ],
  ],
  [
    'uint',
    [
      overload1(uintParam, types.uintType, (value) => value),
      overload1(intParam, types.uintType, (value) => checkedUint(value)),
      overload1(doubleParam, types.uintType, (value) => checkedUint(truncated(value))),
      overload1(stringParam, types.uintType, (value) => checkedUint(wholeNumber(value))),
    ],
  ],
  [
    'double',
    [
      overload1(doubleParam, types.doubleType, (value) => value),
      overload1(intParam, types.doubleType, (value) => Number(value)),
      overload1(uintParam, types.doubleType, ({ value }) => Number(value)),
      overload1(stringParam, types.doubleType, fraction),
    ],
  ],
  [
    'string',
    [
      overload1(stringParam, types.stringType, (value) => value),
      overload1(boolParam, types.stringType, (value) => String(value)),
      overload1(intParam, types.stringType, (value) => String(value)),
      overload1(uintParam, types.stringType, ({ value }) => String(value)),
      overload1(doubleParam, types.stringType, formatDouble),
      overload1(timestampParam, types.stringType, formatTimestamp),
      overload1(durationParam, types.stringType, ({ nanos }) => formatDuration(nanos)),
      overload1(bytesParam, types.stringType, (value, meter) => {
        walk(meter, value);
        try {
          return utf8.decode(value);
        } catch {
          throw new EvaluationError('invalid UTF-8 in bytes, cannot convert to string');
        }
      }),
    ],
  ],
  [
    'bytes',
    [
      overload1(bytesParam, types.bytesType, (value) => value),
      overload1(stringParam, types.bytesType, (value, meter) => {
        walk(meter, value);
        return Buffer.from(value);
      }),
    ],
  ],
  [
    'bool',
    [overload1(boolParam, types.boolType, (value) => value), overload1(stringParam, types.boolType, truth)],
  ],
  [
    'timestamp',
    [
      overload1(timestampParam, types.timestampType, (value) => value),
      overload1(stringParam, types.timestampType, (value) => parseTimestamp(value)),
      overload1(intParam, types.timestampType, (value) => new Timestamp(secondsOf(value) * nanosPerSecond)),
    ],
  ],
  [
    'duration',
    [
      overload1(durationParam, types.durationType, (value) => value),
      overload1(stringParam, types.durationType, (value) => parseGoDuration(value)),
      overload1(intParam, types.durationType, (value) => new Duration(value)),
    ],
  ],
];

const clause = /%(?:\.(\d+))?(.)/gsu;
const maxPrecision = 1000;

/** `'%s is %d'.format([…])` (cel-go `ext/formatting.go`). @throws {EvaluationError} */
export function formatText(pattern: string, list: ListValue, meter: Meter): string {
  walk(meter, pattern, list);
  const args = listItems(list);
  let next = 0;
  const out = pattern.replace(clause, (_all, precision: string | undefined, verb: string) => {
    if (verb === '%') return '%';
    if (next >= args.length) throw new EvaluationError(`index ${next} out of range`);
    const arg = args[next] ?? null;
    next++;
    const text = formatted(verb, precision === undefined ? undefined : Number(precision), arg, meter);
    walk(meter, text);
    return text;
  });
  if (/(?:^|[^%])(?:%%)*%$/.test(pattern)) throw new EvaluationError('unexpected end of format string');
  return out;
}

function formatted(verb: string, precision: number | undefined, arg: Value, meter: Meter): string {
  if (precision !== undefined && precision > maxPrecision) {
    throw new EvaluationError(`precision ${precision} is larger than ${maxPrecision}`);
  }
  switch (verb) {
    case 's':
      return shown(arg, meter);
    case 'd':
      return decimal(arg);
    case 'f':
      return asDouble(verb, arg).toFixed(Math.min(precision ?? 6, 100));
    case 'e':
      return exponential(asDouble(verb, arg), precision ?? 6);
    case 'b':
      return typeof arg === 'boolean' ? String(Number(arg)) : whole(verb, arg).toString(2);
    case 'o':
      return whole(verb, arg).toString(8);
    case 'x':
      return hexadecimal(arg);
    case 'X':
      return hexadecimal(arg).toUpperCase();
    default:
      throw new EvaluationError(`unrecognized formatting clause "${verb}"`);
  }
}

function wrongType(verb: string, names: string, arg: Value): EvaluationError {
  const detail = `was given ${typeName(arg)}`;
  return new EvaluationError(
    `error during formatting: %${verb} clause can only be used on ${names}, ${detail}`,
  );
}

function whole(verb: string, arg: Value): bigint {
  if (typeof arg === 'bigint') return arg;
  if (isUint(arg)) return arg.value;
  throw wrongType(verb, 'integers', arg);
}

function decimal(arg: Value): string {
  return typeof arg === 'number' ? formatDouble(arg) : String(whole('d', arg));
}

function asDouble(verb: string, arg: Value): number {
  if (typeof arg === 'number') return arg;
  if (typeof arg === 'bigint') return Number(arg);
  if (isUint(arg)) return Number(arg.value);
  throw wrongType(verb, 'doubles', arg);
}

/** Go prints at least two digits of an exponent. */
function exponential(value: number, precision: number): string {
  return value.toExponential(Math.min(precision, 100)).replace(/e([+-])(\d)$/, 'e$10$2');
}

function hexadecimal(arg: Value): string {
  if (typeof arg === 'string') return Buffer.from(arg).toString('hex');
  if (arg instanceof Uint8Array) return Buffer.from(arg).toString('hex');
  return whole('x', arg).toString(16);
}

/** Any value as `%s` prints it. */
function shown(arg: Value, meter: Meter): string {
  meter.work(1);
  if (typeof arg === 'string') return arg;
  if (typeof arg === 'number') return formatDouble(arg);
  if (typeof arg === 'bigint' || typeof arg === 'boolean' || arg === null) return String(arg);
  if (arg instanceof Uint8Array) return Buffer.from(arg).toString();
  if (isList(arg))
    return `[${listItems(arg)
      .map((item) => shown(item, meter))
      .join(', ')}]`;
  if (isMap(arg)) {
    const pairs = arg.keys().map((key) => `${shown(key, meter)}: ${shown(arg.find(key) ?? null, meter)}`);
    return `{${pairs.sort().join(', ')}}`;
  }
  switch (arg.kind) {
    case 'uint':
      return String(arg.value);
    case 'timestamp':
      return formatTimestamp(arg);
    case 'duration':
      return formatDuration(arg.nanos);
    case 'type':
      return arg.name;
    case 'optional':
    case 'opaque':
      throw wrongType(
        's',
        'strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps',
        arg,
      );
  }
}
