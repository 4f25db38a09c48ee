/** Merges an applied configuration into the stored object (structured-merge-diff `typed/merge.go`, `typed/remove.go`). */
import type { JsonRecord } from '../../../objects/json.ts';
import { type ListSchema, type Schema, setMember } from '../../schema/schema.ts';
import { type FieldSet, isEmptySet, setOf } from './field-set.ts';
import { itemElement } from './path-element.ts';
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
