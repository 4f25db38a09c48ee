import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { RawNumber } from '../schema/json.ts';
import { setMember, type Field, type Schema } from '../schema/schema.ts';
import {
  badFormat,
  badPatchType,
  noSuchField,
  wrongListArgument,
  checkElements,
  checkOrder,
  deleteScalars,
  directive,
  type MergedList,
  mergeList,
  ordered,
  placesOf,
  scalar,
} from './strategic-lists.ts';

/**
 * - JSON Merge Patch (RFC 7386).
 * - Strategic merge patch (apimachinery `util/strategicpatch`): a merge patch in which the schema says which lists
 *   are merged by a key, with directives (`$patch`, `$retainKeys`, `$deleteFromPrimitiveList/…`,
 *   `$setElementOrder/…`).
 * - The rest of a patch after a strategic merge. Go's merge removes directives, ordered lists and nulls from the
 *   patch as it goes, and later errors show the rest (apimachinery `util/strategicpatch` mergeMap).
 */

/**
 * `target` with the patch merged in; neither is changed, and the result may share parts of both. Members of merged
 * objects come sorted, as Go writes them.
 */
export function applyMergePatch(target: JsonRecord, patch: JsonRecord): JsonRecord {
  const merged = new Map(Object.entries(target));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) {
      merged.delete(key);
    } else {
      const before = merged.get(key);
      merged.set(
        key,
        isObject(before) && isObject(value) ? applyMergePatch(before, value) : withoutNulls(value),
      );
    }
  }
  const result: JsonRecord = {};
  for (const key of [...merged.keys()].sort()) setMember(result, key, merged.get(key));
  return result;
}

function isObject(value: unknown): value is JsonRecord {
  return isRecord(value) && !(value instanceof RawNumber);
}

/** A new value loses its null members, those of objects in lists included; what is left comes sorted. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const kept: JsonRecord = {};
  for (const key of Object.keys(value).sort()) {
    if (value[key] !== null) setMember(kept, key, withoutNulls(value[key]));
  }
  return kept;
}

const retainKeys = '$retainKeys';
const deleteFromList = '$deleteFromPrimitiveList';
const setElementOrder = '$setElementOrder';

/**
 * `live` with the patch merged in; neither is changed.
 *
 * @param schema of the object; undefined where there is none.
 * @throws {StrategicPatchError}
 */
export function strategicMerge(schema: Schema | undefined, live: JsonRecord, patch: JsonRecord): JsonRecord {
  if (Object.hasOwn(patch, directive)) return applyMapDirective(patch);
  const rest = new Map(Object.entries(patch));
  const merged = retained(live, rest);
  mergeOrderedLists(schema, merged, rest);
  for (const [key, value] of rest) {
    const isDeletion = key.startsWith(deleteFromList);
    const name = isDeletion ? nameBehind(key, deleteFromList) : key;
    const before = Object.hasOwn(merged, name) ? merged[name] : undefined;
    if (value === null) Reflect.deleteProperty(merged, name);
    else if (before !== undefined && kindOf(before) === kindOf(value)) {
      const next = mergeMember(
        structField(schema, name),
        memberSchemaOf(schema, name),
        before,
        value,
        isDeletion,
      );
      setMember(merged, name, next);
    } else if (!isDeletion) {
      const next = withoutDirectives(value);
      if (next === undefined) Reflect.deleteProperty(merged, name);
      else setMember(merged, name, next);
    }
  }
  return merged;
}

function applyMapDirective(patch: JsonRecord): JsonRecord {
  const { [directive]: word, ...plain } = patch;
  if (word === 'replace') return plain;
  if (word === 'delete') return {};
  throw badPatchType(word, patch);
}

/** A copy of the live members, without those that `$retainKeys` does not name. */
function retained(live: JsonRecord, patch: Map<string, unknown>): JsonRecord {
  const list = patch.get(retainKeys);
  if (list === undefined) return { ...live };
  patch.delete(retainKeys);
  if (!Array.isArray(list)) throw badFormat('retainKeys');
  const keep = new Set<unknown>(list);
  for (const [key, value] of patch) {
    const isDirective = key.startsWith(deleteFromList) || key.startsWith(setElementOrder);
    if (value !== null && !isDirective && !keep.has(key)) throw badFormat('retainKeys');
  }
  const kept: JsonRecord = {};
  for (const [key, value] of Object.entries(live)) if (keep.has(key)) setMember(kept, key, value);
  return kept;
}

