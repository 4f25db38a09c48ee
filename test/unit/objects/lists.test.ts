import { expect, test } from 'vitest';
import { maxOf, pushAll } from '../../../src/objects/lists.ts';

const million = Array.from({ length: 1_000_000 }, (_, i) => i);

test('a million items are appended', () => {
  const list = [0];
  pushAll(list, million, [7]);
  expect([list.length, list.at(-1)]).toEqual([1_000_002, 7]);
});

test('the largest of a million numbers is found', () => {
  expect(maxOf(million)).toBe(999_999);
  expect(maxOf([])).toBe(-Infinity);
});
