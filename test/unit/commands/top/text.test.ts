import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fold, rowsOf, widthOf } from '../../../../src/commands/top/text.ts';

test('columns are counted as terminals do', () => {
  expect(['abc', 'é', 'e\u0301', '日本', '😀', '→', '👩\u200d🚀'].map(widthOf)).toEqual([
    3, 1, 1, 4, 2, 1, 4,
  ]);
  expect(rowsOf('\u001b[1mabc\u001b[22m', 3)).toBe(1);
  expect(rowsOf('日本', 3)).toBe(2);
  expect(rowsOf('', 3)).toBe(1);
});

test('lines break at spaces and commas, and within what is longer', () => {
  expect(fold('no Pod has the labels', 10)).toEqual(['no Pod has', 'the labels']);
  expect(fold('no Pod has the labels', 12, 2)).toEqual(['no Pod has', '  the labels']);
  expect(fold('80/TCP,443/TCP', 10)).toEqual(['80/TCP,', '443/TCP']);
  expect(fold('abcdefgh', 3)).toEqual(['abc', 'def', 'gh']);
  expect(fold('short', 80)).toEqual(['short']);
});

test('nothing but spaces is lost, and no line is longer', () => {
  const words = fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }));
  fc.assert(
    fc.property(words, fc.integer({ min: 2, max: 60 }), fc.nat(20), (list, width, indent) => {
      const text = list.join(' ').replaceAll(/[\u0000-\u001f\u007f]/g, '');
      const lines = fold(text, width, indent);
      expect(lines.join('').replaceAll(/\s/g, '')).toBe(text.replaceAll(/\s/g, ''));
      for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(width);
    }),
  );
});
