import { isRecord, type JsonRecord, jsonEqual } from '../../../objects/json.ts';
import {
  type LeafSchema,
  type ListSchema,
  type MapSchema,
  type Schema,
  type StructSchema,
  setMember,
} from '../../schema/schema.ts';
import {
  fieldElement,
  itemElement,
  memberElement,
  emptySet,
  type FieldSet,
  isEmptySet,
  leafSet,
  setOf,
} from './field-set.ts';

/**
 * - How a value is seen by server-side apply, given its schema: what is one whole (a leaf), what is made of fields,
 *   and what is a list of items with an identity (structured-merge-diff `schema`).
 * - What differs between two versions of an object, as field sets (structured-merge-diff `typed/compare.go`).
 * - Merges an applied configuration into the stored object (structured-merge-diff `typed/merge.go`,
 *   `typed/remove.go`).
 * - What of a new object decides which fields its creator owns: the names it has, and the identities of list items.
 */

/** A schema whose values are merged field by field. `any`: objects without a schema. */
export type FieldsSchema = StructSchema | MapSchema | (LeafSchema & { readonly type: 'any' });

/**
 * The schema as one whose values are merged field by field; undefined when they are not. `value` decides where the
 * schema does not: of the parts of custom resources that have none, objects are merged and the rest are leaves.
 */
function asFields(schema: Schema, value: unknown): FieldsSchema | undefined {
  if (schema.type === 'struct' || schema.type === 'map') return schema.atomic ? undefined : schema;
  return schema.type === 'any' && schema.goType === 'interface {}' && isRecord(value) ? anyFields : undefined;
}

const anyFields: FieldsSchema = { type: 'any', goType: 'interface {}' };

/** The schema as one whose values are merged item by item; undefined when they are not. */
function asItems(schema: Schema): ListSchema | undefined {
  return schema.type === 'list' && schema.listType !== 'atomic' ? schema : undefined;
}

/** The schema of a member; undefined when it is not declared. */
export function memberSchema(schema: FieldsSchema, name: string): Schema | undefined {
  if (schema.type === 'map') return schema.values;
  if (schema.type === 'any') return schema;
  const field = schema.byName.get(name);
  if (field !== undefined) return field.schema;
  return schema.custom?.keepUnknown === true ? schema.custom.unknownFields : undefined;
}

/** The path element of a member. */
function elementOf(schema: FieldsSchema, name: string): string {
  return isNamedField(schema, name) ? fieldElement(name) : memberElement(name);
}

/** True for a named field, as opposed to a key that a client chose. */
function isNamedField(schema: FieldsSchema, name: string): boolean {
  return schema.type === 'struct' && schema.byName.has(name);
}

/** The members of an object; none for null, undefined and other values. */
export function membersOf(value: unknown): JsonRecord {
  return isRecord(value) ? value : noMembers;
}

const noMembers: JsonRecord = {};

/** The items of a list; none for null, undefined and other values. */
export function listItemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : noItems;
}

const noItems: readonly unknown[] = [];

/** True for what holds nothing: absent, null, or empty. */
function isEmptyValue(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  if (!isRecord(value)) return false;
  for (const key in value) if (value[key] !== undefined) return false;
  return true;
}

/** The items of a list by path element, in list order; an identity that comes twice has several. */
function indexItems(list: ListSchema, value: unknown): Map<string, unknown[]> {
  const index = new Map<string, unknown[]>();
  for (const item of listItemsOf(value)) {
    const element = itemElement(list, item);
    const same = index.get(element);
    if (same === undefined) index.set(element, [item]);
    else same.push(item);
  }
  return index;
}

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

/** `live` with everything that `config` sets. Neither is changed; the result shares parts of both. */
export function mergeValues(schema: Schema, live: unknown, config: unknown): unknown {
  if (config === undefined) return live;
  if (live === undefined || (isEmptyValue(live) && isEmptyValue(config))) return config;
  const fields = asFields(schema, config ?? live);
  if (fields !== undefined) {
    const merged: JsonRecord = { ...membersOf(live) };
    for (const [name, value] of Object.entries(membersOf(config))) {
      const type = memberSchema(fields, name);
      const before = Object.hasOwn(merged, name) ? merged[name] : undefined;
      setMember(merged, name, type === undefined ? value : mergeValues(type, before, value));
    }
    return merged;
  }
  const list = asItems(schema);
  return list === undefined ? config : mergeItems(list, live, config);
}

/**
 * Items of both lists. Those that both have keep the order of the configuration; the others keep their places
 * between their neighbours, live ones first.
 */
