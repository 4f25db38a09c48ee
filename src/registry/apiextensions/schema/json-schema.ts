import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { tooLarge } from '../../../objects/status.ts';
import { type FieldError, maxErrorText } from '../../validation/field-errors.ts';

/** The schema of list items; undefined when there is none, or several (which no structural schema has). */
export function itemSchemaOf(schema: JSONSchemaProps): JSONSchemaProps | undefined {
  const { items } = schema;
  return items === undefined || isSeveral(items) ? undefined : items;
}

function isSeveral(items: JSONSchemaProps | readonly JSONSchemaProps[]): items is readonly JSONSchemaProps[] {
  return Array.isArray(items);
}

/** The schema of members that `properties` does not name; undefined when there is none. */
export function valuesOf(schema: JSONSchemaProps): JSONSchemaProps | undefined {
  const { additionalProperties } = schema;
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}

/** Each takes up to 25 ns. */
const maxSteps = 6_000_000;

/** Steps that the check of one value by one schema counts for, and each error on its way out of a list or object. */
export const stepsOfCheck = 32;

/**
 * The limits of the validation of one object. RE2 takes time by the size of a pattern as well as by that of its
 * text: instructions times characters are its steps. A schema with alternatives checks each value many times.
 */
export class ValidationBudget {
  #left = maxSteps;

  /** @throws {StatusError} 413 when more is taken than there was. */
  take(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) {
      throw tooLarge(
        `Request entity too large: its schema takes more than ${maxSteps} steps to check (patterns: characters times instructions, others: ${stepsOfCheck} each)`,
      );
    }
  }
}

/**
 * The result for a value: its errors, and the number of checks that it passed, which selects the best of several
 * failures.
 */
export interface SchemaErrors {
  errors: FieldError[];
  /** Characters of the errors. */
  length: number;
  /** The texts of the same errors by field, where there are more than {@link fewErrors}: thousands may have one field. */
  byField?: Map<string, Set<string>>;
  matches: number;
}

/** A value with its path. */
export interface Placed {
  /** As error messages show it: "" for the whole object. */
  readonly path: string;
  readonly depth: number;
  /** The stored value in the same place, where an update has one. */
  readonly old: { readonly value: unknown } | undefined;
  readonly budget: ValidationBudget;
}

/** The path of an error as the API returns it: parts of unnamed values have no leading dot. */
export function errorField(path: string): string {
  if (path === '') return '<nil>';
  return path.startsWith('.') ? path.slice(1) : path;
}

/** Errors that are looked through one by one: alternatives that do not match have few, and are tens of thousands. */
const fewErrors = 8;

/** Adds an error, unless the same one is there. */
export function push(result: SchemaErrors, error: FieldError): void {
  const { errors } = result;
  if (errors.length < fewErrors) {
    if (!errors.some(({ field, body }) => field === error.field && body === error.body)) add(result, error);
    return;
  }
  if (result.byField === undefined) {
    result.byField = new Map();
    for (const each of errors) isNew(result.byField, each);
  }
  if (isNew(result.byField, error)) add(result, error);
}

function add(result: SchemaErrors, error: FieldError): void {
  result.errors.push(error);
  result.length += error.body.length;
}

/** True when an answer has no room for more errors: the rest of a list or map need not be validated. */
export function isFull({ length }: SchemaErrors): boolean {
  return length > maxErrorText;
}

/** True where the error was not there; then it is. */
function isNew(byField: Map<string, Set<string>>, { field, body }: FieldError): boolean {
  const there = byField.get(field);
  if (there?.has(body) === true) return false;
  if (there === undefined) byField.set(field, new Set([body]));
  else there.add(body);
  return true;
}

/** Adds the errors and matches of a part. @throws {StatusError} 413 */
export function merge(result: SchemaErrors, part: SchemaErrors, { budget }: Placed): void {
  budget.take(part.errors.length * stepsOfCheck);
  for (const error of part.errors) push(result, error);
  result.matches += part.matches;
}
