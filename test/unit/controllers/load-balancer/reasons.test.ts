import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { firstFew, loadBalancerReasons } from '../../../../src/controllers/load-balancer/reasons.ts';

test('docs/pools.md explains every reason, and no other', () => {
  const text = readFileSync(new URL('../../../../docs/pools.md', import.meta.url), 'utf8');
  const table = /\| Reason +\|[^\n]*\n\|[-| ]+\n((?:\|[^\n]*\n)+)/.exec(text)?.[1] ?? '';
  const explained = [...table.matchAll(/^\| `(\w+)`/gm)].map(([, reason]) => reason);
  expect(explained).toEqual([...loadBalancerReasons]);
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
