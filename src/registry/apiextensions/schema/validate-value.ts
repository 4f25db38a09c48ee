/**
 * Validates values against structural schemas, with the texts of kube-openapi's validator as apiextensions-apiserver
 * returns them (`apiserver/validation/validation.go`, kube-openapi `validation/validate`).
 */
import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { isRecord, jsonEqual } from '../../../objects/json.ts';
import { itemSchemaOf, valuesOf } from './json-schema.ts';
import {
  type FieldError,
  invalid,
  notSupported,
  required,
  tooLong,
  tooMany,
} from '../../validation/field-errors.ts';
import { checkedFormat, hasFormat } from '../../../objects/formats.ts';
import { listMapKeyOf } from './list-types.ts';
import { isInt64, numberFaults } from './numbers.ts';
import { matchesPattern } from './pattern.ts';
import { stepsOfCheck, ValidationBudget } from './validation-budget.ts';

/** Values deeper than this are refused. */
const maxDepth = 500;

/**
 * The result for a value: its errors, and the number of checks that it passed, which selects the best of several
 * failures.
 */
interface Verdict {
  errors: FieldError[];
  /** The texts of the same errors by field: thousands may have one field. */
  byField?: Map<string, Set<string>>;
  matches: number;
}

/** A value with its path. */
interface Placed {
  /** As error messages show it: "" for the whole object. */
  readonly path: string;
  readonly depth: number;
  /** The stored value in the same place, where an update has one. */
  readonly old: { readonly value: unknown } | undefined;
  readonly budget: ValidationBudget;
}

/**
 * All rules that a value breaks.
 *
 * @param path "" for the whole object.
 * @param old the stored value of an update: parts that do not change may stay as they are (CRDValidationRatcheting).
 * @param budget what the work may come to; of one object unless it is given.
 * @throws {StatusError} 413 when it comes to more.
 */
export function validateValue(
  schema: JSONSchemaProps,
  value: unknown,
  path: string,
  old?: { readonly value: unknown },
  budget = new ValidationBudget(),
): FieldError[] {
  return judge(schema, value, { path, depth: 0, old, budget }).errors;
}

/** The errors of a part of an object, with paths relative to it. */
export function validatePart(
  schema: JSONSchemaProps,
  value: unknown,
  path: string,
  old?: { readonly value: unknown },
  budget?: ValidationBudget,
): FieldError[] {
  return validateValue(schema, value, '', old, budget).map((error) => ({
    ...error,
    field: error.field === '<nil>' ? path : `${path}.${error.field}`,
  }));
}

function judge(schema: JSONSchemaProps, value: unknown, place: Placed): Verdict {
  const { path, depth, old } = place;
  place.budget.take(stepsOfCheck);
  const verdict: Verdict = { errors: [], matches: 0 };
  if (depth > maxDepth) {
    verdict.errors.push(invalid(fieldOf(path), '', `${path} in body is nested too deeply`));
    return verdict;
  }
  judgeType(schema, value, path, verdict);
  if (value === null) {
    judgeEnum(schema, value, place, verdict);
  } else {
    judgeJunctors(schema, value, place, verdict);
    if (typeof value === 'string') judgeString(schema, value, place, verdict);
    else if (typeof value === 'number') judgeNumber(schema, value, path, verdict);
    else if (Array.isArray(value)) judgeList(schema, value, place, verdict);
    judgeEnum(schema, value, place, verdict);
    verdict.matches++;
    if (isRecord(value)) judgeObject(schema, value, place, verdict);
    verdict.matches++;
  }
  const isRatcheted = verdict.errors.length > 0 && old !== undefined && jsonEqual(old.value, value);
  return isRatcheted ? { errors: [], matches: verdict.matches } : verdict;
}

/** The path of an error as the API returns it: parts of unnamed values have no leading dot. */
function fieldOf(path: string): string {
  if (path === '') return '<nil>';
  return path.startsWith('.') ? path.slice(1) : path;
}

/** Removes repeated errors. */
function push(verdict: Verdict, error: FieldError): void {
  const byField = (verdict.byField ??= new Map<string, Set<string>>());
  const there = byField.get(error.field);
  if (there?.has(error.body) === true) return;
  if (there === undefined) byField.set(error.field, new Set([error.body]));
  else there.add(error.body);
  verdict.errors.push(error);
}

