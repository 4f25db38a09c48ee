import { isRecord } from '../../../objects/json.ts';

/** The names of a simple JSONPath such as `.spec.color`, the only form that selectableFields and scale take. */
export function simplePath(path: string): readonly string[] {
  return path.split('.').filter((name) => name !== '');
}

/** The value at a path of names below an object, undefined when a part is missing. */
export function fieldAt(object: unknown, path: readonly string[]): unknown {
  let value = object;
  for (const name of path) {
    if (!isRecord(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}
