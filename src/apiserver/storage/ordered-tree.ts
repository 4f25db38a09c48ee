/**
 * An immutable ordered map: a B+tree whose updates copy the path to the changed leaf and share the rest. Every node has
 * the number of items below it, so that the position of a key and the size of a range take O(log n).
 */
export interface Keyed {
  readonly key: string;
}

/** A root, or any node below it. */
export type OrderedTree<T extends Keyed> = Leaf<T> | Branch<T>;

/** The most items of a leaf and children of a branch: 32 pointers are four cache lines to copy per level. */
const fanOut = 32;
/** A smaller node is joined with its neighbour. Much less than half, so that nodes are not joined and split in turns. */
const underfull = 8;

class Leaf<T extends Keyed> {
  readonly items: readonly T[];
  readonly size: number;
  constructor(items: readonly T[]) {
    this.items = items;
    this.size = items.length;
  }
}

class Branch<T extends Keyed> {
  readonly children: readonly OrderedTree<T>[];
  /** `bounds[i]` ≤ every key of child i, and > every key of child i-1; `bounds[0]` is not used. */
  readonly bounds: readonly string[];
  readonly size: number;
  constructor(children: readonly OrderedTree<T>[], bounds: readonly string[], size: number) {
    this.children = children;
    this.bounds = bounds;
    this.size = size;
  }
}

interface Split<T extends Keyed> {
  readonly left: OrderedTree<T>;
  readonly bound: string;
  readonly right: OrderedTree<T>;
}

/** A tree without items. */
export function emptyTree<T extends Keyed>(): OrderedTree<T> {
  return new Leaf<T>([]);
}

/** A tree of items that are sorted by key, in O(n). */
export function treeFromSorted<T extends Keyed>(items: readonly T[]): OrderedTree<T> {
  let nodes: { node: OrderedTree<T>; bound: string }[] = [];
  for (let i = 0; i < items.length; i += fanOut) {
    nodes.push({ node: new Leaf(items.slice(i, i + fanOut)), bound: items[i]?.key ?? '' });
  }
  while (nodes.length > 1) {
    const level: typeof nodes = [];
    for (let i = 0; i < nodes.length; i += fanOut) {
      const group = nodes.slice(i, i + fanOut);
      level.push({
        node: branchOf(
          group.map(({ node }) => node),
          group.map(({ bound }) => bound),
        ),
        bound: group[0]?.bound ?? '',
      });
    }
    nodes = level;
  }
  return nodes[0]?.node ?? emptyTree<T>();
}

/** The item with this key. */
export function treeGet<T extends Keyed>(root: OrderedTree<T>, key: string): T | undefined {
  let node: OrderedTree<T> | undefined = root;
  while (node instanceof Branch) node = node.children[childIndex(node.bounds, key)];
  const item = node?.items[lowerBound(node.items, key)];
  return item?.key === key ? item : undefined;
}

/** The tree with `item` added, or in place of the item with the same key. */
export function treeSet<T extends Keyed>(root: OrderedTree<T>, item: T): OrderedTree<T> {
  const result = insert(root, item);
  if ('left' in result) return branchOf([result.left, result.right], ['', result.bound]);
  return result;
}

/** The tree without `key`; the same tree when it does not have the key. */
export function treeDelete<T extends Keyed>(root: OrderedTree<T>, key: string): OrderedTree<T> {
  let node = remove(root, key);
  while (node instanceof Branch && node.children.length <= 1) node = node.children[0] ?? emptyTree<T>();
  return node;
}

/** How many keys are smaller than `key`. */
export function treeRank<T extends Keyed>(root: OrderedTree<T>, key: string): number {
  let rank = 0;
  let node: OrderedTree<T> | undefined = root;
  while (node instanceof Branch) {
    const index = childIndex(node.bounds, key);
    for (let i = 0; i < index; i++) rank += node.children[i]?.size ?? 0;
    node = node.children[index];
  }
  return node === undefined ? rank : rank + lowerBound(node.items, key);
}

/** The items at positions `from` (included) to `to` (excluded), in key order. */
export function treeSlice<T extends Keyed>(root: OrderedTree<T>, from: number, to: number): T[] {
  const found: T[] = [];
  collect(root, from, to, found);
  return found;
}

function collect<T extends Keyed>(node: OrderedTree<T>, from: number, to: number, found: T[]): void {
  if (node instanceof Leaf) {
    const end = Math.min(to, node.size);
    for (let i = Math.max(from, 0); i < end; i++) {
      const item = node.items[i];
      if (item !== undefined) found.push(item);
    }
    return;
  }
  let start = 0;
  for (const child of node.children) {
    if (start >= to) return;
    if (start + child.size > from) collect(child, from - start, to - start, found);
    start += child.size;
  }
}

