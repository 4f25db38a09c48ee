import { expect, test } from 'vitest';
import { firstFew, maxOf, pushAll } from '../../../src/objects/lists.ts';

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

test.each([
  [[], ''],
  [['a', 'b'], 'a, b'],
  [['a', 'b', 'c', 'd', 'e', 'f', 'g'], 'a, b, c, d, e, and 2 more'],
])('firstFew(%j)', (list, expected) => {
  expect(firstFew(list)).toBe(expected);
});

test('firstFew fits into a condition', () => {
  const list = Array.from({ length: 10_000 }, () => 'x'.repeat(10_000));
  expect(firstFew(list, '; ').length).toBeLessThan(2000);
});