/** Handles each `$setElementOrder/<list>` together with its list, and takes both out of the patch. */
function mergeOrderedLists(
  schema: Schema | undefined,
  merged: JsonRecord,
  patch: Map<string, unknown>,
): void {
  for (const [key, order] of [...patch]) {
    if (!key.startsWith(setElementOrder)) continue;
    patch.delete(key);
    if (!Array.isArray(order)) throw wrongListArgument(order);
    const name = nameBehind(key, setElementOrder);
    const live = Object.hasOwn(merged, name) ? merged[name] : undefined;
    const change = patch.get(name);
    if (live !== undefined && !Array.isArray(live)) throw wrongListArgument(live);
    if (change !== undefined && !Array.isArray(change)) throw wrongListArgument(change);
    const field = structField(schema, name);
    if (schema?.type === 'struct' && field === undefined) throw noSuchField(schema.name, name);
    const mergeKey = field?.patchMergeKey;
    checkOrder(change ?? [], order, mergeKey);
    if (live === undefined && change === undefined) continue;
    const { items, liveOrder } =
      live === undefined
        ? { items: newItems(change ?? [], true), liveOrder: [] }
        : change === undefined
          ? { items: live, liveOrder: live }
          : mergeLists(field, memberSchemaOf(schema, name), live, change);
    const next = ordered(items, order, liveOrder, mergeKey);
    checkElements(live ?? [], change ?? []);
    setMember(merged, name, next);
    patch.delete(name);
  }
}

function mergeMember(
  field: Field | undefined,
  schema: Schema | undefined,
  before: unknown,
  value: unknown,
  isDeletion: boolean,
): unknown {
  if (Array.isArray(before) && Array.isArray(value)) {
    return isDeletion ? deleteScalars(before, value) : mergeLists(field, schema, before, value).items;
  }
  if (isObject(before) && isObject(value)) {
    return field?.patchStrategy.includes('replace') === true ? value : strategicMerge(schema, before, value);
  }
  return value;
}

function mergeLists(
  field: Field | undefined,
  schema: Schema | undefined,
  live: readonly unknown[],
  patch: readonly unknown[],
): MergedList {
  if (field?.patchStrategy.includes('merge') !== true) return { items: [...patch], liveOrder: live };
  const items = schema?.type === 'list' ? schema.items : undefined;
  const typeName = items?.type === 'struct' ? items.name : '';
  return mergeList(live, patch, field.patchMergeKey, typeName, (a, b) => strategicMerge(items, a, b));
}

function structField(schema: Schema | undefined, name: string): Field | undefined {
  return schema?.type === 'struct' ? schema.byName.get(name) : undefined;
}

function memberSchemaOf(schema: Schema | undefined, name: string): Schema | undefined {
  return schema?.type === 'map' ? schema.values : structField(schema, name)?.schema;
}

function nameBehind(key: string, prefix: string): string {
  if (!key.startsWith(`${prefix}/`)) {
    throw badFormat(prefix === setElementOrder ? 'setElementOrder list' : 'primitive list');
  }
  return key.slice(prefix.length + 1);
}

/** Go's dynamic type, as far as the merge looks at it. */
function kindOf(value: unknown): string {
  if (value === null) return 'nil';
  if (Array.isArray(value)) return 'slice';
  if (value instanceof RawNumber) return 'number';
  return typeof value;
}

/**
 * A new value without directives and, unless they are kept, null members; undefined when it is itself a directive.
 */
function withoutDirectives(value: unknown, keepNulls = false): unknown {
  if (Array.isArray(value)) return newItems(value, keepNulls);
  if (!isObject(value)) return value ?? (keepNulls ? null : undefined);
  if (Object.hasOwn(value, directive)) return undefined;
  const kept: JsonRecord = {};
  for (const [key, member] of Object.entries(value)) {
    const plain = withoutDirectives(member, keepNulls);
    if (plain !== undefined) setMember(kept, key, plain);
  }
  return kept;
}

/** Items that are null stay, and become zero values; so do null members of a new list that comes with its order. */
function newItems(list: readonly unknown[], keepNulls: boolean): unknown[] {
  return list.flatMap((item) => (item === null ? [null] : (withoutDirectives(item, keepNulls) ?? [])));
}

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
