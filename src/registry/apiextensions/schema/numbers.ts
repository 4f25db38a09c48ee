/** The numbers of custom objects, as Go's types have them. */
import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { type FieldError, invalid } from '../../validation/field-errors.ts';

import { checkedFormat } from '../../../objects/formats.ts';

/** The smallest and largest numbers of types; for 64 bits the upper one is the first that does not fit. */
const int32 = [-(2 ** 31), 2 ** 31 - 1] as const;
const int64 = [-(2 ** 63), 2 ** 63] as const;

/**
 * The errors of a number (kube-openapi `validate/validator.go` numberValidator). An integer is compared with the
 * integer part of a limit, unless the limit is none of the type: then both are floats.
 *
 * @param path as error messages show it.
 * @param field as errors name it.
 */
export function numberFaults(
  schema: JSONSchemaProps,
  value: number,
  path: string,
  field: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const misfit = (limit: number, what: string): boolean => {
    const fault = rangeFault(schema, limit, path, what);
    if (fault !== undefined) errors.push(invalid('<nil>', '', fault));
    return fault !== undefined;
  };
  const check = (limit: number | undefined, what: string, judge: (pair: Pair) => Broken | undefined) => {
    if (limit === undefined) return;
    const pair = pairOf(value, limit, misfit(limit, what));
    const broken = judge(pair);
    if (broken === undefined) return;
    const { shown = pair.value, words } = broken;
    const detail = words.startsWith('factor') ? words : `${path} in body ${words}`;
    errors.push({
      field,
      reason: 'FieldValueInvalid',
      body: `Invalid value: ${pair.show(shown)}: ${detail}`,
    });
  };
  misfit(value, 'Checked');
  check(schema.multipleOf, 'MultipleOf', (pair) => judgeMultiple(pair, path));
  check(schema.minimum, 'Minimum boundary', ({ value: number, limit, show }) => {
    const exclusive = schema.exclusiveMinimum === true;
    if (exclusive ? number > limit : number >= limit) return undefined;
    return { words: `should be greater than ${exclusive ? '' : 'or equal to '}${show(limit)}` };
  });
  check(schema.maximum, 'Maximum boundary', ({ value: number, limit, show }) => {
    const exclusive = schema.exclusiveMaximum === true;
    if (exclusive ? number < limit : number <= limit) return undefined;
    return { words: `should be less than ${exclusive ? '' : 'or equal to '}${show(limit)}` };
  });
  return errors;
}

/** A value and a limit as they are compared, and how both are printed. */
interface Pair {
  readonly value: number;
  readonly limit: number;
  readonly isInteger: boolean;
  readonly show: (number: number) => string;
}

interface Broken {
  /** The print of the value. */
  readonly shown?: number;
  readonly words: string;
}

function pairOf(value: number, limit: number, limitMisfits: boolean): Pair {
  const isInteger = !limitMisfits && isInt64(value);
  return isInteger
    ? { value, limit: toInt64(limit), isInteger, show: (number) => BigInt(number).toString() }
    : { value, limit, isInteger, show: goFloat };
}

function judgeMultiple({ value, limit, isInteger, show }: Pair, path: string): Broken | undefined {
  if (limit <= 0) {
    return { shown: limit, words: `factor MultipleOf declared for ${path} must be positive: ${show(limit)}` };
  }
  const holds = isInteger ? value % limit === 0 : isMultiple(value, limit);
  return holds ? undefined : { words: `should be a multiple of ${show(limit)}` };
}

/** Whether Go reads a number as an int64. */
export function isInt64(value: number): boolean {
  return Number.isInteger(value) && value >= int64[0] && value < int64[1];
}

/** As Go converts a float64; a value that does not fit becomes the smallest number. */
function toInt64(value: number): number {
  const whole = Math.trunc(value);
  return isInt64(whole) ? whole + 0 : int64[0];
}

/** Why a number does not fit the type that its schema names (kube-openapi `validate/values.go` IsValueValidAgainstRange). */
function rangeFault(
  { type = '', format = '' }: JSONSchemaProps,
  value: number,
  path: string,
  what: string,
): string | undefined {
  const checked = checkedFormat(type, format);
  let ok = true;
  if (type === 'integer') {
    const [low, high] = checked === 'int32' ? int32 : int64;
    ok = Number.isInteger(value) && value >= low && value <= high;
  } else if (checked === 'float') {
    ok = Number.isFinite(Math.fround(value));
  }
  const withFormat = checked === '' ? '(default format)' : `with format ${checked}`;
  return ok ? undefined : `${what} value must be of type ${type} ${withFormat} in ${path}`;
}

/** Whether a float is a multiple of a positive factor; false beyond 2^53 (go-openapi's IsFloat64AJSONInteger). */
function isMultiple(value: number, factor: number): boolean {
  const times = factor < 1 ? (1 / factor) * value : value / factor;
  if (Math.abs(times) > Number.MAX_SAFE_INTEGER) return false;
  const nearest = Math.trunc(times);
  return times === nearest || Math.abs(times - nearest) / Math.abs(times + nearest) < 1e-9;
}

/** A float64 as Go prints it in the fewest digits (`%v`, `strconv.FormatFloat` with 'g' and -1). */
function goFloat(value: number): string {
  const [digits = '', exponent = ''] = value.toExponential().split('e');
  const power = Number(exponent);
  if (power >= -4 && power < 6) return String(value);
  return `${digits}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
}
