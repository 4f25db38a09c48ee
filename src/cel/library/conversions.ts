import { formatDuration, formatTimestamp, parseGoDuration, parseTimestamp, secondsOf } from '../go-time.ts';
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
} from '../values.ts';
import { walk } from '../walk.ts';

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
export function formatDouble(value: number): string {
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