function merge(verdict: Verdict, part: Verdict, { budget }: Placed): void {
  budget.take(part.errors.length * stepsOfCheck);
  for (const error of part.errors) push(verdict, error);
  verdict.matches += part.matches;
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

/** The other rules are evaluated also when the type is wrong. */
function judgeType(schema: JSONSchemaProps, value: unknown, path: string, verdict: Verdict): void {
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

function wrongType(path: string, wanted: string, given: string): FieldError {
  const detail = `${path} in body must be of type ${wanted}: ${JSON.stringify(given)}`;
  return {
    field: fieldOf(path),
    reason: 'FieldValueTypeInvalid',
    body: `Invalid value: ${JSON.stringify(given)}: ${detail}`,
  };
}

function judgeEnum(
  schema: JSONSchemaProps,
  value: unknown,
  { path, budget }: Placed,
  verdict: Verdict,
): void {
  const { enum: allowed = [] } = schema;
  if (allowed.length === 0) return;
  const { scalars, others, words } = choicesOf(allowed);
  if (typeof value === 'object') {
    budget.take(others.length * stepsOfCheck);
    if (value !== null && others.some((one) => jsonEqual(one, value))) return;
  } else if (scalars.has(value)) return;
  push(verdict, notSupported(fieldOf(path), value, words));
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
function judgeString(
  schema: JSONSchemaProps,
  value: string,
  { path, budget }: Placed,
  verdict: Verdict,
): void {
  const { minLength, maxLength, pattern = '' } = schema;
  const format = checkedFormat(schema.type ?? '', schema.format ?? '');
  const field = fieldOf(path);
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

/** Whether a text has more than so many code points; counted only for texts of about that length. */
function isLonger(value: string, limit: number): boolean {
  // A code point takes one or two units.
  if (value.length <= limit) return false;
  if (value.length > 2 * limit + 1) return true;
  let count = 0;
  for (const _point of value) if (++count > limit) return true;
  return false;
}

function judgeNumber(schema: JSONSchemaProps, value: number, path: string, verdict: Verdict): void {
  verdict.matches += 2;
  for (const fault of numberFaults(schema, value, path, fieldOf(path))) push(verdict, fault);
}

function judgeList(schema: JSONSchemaProps, list: readonly unknown[], place: Placed, verdict: Verdict): void {
  const { minItems, maxItems } = schema;
  const { path, depth, old } = place;
  const items = itemSchemaOf(schema);
  const before = Array.isArray(old?.value) ? storedItems(schema, old.value) : undefined;
  list.forEach((item, i) => {
    if (items === undefined) return;
    const stored = before?.get(
      JSON.stringify(listMapKeyOf(item, schema['x-kubernetes-list-map-keys'] ?? [])),
    );
    merge(
      verdict,
      judge(items, item, { ...place, path: `${path}[${i}]`, depth: depth + 1, old: stored }),
      place,
    );
  });
  if (minItems !== undefined && list.length < minItems) {
    const detail = `${path} in body should have at least ${minItems} items`;
    push(verdict, invalid(fieldOf(path), list.length, detail));
  }
  if (maxItems !== undefined && list.length > maxItems) {
    push(verdict, tooMany(fieldOf(path), list.length, maxItems));
  }
  verdict.matches += 2;
}

/** The stored items by their keys; undefined where items cannot be correlated. */
function storedItems(
  schema: JSONSchemaProps,
  list: readonly unknown[],
): ReadonlyMap<string, { readonly value: unknown }> | undefined {
  if (schema['x-kubernetes-list-type'] !== 'map') return undefined;
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  return new Map(list.map((value) => [JSON.stringify(listMapKeyOf(value, keys)), { value }]));
}

function judgeObject(
  schema: JSONSchemaProps,
  value: Readonly<Record<string, unknown>>,
  place: Placed,
  verdict: Verdict,
): void {
  const { path, depth, old } = place;
  const names = Object.keys(value).sort();
  const { minProperties, maxProperties, properties = {} } = schema;
  verdict.matches++;
  if (minProperties !== undefined && names.length < minProperties) {
    const detail = `${path} in body should have at least ${minProperties} properties`;
    push(verdict, invalid(fieldOf(path), names.length, detail));
    return;
  }
  if (maxProperties !== undefined && names.length > maxProperties) {
    push(verdict, tooMany(fieldOf(path), names.length, maxProperties));
    return;
  }
  const before = isRecord(old?.value) ? old.value : {};
  const member = (part: JSONSchemaProps, name: string, at: string) => {
    const stored = Object.hasOwn(before, name) ? { value: before[name] } : undefined;
    merge(verdict, judge(part, value[name], { ...place, path: at, depth: depth + 1, old: stored }), place);
  };
  const values = valuesOf(schema);
  for (const name of names) {
    if (values !== undefined && !Object.hasOwn(properties, name)) member(values, name, `${path}.${name}`);
  }
  for (const name of names) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property !== undefined) member(property, name, path === '' ? name : `${path}.${name}`);
  }
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(value, name)) push(verdict, required(fieldOf(`${path}.${name}`)));
  }
}

/** The error of a junctor, then the errors of the best alternative. */
function judgeJunctors(schema: JSONSchemaProps, value: unknown, place: Placed, verdict: Verdict): void {
  const nested: Placed = { ...place, depth: place.depth + 1 };
  const judged = (parts: readonly JSONSchemaProps[] = []) => parts.map((part) => judge(part, value, nested));
  // This error has no field: it is about the alternatives.
  const fail = (words: string) =>
    push(verdict, invalid('<nil>', '', `${JSON.stringify(place.path)} ${words}`));
  const anyOf = judged(schema.anyOf);
  if (anyOf.length > 0) {
    const first = anyOf.find(({ errors }) => errors.length === 0);
    if (first === undefined) fail('must validate at least one schema (anyOf)');
    merge(verdict, first ?? closest(anyOf), place);
  }
  const oneOf = judged(schema.oneOf);
  if (oneOf.length > 0) {
    const valid = oneOf.filter(({ errors }) => errors.length === 0);
    const [first] = valid;
    if (valid.length !== 1) {
      const found = first === undefined ? 'Found none valid' : `Found ${valid.length} valid alternatives`;
      fail(`must validate one and only one schema (oneOf). ${found}`);
      if (first === undefined) merge(verdict, closest(oneOf), place);
    } else if (first !== undefined) {
      merge(verdict, first, place);
    }
  }
  const allOf = judged(schema.allOf);
  for (const part of allOf) merge(verdict, part, place);
  const failed = allOf.filter(({ errors }) => errors.length > 0).length;
  if (failed > 0)
    fail(`must validate all the schemas (allOf)${failed === allOf.length ? '. None validated' : ''}`);
  if (schema.not !== undefined && judge(schema.not, value, nested).errors.length === 0) {
    fail('must not validate the schema (not)');
  }
  verdict.matches += 2;
}

/** The failure with the most checks passed, the first among equals. */
function closest(failures: readonly Verdict[]): Verdict {
  return failures.reduce((best, next) => (next.matches > best.matches ? next : best));
}
