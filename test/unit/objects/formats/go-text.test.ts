import { expect, test } from 'vitest';
import { goJson, goQuote, isPrintable } from '../../../../src/objects/formats/go-text.ts';

test.each([
  ['plain "text" \\ <&>', '"plain \\"text\\" \\\\ <&>"'],
  ['\u0007\b\f\n\r\t\v', '"\\a\\b\\f\\n\\r\\t\\v"'],
  ['\u0000\u001f\u007f', '"\\x00\\x1f\\x7f"'],
  ['é世😀', '"é世😀"'],
  ['\u0080\u00a0\u200b\u{e0001}', '"\\u0080\\u00a0\\u200b\\U000e0001"'],
  ['\ud800', '"\ufffd"'],
])('%j is quoted as Go does', (text, quoted) => {
  expect(goQuote(text)).toBe(quoted);
});

test('JSON in texts escapes what means something in HTML', () => {
  expect(goJson({ a: ['<x>', '&', '\u2028'] })).toBe('{"a":["\\u003cx\\u003e","\\u0026","\\u2028"]}');
});

test('the only printable space is the ASCII one', () => {
  expect([' ', '\u00a0', '\n', 'ä'].map(isPrintable)).toEqual([true, false, false, true]);
});
