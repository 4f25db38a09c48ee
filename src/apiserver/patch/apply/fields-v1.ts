/** Field sets as `managedFields[].fieldsV1` holds them (structured-merge-diff `fieldpath/serialize.go`). */
import { isRecord } from '../../../objects/json.ts';
import type { FieldsV1 } from '../../../objects/meta.ts';
import { shareJson } from '../../schema/encode.ts';
import { emptySet, type FieldSet, isEmptySet, leafSet, setOf } from './field-set.ts';
import { parseKey, sortedByElement } from './path-element.ts';

/** Invalid fields; the message has the reason. */
export class FieldsV1Error extends Error {
  override readonly name = 'FieldsV1Error';
}

/** Levels of a set that are read: as many as a body may have (parse-json-slowly.ts), and its path elements. */
const maxDepth = 1_010;

interface Shared {
  readonly fields: FieldsV1;
  readonly set: FieldSet;
}

/**
 * FieldsV1 of the sets written last, by the sets' texts and by their own. Objects that one manager writes in one way
 * have equal sets: they share one FieldsV1, which saves most of the memory that managedFields would take, and the
 * work to sort and to read them.
 */
const shared = new Map<string, Shared>();
const sharedSets = new WeakMap<object, FieldSet>();
/** Texts that are remembered, and what they may come to in characters: what belongs to one takes four times as much. */
const maxShared = { texts: 4_096, characters: 4 * 2 ** 20 };
/** Longer texts are not cached: one would evict many others and is rarely read twice. */
const maxSharedLength = maxShared.characters / 64;
let sharedCharacters = 0;
const none: FieldsV1 = Object.freeze({});

/**
 * The JSON of a set: path elements sorted, `.` for a path that has others below it. Frozen, and shared with other
 * objects.
 */
export function encodeFields(set: FieldSet): FieldsV1 {
  const text = textOf(set, '');
  const known = shared.get(text);
  if (known !== undefined) return known.fields;
  const encoded = encodeNode(set);
  if (text.length > maxSharedLength) return encoded;
  // Equal sets whose elements are in another order.
  const sorted = JSON.stringify(encoded);
  const found = shared.get(sorted) ?? { fields: encoded, set };
  shareJson(found.fields, sorted);
  share(sorted, found);
  share(text, found);
  return found.fields;
}

function share(text: string, entry: Shared): void {
  if (shared.has(text)) return;
  shared.set(text, entry);
  sharedCharacters += text.length;
  sharedSets.set(entry.fields, entry.set);
  for (const [oldest, { fields }] of shared) {
    if (shared.size <= maxShared.texts && sharedCharacters <= maxShared.characters) break;
    shared.delete(oldest);
    sharedCharacters -= oldest.length;
    sharedSets.delete(fields);
  }
}

/**
 * Appends a text to `text` that only equal sets have: clients choose names, so each comes with its length. Takes
 * elements in the order that they have: sorting them costs more than the rest.
 */
function textOf(set: FieldSet, text: string): string {
  for (const [element, child] of set.children) {
    text += `${child.owned ? '+' : '-'}${element.length}:${element}`;
    if (child.children.size > 0) text = `${textOf(child, `${text}(`)})`;
  }
  return text;
}

function sortedElements(set: FieldSet): string[] {
  const elements = [...set.children.keys()];
  if (elements.length < 2) return elements;
  return elements.every((element) => element.startsWith('f:'))
    ? elements.sort()
    : sortedByElement(elements, (element) => element);
}

function encodeNode(set: FieldSet): FieldsV1 {
  if (set.children.size === 0) return none;
  const fields: FieldsV1 = {};
  for (const element of sortedElements(set)) {
    const child = set.children.get(element);
    if (child === undefined) continue;
    const encoded = encodeNode(child);
    fields[element] =
      child.owned && child.children.size > 0 ? Object.freeze({ '.': none, ...encoded }) : encoded;
  }
  return Object.freeze(fields);
}

/** The set of a FieldsV1. @throws {FieldsV1Error} when it is none. */
export function decodeFields(fields: unknown): FieldSet {
  if (fields === undefined || fields === null) return emptySet;
  if (!isRecord(fields)) throw new FieldsV1Error('fieldsV1 must be an object');
  // Objects that were made of their texts again have FieldsV1 of their own.
  return sharedSets.get(fields) ?? shared.get(JSON.stringify(fields))?.set ?? decodeNode(fields, false, 0);
}

function decodeNode(fields: Record<string, unknown>, owned: boolean, depth: number): FieldSet {
  if (depth > maxDepth) throw new FieldsV1Error('fieldsV1 is nested too deeply');
  const children = new Map<string, FieldSet>();
  for (const [key, value] of Object.entries(fields)) {
    if (key === '.') continue;
    if (isFromLaterVersion(key)) continue;
    const element = canonicalElement(key);
    const below = value ?? none;
    if (!isRecord(below)) throw new FieldsV1Error(`fieldsV1 has no object at ${JSON.stringify(key)}`);
    const child = decodeNode(below, Object.hasOwn(below, '.'), depth + 1);
    children.set(element, isEmptySet(child) ? leafSet : child);
  }
  return setOf(owned, children);
}

/** True for path elements of kinds that do not exist yet: they are left out. */
function isFromLaterVersion(key: string): boolean {
  return /^[^fvki]:/.test(key);
}

/** Keys are sorted, in whatever order the client sent them. */
function canonicalElement(key: string): string {
  const content = key.slice(2);
  switch (key.slice(0, 2)) {
    case 'f:':
      return key;
    case 'i:':
      if (/^\d{1,9}$/.test(content)) return key;
      break;
    case 'v:':
    case 'k:':
      try {
        if (key.startsWith('v:')) return `v:${JSON.stringify(JSON.parse(content))}`;
        const entries = Object.entries(parseKey(content)).sort(([a], [b]) => (a < b ? -1 : Number(a > b)));
        return `k:${JSON.stringify(Object.fromEntries(entries))}`;
      } catch {
        break;
      }
  }
  throw new FieldsV1Error(`unknown path element in fieldsV1: ${JSON.stringify(key)}`);
}
