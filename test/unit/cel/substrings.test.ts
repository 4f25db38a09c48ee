import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { indexOfPart, lastIndexOfPart, splitAtPart } from '../../../src/cel/library/strings.ts';

/** Long enough, both together, that the search is ours. */
const text = fc
  .string({ unit: fc.constantFrom('a'.repeat(200), 'b'.repeat(200)), minLength: 10, maxLength: 30 })
  .chain((long) => fc.nat(long.length - 2000).map((from) => long.slice(from)));
const part = fc
  .string({ unit: fc.constantFrom('a'.repeat(100), 'b'.repeat(100)), minLength: 6, maxLength: 8 })
  .chain((long) => fc.nat(50).map((from) => long.slice(from)));

describe('parts of long texts', () => {
  test('are found where the language finds them', () => {
    fc.assert(
      fc.property(text, part, fc.nat(5000), (whole, wanted, from) => {
        expect(whole.length * wanted.length).toBeGreaterThan(1_000_000);
        expect(indexOfPart(whole, wanted, from)).toBe(whole.indexOf(wanted, from));
        expect(lastIndexOfPart(whole, wanted, from)).toBe(whole.lastIndexOf(wanted, from));
        expect(lastIndexOfPart(whole, wanted)).toBe(whole.lastIndexOf(wanted));
        expect(splitAtPart(whole, wanted)).toEqual(whole.split(wanted));
      }),
      { numRuns: 200 },
    );
  });

  // With the search of the language each takes a minute: the time limit of a test would end it.
  test('are found in time linear to both, whatever they are', () => {
    const same = 'a'.repeat(1_000_000);
    const half = 'a'.repeat(250_000);
    expect(indexOfPart(same, `${half}b${half}`)).toBe(-1);
    expect(lastIndexOfPart(same, `${half}${half}b`)).toBe(-1);
    expect(splitAtPart(same, `${half}b${half}`)).toHaveLength(1);
  });
});
