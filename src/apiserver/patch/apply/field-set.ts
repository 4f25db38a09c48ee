/**
 * Sets of fields as a trie: what a manager owns, or what a write changed (structured-merge-diff `fieldpath.Set`).
 * Sets never change; the operations share what stays the same.
 */
import { sortedByElement } from './path-element.ts';

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