function insert<T extends Keyed>(node: OrderedTree<T>, item: T): OrderedTree<T> | Split<T> {
  if (node instanceof Leaf) {
    const at = lowerBound(node.items, item.key);
    const items = node.items.slice();
    if (items[at]?.key === item.key) {
      items[at] = item;
      return new Leaf(items);
    }
    items.splice(at, 0, item);
    if (items.length <= fanOut) return new Leaf(items);
    // Keys often come in order: a leaf that overflows at its end stays full.
    const middle = at === fanOut ? fanOut : fanOut >> 1;
    return {
      left: new Leaf(items.slice(0, middle)),
      bound: items[middle]?.key ?? '',
      right: new Leaf(items.slice(middle)),
    };
  }
  const index = childIndex(node.bounds, item.key);
  const child = node.children[index];
  if (child === undefined) return new Leaf([item]);
  const result = insert(child, item);
  const children = node.children.slice();
  if (!('left' in result)) {
    children[index] = result;
    return new Branch(children, node.bounds, node.size + result.size - child.size);
  }
  children.splice(index, 1, result.left, result.right);
  const bounds = node.bounds.slice();
  bounds.splice(index + 1, 0, result.bound);
  if (children.length <= fanOut) return new Branch(children, bounds, node.size + 1);
  return splitBranch(children, bounds);
}

function splitBranch<T extends Keyed>(
  children: readonly OrderedTree<T>[],
  bounds: readonly string[],
): Split<T> {
  const middle = children.length >> 1;
  return {
    left: branchOf(children.slice(0, middle), bounds.slice(0, middle)),
    bound: bounds[middle] ?? '',
    right: branchOf(children.slice(middle), bounds.slice(middle)),
  };
}

function remove<T extends Keyed>(node: OrderedTree<T>, key: string): OrderedTree<T> {
  if (node instanceof Leaf) {
    const at = lowerBound(node.items, key);
    return node.items[at]?.key === key ? new Leaf(node.items.toSpliced(at, 1)) : node;
  }
  const index = childIndex(node.bounds, key);
  const child = node.children[index];
  if (child === undefined) return node;
  const result = remove(child, key);
  if (result === child) return node;
  const children = node.children.slice();
  children[index] = result;
  if (width(result) >= underfull || children.length === 1)
    return new Branch(children, node.bounds, node.size - 1);
  const bounds = node.bounds.slice();
  joinWithNeighbour(children, bounds, index);
  return new Branch(children, bounds, node.size - 1);
}

/** Joins child `index` with the one before it (the first with the second), or balances the two. */
function joinWithNeighbour<T extends Keyed>(
  children: OrderedTree<T>[],
  bounds: string[],
  index: number,
): void {
  const first = Math.max(index - 1, 0);
  const left = children[first];
  const right = children[first + 1];
  if (left instanceof Leaf && right instanceof Leaf) {
    const items = left.items.concat(right.items);
    if (items.length <= fanOut) {
      children.splice(first, 2, new Leaf(items));
      bounds.splice(first + 1, 1);
      return;
    }
    const middle = items.length >> 1;
    children.splice(first, 2, new Leaf(items.slice(0, middle)), new Leaf(items.slice(middle)));
    bounds[first + 1] = items[middle]?.key ?? '';
  } else if (left instanceof Branch && right instanceof Branch) {
    const joined = left.children.concat(right.children);
    // The first bound of `right` is not maintained; that of its parent is.
    const inner = left.bounds.concat(right.bounds.with(0, bounds[first + 1] ?? ''));
    if (joined.length <= fanOut) {
      children.splice(first, 2, branchOf(joined, inner));
      bounds.splice(first + 1, 1);
      return;
    }
    const split = splitBranch(joined, inner);
    children.splice(first, 2, split.left, split.right);
    bounds[first + 1] = split.bound;
  }
}

function branchOf<T extends Keyed>(
  children: readonly OrderedTree<T>[],
  bounds: readonly string[],
): Branch<T> {
  let size = 0;
  for (const child of children) size += child.size;
  return new Branch(children, bounds, size);
}

function width<T extends Keyed>(node: OrderedTree<T>): number {
  return node instanceof Leaf ? node.size : node.children.length;
}

/** The last child whose bound is ≤ key. */
function childIndex(bounds: readonly string[], key: string): number {
  let low = 0;
  let high = bounds.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((bounds[middle] ?? '') <= key) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The first position whose key is ≥ key. */
function lowerBound(items: readonly Keyed[], key: string): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const item = items[middle];
    if (item !== undefined && item.key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