function mergeItems(schema: ListSchema, live: unknown, config: unknown): unknown[] {
  const applied = indexItems(schema, config);
  const stored = indexItems(schema, live);
  const order = [...applied.keys()];
  const liveItems = listItemsOf(live).map((item) => ({ item, element: itemElement(schema, item) }));
  const shared = order.filter((element) => stored.has(element));
  /** The first of the shared items that was not taken. */
  let turn = 0;
  const done = new Set<string>();
  const result: unknown[] = [];
  const take = (element: string): void => {
    done.add(element);
    if (shared[turn] === element) turn++;
    const before = stored.get(element) ?? [];
    // Of items that are stored twice none is merged: the applied one replaces them.
    result.push(
      mergeValues(schema.items, before.length === 1 ? before[0] : undefined, applied.get(element)?.[0]),
    );
  };
  let next = 0;
  for (const { item, element } of liveItems) {
    if (!applied.has(element)) {
      result.push(item);
      continue;
    }
    // A shared item out of turn waits for its place in the configuration.
    if (done.has(element) || (turn < shared.length && shared[turn] !== element)) continue;
    while (next < order.length && !done.has(element)) take(order[next++] ?? '');
  }
  while (next < order.length) take(order[next++] ?? '');
  return result;
}

/**
 * The value without the paths of a set and all below them; null if nothing is left, as Go writes nil. An atomic
 * value that the set reaches into is removed as a whole.
 */
export function removeFields(schema: Schema, value: unknown, gone: FieldSet): unknown {
  const fields = asFields(schema, value);
  if (fields !== undefined) {
    const kept: JsonRecord = {};
    for (const [name, member] of Object.entries(membersOf(value))) {
      const below = gone.children.get(elementOf(fields, name));
      const type = memberSchema(fields, name);
      if (below?.owned === true) continue;
      const reached = below !== undefined && !isEmptySet(below) && type !== undefined;
      setMember(kept, name, reached ? removeFields(type, member, below) : member);
    }
    return isEmptyValue(kept) ? null : kept;
  }
  const list = asItems(schema);
  if (list !== undefined) {
    const kept: unknown[] = [];
    for (const item of listItemsOf(value)) {
      const below = gone.children.get(itemElement(list, item));
      if (below?.owned === true) continue;
      kept.push(below === undefined || isEmptySet(below) ? item : removeFields(list.items, item, below));
    }
    return kept.length === 0 ? null : kept;
  }
  return schema.type === 'struct' || schema.type === 'map' || schema.type === 'list' ? null : value;
}

/** The set with every named field on the way to its paths: a struct goes with the last of its fields. */
export function withNamedParents(schema: Schema, set: FieldSet): FieldSet {
  const children = new Map<string, FieldSet>();
  for (const [element, child] of set.children) {
    const name = element.slice(2);
    const fields = element.startsWith('f:') ? asFields(schema, {}) : undefined;
    const named = fields !== undefined && isNamedField(fields, name);
    const type = fields === undefined ? asItems(schema)?.items : memberSchema(fields, name);
    const below = type === undefined ? child : withNamedParents(type, child);
    const next = setOf(child.owned || (named && !isEmptySet(child)), below.children);
    children.set(element, next);
  }
  return setOf(set.owned, children);
}

/**
 * A text that is equal for objects of one schema only when `changedFields` from an empty object is equal. Members are
 * taken in their own order.
 *
 * @throws {PathElementError} for a list item without an identity.
 */
export function shapeOf(schema: Schema, value: unknown): string {
  const fields = asFields(schema, value);
  if (fields !== undefined && isRecord(value)) {
    const isGoStruct = fields.type === 'struct' && fields.custom === undefined;
    let text = '{';
    for (const name of Object.keys(value)) {
      const type = memberSchema(fields, name);
      if (type === undefined) continue;
      // Names that clients choose come with their lengths; those of Go's fields end where a shape, no letter, begins.
      text += isGoStruct ? name : `${name.length}:${name}`;
      text += shapeOf(type, value[name]);
    }
    return `${text}}`;
  }
  const list = asItems(schema);
  if (list !== undefined && Array.isArray(value)) {
    let text = '[';
    for (const item of value) {
      const element = itemElement(list, item);
      text += `${element.length}:${element}${shapeOf(list.items, item)}`;
    }
    return `${text}]`;
  }
  return shapeOfLeaf(value);
}

/** Only values that an empty object may have too differ from others. */
function shapeOfLeaf(value: unknown): string {
  if (value === undefined) return '?';
  if (value === '' || value === '0' || value === 0 || value === false || value === null) {
    return `=${JSON.stringify(value)};`;
  }
  if (isEmptyValue(value)) return '-';
  return typeof value === 'object' ? '#' : '.';
}
