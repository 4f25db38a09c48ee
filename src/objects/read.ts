/**
 * Reads members of objects whose shape is not checked here. Stored objects are valid, but custom resources and kinds
 * that are served by their schema only may lack any field.
 */
import { isRecord, type JsonRecord } from './json.ts';

/** The value at a path of member names; undefined where there is none. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  let current = value;
  for (const name of path) {
    if (!isRecord(current) || !Object.hasOwn(current, name)) return undefined;
    current = current[name];
  }
  return current;
}

/** The string at a path, "" where there is none. */
export function textAt(value: unknown, ...path: readonly string[]): string {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : '';
}

/** The number at a path, 0 where there is none. */
export function numberAt(value: unknown, ...path: readonly string[]): number {
  const found = at(value, ...path);
  return typeof found === 'number' ? found : 0;
}

/** A string or a number (IntOrString, Quantity) at a path as text, undefined where there is neither. */
export function scalarAt(value: unknown, ...path: readonly string[]): string | undefined {
  const found = at(value, ...path);
  return typeof found === 'string' || typeof found === 'number' ? String(found) : undefined;
}

/** The list at a path, empty where there is none. */
export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** The strings of the list at `path`; others are left out. */
export function textsAt(value: unknown, ...path: readonly string[]): readonly string[] {
  return listAt(value, ...path).filter((text) => typeof text === 'string');
}

/** The object at a path, empty where there is none. */
export function recordAt(value: unknown, ...path: readonly string[]): JsonRecord {
  const found = at(value, ...path);
  return isRecord(found) ? found : {};
}

/** The status of a condition of a type, undefined where there is no such condition. */
export function conditionStatus(conditions: readonly unknown[], type: string): string | undefined {
  const condition = conditions.find((candidate) => textAt(candidate, 'type') === type);
  return condition === undefined ? undefined : textAt(condition, 'status');
}
