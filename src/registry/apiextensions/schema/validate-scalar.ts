import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { checkedFormat, hasFormat } from '../../../objects/formats.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { type FieldError, invalid, notSupported, tooLong } from '../../validation/field-errors.ts';
import { isInt64, numberFaults } from './numbers.ts';
import { matchesPattern } from './pattern.ts';
import { stepsOfCheck } from './validation-budget.ts';
import { errorField, type Placed, push, type SchemaVerdict } from './verdict.ts';

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
export function judgeType(
  schema: JSONSchemaProps,
  value: unknown,
  path: string,
  verdict: SchemaVerdict,
): void {
  const types = typesOf(schema);
  const format = checkedFormat(schema.type ?? '', schema.format ?? '');
  if (value === null) {
    if (types.length > 0 && schema.nullable !== true) push(verdict, wrongType(path, types.join(','), 'null'));
    else verdict.matches++;
    return;
  }
  if (types.length === 0 && format === '') return;
  verdict.matches++;
  const type = jsonType(value);
  const hasType = types.includes(type) || (type === 'integer' && types.includes('number'));
  const scalar = type !== 'string' && type !== 'array';
  if (format !== '' && scalar && !hasType) {
    const given = { integer: 'int64', number: 'float64' }[type] ?? '';
    push(verdict, wrongType(path, format, given));
    return;
  }
  const numeric = types.includes('number') || types.includes('integer');
  if (!hasType && (format === '' || scalar || numeric)) {
    push(verdict, wrongType(path, types.join(','), type));
    return;
  }
  verdict.matches++;
}

/** The values that are allowed, for a value of any type. */
export function judgeEnum(
  schema: JSONSchemaProps,
  value: unknown,
  { path, budget }: Placed,
  verdict: SchemaVerdict,
): void {
  const { enum: allowed = [] } = schema;
  if (allowed.length === 0) return;
  const { scalars, others, words } = choicesOf(allowed);
  if (typeof value === 'object') {
    budget.take(others.length * stepsOfCheck);
    if (value !== null && others.some((one) => jsonEqual(one, value))) return;
  } else if (scalars.has(value)) return;
  push(verdict, notSupported(errorField(path), value, words));
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
export function judgeString(
  schema: JSONSchemaProps,
  value: string,
  { path, budget }: Placed,
  verdict: SchemaVerdict,
): void {
  const { minLength, maxLength, pattern = '' } = schema;
  const format = checkedFormat(schema.type ?? '', schema.format ?? '');
  const field = errorField(path);
  verdict.matches++;
  if (maxLength !== undefined && isLonger(value, maxLength)) push(verdict, tooLong(field, maxLength));
  else if (minLength !== undefined && minLength > 0 && !isLonger(value, minLength - 1)) {
    push(verdict, invalid(field, value, `${path} in body should be at least ${minLength} chars long`));
  } else if (pattern !== '' && !matchesPattern(pattern, value, budget)) {
    push(verdict, invalid(field, value, `${path} in body should match '${pattern}'`));
  }
  if (format === '') return;
  verdict.matches++;
  if (!hasFormat(format, value)) push(verdict, wrongType(path, format, value));
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
export function judgeNumber(
  schema: JSONSchemaProps,
  value: number,
  path: string,
  verdict: SchemaVerdict,
): void {
  verdict.matches += 2;
  for (const fault of numberFaults(schema, value, path, errorField(path))) push(verdict, fault);
}

function wrongType(path: string, wanted: string, given: string): FieldError {
  const detail = `${path} in body must be of type ${wanted}: ${JSON.stringify(given)}`;
  return {
    field: errorField(path),
    reason: 'FieldValueTypeInvalid',
    body: `Invalid value: ${JSON.stringify(given)}: ${detail}`,
  };
}
