import type { FieldError } from '../../validation/field-errors.ts';
import { stepsOfCheck, type ValidationBudget } from './validation-budget.ts';

/**
 * The result for a value: its errors, and the number of checks that it passed, which selects the best of several
 * failures.
 */
export interface SchemaVerdict {
  errors: FieldError[];
  /** The texts of the same errors by field: thousands may have one field. */
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

/** Adds an error, unless the same one is there. */
export function push(verdict: SchemaVerdict, error: FieldError): void {
  const byField = (verdict.byField ??= new Map<string, Set<string>>());
  const there = byField.get(error.field);
  if (there?.has(error.body) === true) return;
  if (there === undefined) byField.set(error.field, new Set([error.body]));
  else there.add(error.body);
  verdict.errors.push(error);
}

/** Adds the errors and matches of a part. @throws {StatusError} 413 */
export function merge(verdict: SchemaVerdict, part: SchemaVerdict, { budget }: Placed): void {
  budget.take(part.errors.length * stepsOfCheck);
  for (const error of part.errors) push(verdict, error);
  verdict.matches += part.matches;
}
