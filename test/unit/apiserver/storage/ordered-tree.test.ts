import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  emptyTree,
  type OrderedTree,
  treeDelete,
  treeFromSorted,
  treeGet,
  treeRank,
  treeSet,
  treeSlice,
} from '../../../../src/apiserver/storage/ordered-tree.ts';
import { runs as cases } from '../../../support/runs.ts';

interface Item {
  key: string;
  value: number;
}
const keyOf = (n: number) => `k${String(n).padStart(6, '0')}`;
const contents = (tree: OrderedTree<Item>) => treeSlice(tree, 0, tree.size);

function sortedModel(model: Map<string, number>): Item[] {
  return [...model.entries()]
    .map(([key, value]) => ({ key, value }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** Runs of neighbouring keys set or deleted together: they make leaves and branches overflow and run dry. */
const runs = fc.array(
  fc.record({
    start: fc.nat(6000),
    length: fc.integer({ min: 1, max: 900 }),
    stride: fc.integer({ min: 1, max: 7 }),
    remove: fc.boolean(),
    backwards: fc.boolean(),
  }),
  { minLength: 1, maxLength: 14 },
);

describe('ordered tree', () => {
  it('is a sorted map, and older roots never change', () => {
    fc.assert(
      fc.property(runs, fc.boolean(), (steps, preloaded) => {
        const model = new Map<string, number>();
        if (preloaded) for (let n = 0; n < 4000; n++) model.set(keyOf(n), n);
        let tree = preloaded ? treeFromSorted(sortedModel(model)) : emptyTree<Item>();
        const kept: { tree: OrderedTree<Item>; items: Item[] }[] = [];
        let value = 10_000;
        for (const { start, length, stride, remove, backwards } of steps) {
          for (let i = 0; i < length; i++) {
            const key = keyOf(start + (backwards ? length - i : i) * stride);
            if (remove) {
              const had = model.delete(key);
              const next = treeDelete(tree, key);
              if (!had) expect(next).toBe(tree);
              tree = next;
            } else {
              tree = treeSet(tree, { key, value });
              model.set(key, value++);
            }
          }
          kept.push({ tree, items: sortedModel(model) });
        }
        for (const { tree: root, items } of kept) {
          expect(root.size).toBe(items.length);
          expect(contents(root)).toEqual(items);
        }
        const items = sortedModel(model);
        for (let n = 0; n < 12_500; n += 97) {
          const key = keyOf(n);
          expect(treeGet(tree, key)?.value).toBe(model.get(key));
          expect(treeRank(tree, key)).toBe(items.filter((item) => item.key < key).length);
        }
        expect(treeSlice(tree, 31, 77)).toEqual(items.slice(31, 77));
      }),
      { numRuns: cases(10, 40) },
    );
  });

  it('is empty again when everything is deleted', () => {
    let tree = emptyTree<Item>();
    for (let n = 0; n < 5000; n++) tree = treeSet(tree, { key: keyOf((n * 7919) % 5000), value: n });
    for (let n = 0; n < 5000; n++) tree = treeDelete(tree, keyOf((n * 104_729) % 5000));
    expect(tree.size).toBe(0);
    expect(contents(tree)).toEqual([]);
    expect(contents(treeSet(tree, { key: 'a', value: 1 }))).toEqual([{ key: 'a', value: 1 }]);
  });
});
