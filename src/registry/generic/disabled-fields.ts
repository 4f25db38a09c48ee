import { isRecord } from '../../objects/json.ts';
import type { FieldPath } from './strategy.ts';

/**
 * The fields of a feature that is off. `*` in a path stands for all items of a list and all values of a map; `name?` goes
 * with the last of its members.
 */
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
  if (member === '*') return itemsOf(value).some((item) => isUsed(item, rest));
  const name = member.replace('?', '');
  return isRecord(value) && Object.hasOwn(value, name) && isUsed(value[name], rest);
}

function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : isRecord(value) ? Object.values(value) : [];
}

/** @returns whether anything was removed. */
function remove(value: unknown, [member, ...rest]: FieldPath): boolean {
  if (member === undefined) return false;
  if (member === '*')
    return itemsOf(value)
      .map((item) => remove(item, rest))
      .includes(true);
  const name = member.replace('?', '');
  if (!isRecord(value) || !Object.hasOwn(value, name)) return false;
  if (rest.length === 0) return Reflect.deleteProperty(value, name);
  const isRemoved = remove(value[name], rest);
  const left: unknown = value[name];
  if (isRemoved && name !== member && isRecord(left) && Object.keys(left).length === 0) {
    Reflect.deleteProperty(value, name);
  }
  return isRemoved;
}
