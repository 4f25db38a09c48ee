/**
 * The rest of a patch after a strategic merge. Go's merge removes directives, ordered lists and nulls from the
 * patch as it goes, and later errors show the rest (apimachinery `util/strategicpatch` mergeMap).
 */
import type { JsonRecord } from '../../objects/json.ts';
import type { Schema } from '../schema/schema.ts';
import { directive, placesOf, scalar } from './strategic-lists.ts';
import {
  deleteFromList,
  structField,
  kindOf,
  memberSchemaOf,
  retainKeys,
  setElementOrder,
} from './strategic-merge.ts';
import { isObject } from './merge-patch.ts';

/** The rest of a patch that was merged into `live`; the patch stays as it is. */
export function restOfPatch(schema: Schema | undefined, live: JsonRecord, patch: JsonRecord): JsonRecord {
  const { [directive]: word, ...plain } = patch;
  if (word !== undefined) return word === 'replace' ? plain : patch;
  const rest = new Map(Object.entries(patch));
  rest.delete(retainKeys);
  for (const key of Object.keys(patch)) {
    if (key.startsWith(setElementOrder) && rest.delete(key))
      rest.delete(key.slice(setElementOrder.length + 1));
  }
  for (const [key, value] of rest) {
    if (!key.startsWith(deleteFromList)) rest.set(key, restOfMember(schema, key, live[key], value));
  }
  return Object.fromEntries(rest);
}

function restOfMember(schema: Schema | undefined, name: string, before: unknown, value: unknown): unknown {
  if (before === undefined || kindOf(before) !== kindOf(value)) return restOfNew(value);
  const strategy = structField(schema, name)?.patchStrategy ?? [];
  const member = memberSchemaOf(schema, name);
  if (isObject(before) && isObject(value)) {
    return strategy.includes('replace') ? value : restOfPatch(member, before, value);
  }
  if (!Array.isArray(before) || !Array.isArray(value) || !strategy.includes('merge')) return value;
  const mergeKey = structField(schema, name)?.patchMergeKey;
  const items = member?.type === 'list' ? member.items : undefined;
  if (mergeKey === undefined) return value;
  const known = before.filter(isObject);
  const places = placesOf(known, mergeKey);
  return value.map((item: unknown) => {
    if (!isObject(item) || Object.hasOwn(item, directive)) return item;
    const found = known[places.get(scalar(item[mergeKey])) ?? -1];
    return found === undefined ? item : restOfPatch(items, found, item);
  });
}

/** A value that the live object lacks: null and deleted members of maps are removed. */
function restOfNew(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(restOfNew);
  if (!isObject(value) || Object.hasOwn(value, directive)) return value;
  const kept = Object.entries(value).filter(
    ([, member]) => member !== null && !(isObject(member) && Object.hasOwn(member, directive)),
  );
  return Object.fromEntries(kept.map(([key, member]) => [key, restOfNew(member)]));
}
