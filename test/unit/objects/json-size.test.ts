import fc from 'fast-check';
import { expect, test } from 'vitest';
import { countJsonValues } from '../../../src/objects/json.ts';

/** Values as they are counted: one that is empty counts as two, and the whole does not count. */
function count(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const members = Object.values(value);
  return members.reduce<number>((sum, member) => sum + count(member), Math.max(1, members.length));
}

test('the values of any JSON text are counted', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(countJsonValues(JSON.stringify(value), Infinity)).toBe(count(value));
    }),
  );
});

test('counting ends behind the limit', () => {
  expect(countJsonValues('['.repeat(1_000_000), 10)).toBe(11);
  expect(countJsonValues('"'.repeat(1_000_001), 10)).toBe(0);
});
