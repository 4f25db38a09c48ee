import { formatDuration, formatTimestamp } from '../go-time.ts';
import type { Meter } from '../meter.ts';
import {
  EvaluationError,
  isList,
  isMap,
  isUint,
  listItems,
  type ListValue,
  typeName,
  type Value,
} from '../values.ts';
import { formatDouble } from './conversions.ts';
import { walk } from '../walk.ts';

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
