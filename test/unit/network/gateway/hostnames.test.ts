import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  commonHostname,
  compareHostnames,
  coversHostname,
  widerHostnames,
  hostCandidates,
} from '../../../../src/network/gateway/hostnames.ts';

test.each([
  ['', '', ''],
  ['', 'a.test', 'a.test'],
  ['', '*.test', '*.test'],
  ['a.test', 'a.test', 'a.test'],
  ['a.test', 'b.test', undefined],
  ['*.test', 'a.test', 'a.test'],
  ['*.test', 'b.a.test', 'b.a.test'],
  ['*.test', '*.a.test', '*.a.test'],
  ['*.test', '*.test', '*.test'],
  ['*.a.test', 'a.test', undefined],
  ['*.a.test', '*.b.test', undefined],
  ['*.a.test', 'ba.test', undefined],
  ['*.a.test', 'xa.test', undefined],
])('%j and %j have %j in common', (a, b, common) => {
  expect(commonHostname(a, b)).toBe(common);
  expect(commonHostname(b, a)).toBe(common);
});

test('the most specific comes first', () => {
  const sorted = ['a.b.c.test', 'a.test', '*.b.c.test', '*.c.test', '*.test', ''];
  expect(sorted.toReversed().toSorted(compareHostnames)).toEqual(sorted);
});

test('wider hostnames are those that cover one', () => {
  expect([...widerHostnames('a.b.test')]).toEqual(['*.b.test', '*.test', '']);
  expect([...widerHostnames('*.b.test')]).toEqual(['*.test', '']);
  expect([...widerHostnames('')]).toEqual([]);

  const names = fc
    .tuple(fc.constantFrom('', '*.'), fc.array(fc.constantFrom('a', 'b'), { minLength: 1, maxLength: 3 }))
    .map(([wildcard, labels]) => `${wildcard}${labels.join('.')}`);
  const hostname = fc.oneof(names, fc.constant(''));
  fc.assert(
    fc.property(hostname, hostname, (wide, narrow) => {
      const isWider = [...widerHostnames(narrow)].includes(wide);
      expect(coversHostname(wide, narrow)).toBe(wide === narrow || isWider);
    }),
  );
});

test('a host may be found by itself and the wildcards over it, the longest first', () => {
  expect([...hostCandidates('a.b.example.com')]).toEqual([
    ...['a.b.example.com', '*.b.example.com', '*.example.com', '*.com', ''],
  ]);
  expect([...hostCandidates('localhost')]).toEqual(['localhost', '']);
  expect([...hostCandidates('')]).toEqual(['']);
});
