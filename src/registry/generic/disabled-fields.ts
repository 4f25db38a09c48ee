import { isRecord } from '../../objects/json.ts';
import type { FieldPath } from './strategy.ts';

/** The fields of a feature that is off. `*` in a path stands for all items of a list. */
export type DisabledFeature = readonly FieldPath[];

/**
 * Removes the fields of features that are off, but those of a feature that the stored object uses already
 * (`DropDisabledFields` of the kinds).
 *
 * @param old absent for a create.
 */
export function dropDisabledFields(
  object: object,
  old: object | undefined,
  features: readonly DisabledFeature[],
): void {
  for (const paths of features) {
    if (paths.some((path) => isUsed(old, path))) continue;
    for (const path of paths) remove(object, path);
  }
}

function isUsed(value: unknown, [member, ...rest]: FieldPath): boolean {
  if (member === undefined) return value !== undefined;
  if (member === '*') return Array.isArray(value) && value.some((item) => isUsed(item, rest));
  return isRecord(value) && Object.hasOwn(value, member) && isUsed(value[member], rest);
}

function remove(value: unknown, [member, ...rest]: FieldPath): void {
  if (member === undefined) return;
  if (member === '*') {
    if (Array.isArray(value)) for (const item of value) remove(item, rest);
    return;
  }
  if (!isRecord(value) || !Object.hasOwn(value, member)) return;
  if (rest.length === 0) Reflect.deleteProperty(value, member);
  else remove(value[member], rest);
}
