import { expect, test } from 'vitest';
import { firstFew } from '../../../../src/controllers/load-balancer/first-few.ts';

test.each([
  [[], ''],
  [['a', 'b'], 'a, b'],
  [['a', 'b', 'c', 'd', 'e', 'f', 'g'], 'a, b, c, d, e, and 2 more'],
])('%j', (list, expected) => {
  expect(firstFew(list)).toBe(expected);
});

test('never fills a condition', () => {
  const hostile = Array.from({ length: 10_000 }, () => 'x'.repeat(10_000));
  expect(firstFew(hostile, '; ').length).toBeLessThan(2000);
});
