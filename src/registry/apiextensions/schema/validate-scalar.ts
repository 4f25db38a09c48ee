import { compileRe2 } from '../../../objects/formats/re2.ts';
import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { type FieldError, invalid, notSupported, tooLong } from '../../validation/field-errors.ts';
import { checkedFormat, hasFormat } from '../../../objects/formats/string-formats.ts';
import {
  type ValidationBudget,
  stepsOfCheck,
  errorField,
  type Placed,
  push,
  type SchemaErrors,
} from './json-schema.ts';
import { errorMessage } from '../../../objects/status.ts';
import { jsonEqual } from '../../../objects/json.ts';

/** The numbers of custom objects, as Go's types have them. */

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
function numberFaults(schema: JSONSchemaProps, value: number, path: string, field: string): FieldError[] {
  const errors: FieldError[] = [];
  const misfit = (limit: number, what: string): boolean => {
    const fault = rangeFault(schema, limit, path, what);
    if (fault !== undefined) errors.push(invalid('<nil>', '', fault));
    return fault !== undefined;
  };
  const check = (limit: number | undefined, what: string, test: (pair: Pair) => Broken | undefined) => {
    if (limit === undefined) return;
    const pair = pairOf(value, limit, misfit(limit, what));
    const broken = test(pair);
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
  check(schema.multipleOf, 'MultipleOf', (pair) => validateMultiple(pair, path));
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

function validateMultiple({ value, limit, isInteger, show }: Pair, path: string): Broken | undefined {
  if (limit <= 0) {
    return { shown: limit, words: `factor MultipleOf declared for ${path} must be positive: ${show(limit)}` };
  }
  const holds = isInteger ? value % limit === 0 : isMultiple(value, limit);
  return holds ? undefined : { words: `should be a multiple of ${show(limit)}` };
}

/** Whether Go reads a number as an int64. */
function isInt64(value: number): boolean {
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

/** Whether a pattern of a schema matches some part of the text, as RE2 in kube-apiserver does. @throws {Error} for a pattern that is none. @throws {StatusError} 413 */
function matchesPattern(pattern: string, text: string, budget: ValidationBudget): boolean {
  const program = compileRe2(pattern);
  budget.take((text.length + 1) * program.programSize());
  // `test` makes a state of an automaton for nearly each character of some texts, which takes thrice the time.
  return program.matcher(text).find();
}

/** Why a pattern does not compile, with the text of Go's regexp; undefined when it does. */
export function patternFault(pattern: string): string | undefined {
  try {
    compileRe2(pattern);
    return undefined;
  } catch (error) {
    return errorMessage(error);
  }
}

function typesOf(schema: JSONSchemaProps): readonly string[] {
  if (schema['x-kubernetes-int-or-string'] === true) return ['integer', 'string'];
  const { type = '' } = schema;
  return type === '' ? [] : [type];
}

function jsonType(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return isInt64(value) ? 'integer' : 'number';
  return typeof value === 'object' ? 'object' : typeof value;
}

/** Type and format. The other rules are evaluated also when the type is wrong. */
export function validateType(
  schema: JSONSchemaProps,
  value: unknown,
  path: string,
  result: SchemaErrors,
): void {
  const types = typesOf(schema);
  const format = checkedFormat(schema.type ?? '', schema.format ?? '');
  if (value === null) {
    if (types.length > 0 && schema.nullable !== true) push(result, wrongType(path, types.join(','), 'null'));
    else result.matches++;
    return;
  }
  if (types.length === 0 && format === '') return;
  result.matches++;
  const type = jsonType(value);
  const hasType = types.includes(type) || (type === 'integer' && types.includes('number'));
  const scalar = type !== 'string' && type !== 'array';
  if (format !== '' && scalar && !hasType) {
    const given = { integer: 'int64', number: 'float64' }[type] ?? '';
    push(result, wrongType(path, format, given));
    return;
  }
  const numeric = types.includes('number') || types.includes('integer');
  if (!hasType && (format === '' || scalar || numeric)) {
    push(result, wrongType(path, types.join(','), type));
    return;
  }
  result.matches++;
}

/** The values that are allowed, for a value of any type. */
export function validateEnum(
  schema: JSONSchemaProps,
  value: unknown,
  { path, budget }: Placed,
  result: SchemaErrors,
): void {
  const { enum: allowed = [] } = schema;
  if (allowed.length === 0) return;
  const { scalars, others, words } = choicesOf(allowed);
  if (typeof value === 'object') {
    budget.take(others.length * stepsOfCheck);
    if (value !== null && others.some((one) => jsonEqual(one, value))) return;
  } else if (scalars.has(value)) return;
  push(result, notSupported(errorField(path), value, words));
}

/** The values of an enum: tens of thousands may be looked for in as many. */
interface Choices {
  readonly scalars: ReadonlySet<unknown>;
  /** Objects and lists. */
  readonly others: readonly unknown[];
  /** As errors show them. */
  readonly words: readonly string[];
}

const choices = new WeakMap<readonly unknown[], Choices>();

function choicesOf(allowed: readonly unknown[]): Choices {
  let made = choices.get(allowed);
  if (made === undefined) {
    made = {
      scalars: new Set(allowed.filter((one) => typeof one !== 'object')),
      others: allowed.filter((one) => typeof one === 'object'),
      words: allowed.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))),
    };
    choices.set(allowed, made);
  }
  return made;
}

/** The first error of length and pattern, then the format. */
export function validateString(
  schema: JSONSchemaProps,
  value: string,
  { path, budget }: Placed,
  result: SchemaErrors,
): void {
  const { minLength, maxLength, pattern = '' } = schema;
  const format = checkedFormat(schema.type ?? '', schema.format ?? '');
  const field = errorField(path);
  result.matches++;
  if (maxLength !== undefined && isLonger(value, maxLength)) push(result, tooLong(field, maxLength));
  else if (minLength !== undefined && minLength > 0 && !isLonger(value, minLength - 1)) {
    push(result, invalid(field, value, `${path} in body should be at least ${minLength} chars long`));
  } else if (pattern !== '' && !matchesPattern(pattern, value, budget)) {
    push(result, invalid(field, value, `${path} in body should match '${pattern}'`));
  }
  if (format === '') return;
  result.matches++;
  if (!hasFormat(format, value)) push(result, wrongType(path, format, value));
}

/** Whether a text has more code points than a limit; counted only for texts of about that length. */
function isLonger(value: string, limit: number): boolean {
  // A code point takes one or two units.
  if (value.length <= limit) return false;
  if (value.length > 2 * limit + 1) return true;
  let count = 0;
  for (const _point of value) if (++count > limit) return true;
  return false;
}

/** Bounds, `multipleOf` and format. */
export function validateNumber(
  schema: JSONSchemaProps,
  value: number,
  path: string,
  result: SchemaErrors,
): void {
  result.matches += 2;
  for (const fault of numberFaults(schema, value, path, errorField(path))) push(result, fault);
}

function wrongType(path: string, wanted: string, given: string): FieldError {
  const detail = `${path} in body must be of type ${wanted}: ${JSON.stringify(given)}`;
  return {
    field: errorField(path),
    reason: 'FieldValueTypeInvalid',
    body: `Invalid value: ${JSON.stringify(given)}: ${detail}`,
  };
}
