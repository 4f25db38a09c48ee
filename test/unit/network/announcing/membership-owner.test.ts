import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ownerOf } from '../../../../src/network/announcing/membership.ts';

const addresses = Array.from({ length: 1000 }, (_, i) => `192.0.${i >> 8}.${i & 255}`);
const nodesOf = (count: number): string[] => Array.from({ length: count }, (_, i) => `node-${i + 1}`);

test('without nodes an address has no owner', () => {
  expect(ownerOf('192.0.2.1', [])).toBeUndefined();
});

test('every node finds the same owner, whatever order it knows the nodes in', () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 8 }), (address, nodes) => {
      const owner = ownerOf(address, nodes);
      expect(nodes).toContain(owner);
      expect(ownerOf(address, nodes.toReversed())).toBe(owner);
    }),
  );
});

test('a node that comes takes addresses, and one that goes leaves its own; no other moves', () => {
  fc.assert(
    fc.property(
      fc.array(fc.ipV6(), { maxLength: 20 }),
      fc.uniqueArray(fc.string(), { minLength: 2, maxLength: 8 }),
      (some, nodes) => {
        const [gone = '', ...rest] = nodes;
        for (const address of some) {
          const before = ownerOf(address, nodes);
          const after = ownerOf(address, rest);
          if (before !== gone) expect(after).toBe(before);
        }
      },
    ),
  );
});

test.each([2, 3, 10, 50])('%d nodes own about as many addresses each', (count) => {
  const owned = Map.groupBy(addresses, (address) => ownerOf(address, nodesOf(count)));
  const share = addresses.length / count;
  // Six standard deviations of a fair choice.
  const most = share + 6 * Math.sqrt(share);
  expect(owned.size).toBe(count);
  for (const list of owned.values()) expect(list.length).toBeLessThan(most);
});

test.each([3, 10])(
  'of 1,000 addresses on %d nodes, one node more takes its share, to 5 %% of all',
  (count) => {
    const before = addresses.map((address) => ownerOf(address, nodesOf(count)));
    const after = addresses.map((address) => ownerOf(address, nodesOf(count + 1)));
    const moved = after.filter((owner, i) => owner !== before[i]);
    expect(moved.length / 1000).toBeLessThanOrEqual(1 / (count + 1) + 0.05);
    expect(new Set(moved)).toEqual(new Set([`node-${count + 1}`]));
  },
);
