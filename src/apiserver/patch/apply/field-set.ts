import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import type { ListSchema } from '../../schema/schema.ts';

/**
 * - One step of a field path, in the spelling of FieldsV1 (structured-merge-diff `fieldpath/element.go`).
 * - Sets of fields as a trie: what a manager owns, or what a write changed (structured-merge-diff `fieldpath.Set`).
 *   Sets never change; the operations share what stays the same.
 */

/** The keys of a list's elements, sorted, with their defaults. */
interface ListKey {
  readonly name: string;
  readonly label: string;
  readonly fallback: unknown;
}

const listKeys = new WeakMap<ListSchema, readonly ListKey[]>();

function keysOf(list: ListSchema): readonly ListKey[] {
  let keys = listKeys.get(list);
  if (keys === undefined) {
    const { items } = list;
    keys = [...list.mapKeys].sort().map((name) => ({
      name,
      label: `${JSON.stringify(name)}:`,
      fallback: items.type === 'struct' ? items.byName.get(name)?.default : undefined,
    }));
    listKeys.set(list, keys);
  }
  return keys;
}

/** Why an element of an associative list has no path; the message is structured-merge-diff's. */
export class PathElementError extends Error {
  override readonly name = 'PathElementError';
}

/** Path elements of declared fields, whose number is bounded by the schemas. */
const fieldElements = new Map<string, string>();

/** The path element of a declared field: the same string at every call. */
export function fieldElement(name: string): string {
  let element = fieldElements.get(name);
  if (element === undefined) {
    element = `f:${name}`;
    fieldElements.set(name, element);
  }
  return element;
}

/** The path element of a member whose name a client chose. */
export function memberElement(name: string): string {
  return `f:${name}`;
}

/**
 * The path element of an item of a list whose type is `set` or `map`.
 *
 * @throws {PathElementError} when the item has no identity.
 */
export function itemElement(list: ListSchema, item: unknown): string {
  if (list.listType === 'map') return keyElement(list, item);
  if (Array.isArray(item)) {
    throw new PathElementError('not supported: associative list with lists as elements');
  }
  if (item === null) {
    throw new PathElementError("associative list without keys has an element that's an explicit null");
  }
  if (isRecord(item)) {
    throw new PathElementError("associative list without keys has an element that's a map type");
  }
  return `v:${JSON.stringify(item)}`;
}

function keyElement(list: ListSchema, item: unknown): string {
  if (item === null || item === undefined) {
    throw new PathElementError('associative list with keys may not have a null element');
  }
  if (!isRecord(item)) {
    throw new PathElementError('associative list with keys may not have non-map elements');
  }
  let text = '';
  for (const { name, label, fallback } of keysOf(list)) {
    const value = Object.hasOwn(item, name) && item[name] !== undefined ? item[name] : fallback;
    if (value !== undefined) text += `${text === '' ? 'k:{' : ','}${label}${JSON.stringify(value)}`;
  }
  if (text === '') {
    const names = list.mapKeys.map((name) => JSON.stringify(name)).join(' ');
    throw new PathElementError(
      `associative list with keys has an element that omits all key fields [${names}] (and doesn't have default values for any key fields)`,
    );
  }
  return `${text}}`;
}

/** As conflicts show it: `.name`, `[port=80,protocol="TCP"]`, `[="x"]`, `[0]`. */
export function showElement(element: string): string {
  const content = element.slice(2);
  if (element.startsWith('f:')) return `.${content}`;
  if (element.startsWith('v:')) return `[=${content}]`;
  if (element.startsWith('i:')) return `[${content}]`;
  const keys = Object.entries(parseKey(content)).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return `[${keys.join(',')}]`;
}

/** A whole path: `.spec.ports[port=80,protocol="TCP"].targetPort`. */
export function showPath(path: readonly string[]): string {
  return path.map(showElement).join('');
}

/** The members of a `k:` element's JSON. @throws {SyntaxError | TypeError} when it is no object. */
export function parseKey(content: string): JsonRecord {
  const key: unknown = JSON.parse(content);
  if (!isRecord(key)) throw new TypeError('a key is an object');
  return key;
}

const rank = { f: 0, k: 1, v: 2, i: 3 } as const;

function rankOf(element: string): number {
  const letter = element.charAt(0);
  return letter === 'f' || letter === 'k' || letter === 'v' ? rank[letter] : rank.i;
}

/** The order of path elements: fields, keys, values, positions, each by content. */
export function compareElements(a: string, b: string): number {
  return compareParsed(parse(a), parse(b));
}

/** Sorts what has a path element each; an element is parsed once, however often it is compared. */
export function sortedByElement<T>(list: readonly T[], elementOf: (item: T) => string): T[] {
  const parsed = list.map((item) => ({ item, ...parse(elementOf(item)) }));
  return parsed.sort(compareParsed).map(({ item }) => item);
}

interface Parsed {
  readonly element: string;
  readonly rank: number;
  /** The members of a key; of other elements one, without a name. */
  readonly parts: readonly (readonly [name: string, value: unknown])[];
}

