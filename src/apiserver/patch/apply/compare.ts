/** What differs between two versions of an object, as field sets (structured-merge-diff `typed/compare.go`). */
import { isRecord, jsonEqual } from '../../../objects/json.ts';
import type { Schema } from '../../schema/schema.ts';
import { emptySet, type FieldSet, isEmptySet, leafSet, setOf } from './field-set.ts';
import {
  asFields,
  asItems,
  elementOf,
  indexItems,
  isEmptyValue,
  isNamedField,
  listItemsOf,
  memberSchema,
  membersOf,
} from './typed-value.ts';

/** The paths that `to` adds to `from`, or has with another value. */
export function changedFields(schema: Schema, from: unknown, to: unknown): FieldSet {
  return diff(schema, from, to, true);
}

/** The paths of `from` that `to` does not have. */
export function removedFields(schema: Schema, from: unknown, to: unknown): FieldSet {
  return diff(schema, to, from, false);
}

/** @param modified whether values that are on both sides but differ count. */
function diff(schema: Schema, from: unknown, to: unknown, modified: boolean): FieldSet {
  if (to === undefined || from === to) return emptySet;
  const bothEmpty = isEmptyValue(from) && isEmptyValue(to);
  const fields = bothEmpty ? undefined : asFields(schema, to ?? from);
  if (fields !== undefined && fits(from, 'object') && fits(to, 'object')) {
    const before = membersOf(from);
    const after = membersOf(to);
    const children = new Map<string, FieldSet>();
    for (const name of Object.keys(after)) {
      const type = memberSchema(fields, name);
      if (type === undefined) continue;
      const child = diff(type, Object.hasOwn(before, name) ? before[name] : undefined, after[name], modified);
      if (!isEmptySet(child)) children.set(elementOf(fields, name), child);
    }
    return setOf(from === undefined, children);
  }
  const list = bothEmpty ? undefined : asItems(schema);
  if (list !== undefined && fits(from, 'list') && fits(to, 'list')) {
    const before = indexItems(list, from);
    const children = new Map<string, FieldSet>();
    for (const [element, after] of indexItems(list, to)) {
      const child = diffItems(list.items, before.get(element) ?? [], after, modified);
      if (!isEmptySet(child)) children.set(element, child);
    }
    return setOf(from === undefined, children);
  }
  if (from === undefined) return leafSet;
  return modified && !jsonEqual(from, to) ? leafSet : emptySet;
}

/** Items with one identity. Where it comes twice they count as a whole, and one item as new beside them. */
function diffItems(
  schema: Schema,
  before: readonly unknown[],
  after: readonly unknown[],
  modified: boolean,
): FieldSet {
  if (before.length <= 1 && after.length <= 1) return diff(schema, before[0], after[0], modified);
  if (after.length <= 1) return diff(schema, undefined, after[0], modified);
  if (before.length <= 1) return leafSet;
  return modified && !jsonEqual(before, after) ? leafSet : emptySet;
}

/** Null and absent values take the form of the other side. */
function fits(value: unknown, form: 'object' | 'list'): boolean {
  if (value === undefined || value === null) return true;
  return form === 'list' ? Array.isArray(value) : isRecord(value);
}

/** All paths that a value sets: what its manager owns when it is applied. */
export function fieldsOf(schema: Schema, value: unknown): FieldSet {
  const fields = asFields(schema, value);
  if (fields !== undefined) {
    const children = new Map<string, FieldSet>();
    for (const [name, member] of Object.entries(membersOf(value))) {
      const type = memberSchema(fields, name);
      if (type === undefined || member === undefined) continue;
      const below = fieldsOf(type, member);
      const empty = member === null || (isRecord(member) && isEmptyValue(member));
      const child = empty || !isNamedField(fields, name) ? setOf(true, below.children) : below;
      if (!isEmptySet(child)) children.set(elementOf(fields, name), child);
    }
    return setOf(false, children);
  }
  const list = asItems(schema);
  if (list !== undefined) {
    const children = new Map<string, FieldSet>();
    for (const [element, same] of indexItems(list, listItemsOf(value))) {
      const repeated = same.length > 1;
      children.set(element, repeated ? leafSet : setOf(true, fieldsOf(list.items, same[0]).children));
    }
    return setOf(false, children);
  }
  return leafSet;
}
