import fc from 'fast-check';
import { expect, test } from 'vitest';
import { plain } from '../../../../../src/objects/plain.ts';
import { plainDeep } from '../../../../../src/page/browser/state/plain-deep.ts';

/** The texts of a value, its keys too, in their order. */
function textsOf(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsOf);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => [key, ...textsOf(each)]);
}

function numbersOf(value: unknown): readonly number[] {
  if (typeof value === 'number') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(numbersOf) : [];
}

test('each text of a message is plain, keys too, and nothing else is another', () => {
  const sign = fc.constantFrom('a', 'é', '😀', '\n', '\u001b', '[2J', '\u202e', '\u2028', '\u0085');
  const text = fc.string({ unit: sign, maxLength: 4 });
  fc.assert(
    fc.property(fc.array(fc.tuple(text, text, fc.nat())), (given) => {
      const message = {
        rows: given.map(([key, value, count]) => [`a${key}`, { [`b${value}`]: value, count }]),
      };
      const shown = plainDeep(message);
      expect(textsOf(shown)).toEqual(textsOf(message).map(plain));
      expect(numbersOf(shown)).toEqual(given.map(([, , count]) => count));
    }),
  );
});

test('a message that is plain is not copied', () => {
  const message = { rows: { pod: [{ key: 'shop/a', labels: { app: 'a' } }] } };
  expect(plainDeep(message)).toBe(message);
});