function parse(element: string): Parsed {
  const content = element.slice(2);
  const order = rankOf(element);
  if (order === rank.k) return { element, rank: order, parts: Object.entries(parseKey(content)) };
  const value: unknown =
    order === rank.f ? content : order === rank.v ? JSON.parse(content) : Number(content);
  return { element, rank: order, parts: [['', value]] };
}

function compareParsed(a: Parsed, b: Parsed): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  if (a.element === b.element) return 0;
  const { parts: left } = a;
  const { parts: right } = b;
  for (let i = 0; i < left.length && i < right.length; i++) {
    const [name = '', value] = left[i] ?? [];
    const [otherName = '', otherValue] = right[i] ?? [];
    if (name !== otherName) return name < otherName ? -1 : 1;
    const values = compareValues(value, otherValue);
    if (values !== 0) return values;
  }
  return left.length - right.length;
}

/** Numbers, then strings, then booleans (structured-merge-diff `value.Compare`), each in its own order. */
function compareValues(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : Number(a > b);
  if (typeof a !== typeof b) return typeRank(a) - typeRank(b);
  return Number(a === true) - Number(b === true);
}

function typeRank(value: unknown): number {
  return ['number', 'string', 'boolean'].indexOf(typeof value);
}

/** A node of the trie, at the path that leads to it; `owned` is true when that path itself is in the set. */
export interface FieldSet {
  readonly owned: boolean;
  /** By path element as FieldsV1 writes it: `f:name`, `k:{"port":80}`, `v:"x"`, `i:0`. Never holds empty sets. */
  readonly children: ReadonlyMap<string, FieldSet>;
}

const noChildren: ReadonlyMap<string, FieldSet> = new Map();

export const emptySet: FieldSet = { owned: false, children: noChildren };
/** A path that is in the set, with nothing below it. */
export const leafSet: FieldSet = { owned: true, children: noChildren };

export function isEmptySet(set: FieldSet): boolean {
  return !set.owned && set.children.size === 0;
}

/** The set of a node from its parts; children that are empty are dropped. */
export function setOf(owned: boolean, children: ReadonlyMap<string, FieldSet>): FieldSet {
  if (children.size === 0) return owned ? leafSet : emptySet;
  return { owned, children };
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b || isEmptySet(b)) return a;
  if (isEmptySet(a)) return b;
  const children = new Map(a.children);
  for (const [element, child] of b.children) {
    const mine = children.get(element);
    children.set(element, mine === undefined ? child : union(mine, child));
  }
  return setOf(a.owned || b.owned, children);
}

/** The union of many sets, in a time that is linear to their sizes. */
export function unionAll(sets: readonly FieldSet[]): FieldSet {
  const [first = emptySet, ...more] = sets;
  if (more.length === 0) return first;
  const parts = new Map<string, FieldSet[]>();
  for (const set of sets) {
    for (const [element, child] of set.children) {
      const known = parts.get(element);
      if (known === undefined) parts.set(element, [child]);
      else known.push(child);
    }
  }
  const children = new Map<string, FieldSet>();
  for (const [element, part] of parts) children.set(element, unionAll(part));
  return setOf(
    sets.some(({ owned }) => owned),
    children,
  );
}

/** The paths of `a` that are not in `b`; paths below one of `b` stay. */
export function fieldSetDifference(a: FieldSet, b: FieldSet): FieldSet {
  return combine(a, b, (mine, other) => mine && !other, true);
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  return combine(a, b, (mine, other) => mine && other, false);
}

function combine(
  a: FieldSet,
  b: FieldSet,
  owned: (a: boolean, b: boolean) => boolean,
  keepUnmatched: boolean,
): FieldSet {
  if (b.children.size === 0 && keepUnmatched) {
    const own = owned(a.owned, b.owned);
    return own === a.owned ? a : setOf(own, a.children);
  }
  const children = new Map<string, FieldSet>();
  let same = true;
  for (const [element, child] of a.children) {
    const other = b.children.get(element);
    const kept =
      other === undefined ? (keepUnmatched ? child : emptySet) : combine(child, other, owned, keepUnmatched);
    if (!isEmptySet(kept)) children.set(element, kept);
    same &&= kept === child;
  }
  const own = owned(a.owned, b.owned);
  return same && own === a.owned ? a : setOf(own, children);
}

/** The set without a named field, given by the names from the root, and without the paths below it. */
export function withoutPath(set: FieldSet, [name, ...rest]: readonly string[]): FieldSet {
  const element = `f:${name}`;
  const child = set.children.get(element);
  if (child === undefined) return set;
  const kept = rest.length === 0 ? emptySet : withoutPath(child, rest);
  if (kept === child) return set;
  const children = new Map(set.children);
  if (isEmptySet(kept)) children.delete(element);
  else children.set(element, kept);
  return setOf(set.owned, children);
}

/** All paths in the set, each as its elements: first the own paths of a level, then those below. */
export function fieldPathsOf(set: FieldSet): string[][] {
  const paths: string[][] = [];
  const visit = ({ children }: FieldSet, path: readonly string[]): void => {
    const sorted = sortedByElement([...children], ([element]) => element);
    for (const [element, { owned }] of sorted) if (owned) paths.push([...path, element]);
    for (const [element, child] of sorted) visit(child, [...path, element]);
  };
  if (set.owned) paths.push([]);
  visit(set, []);
  return paths;
}
