import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { indentJson, wantsPretty } from '../../../../src/apiserver/http/long-body.ts';

describe('indenting', () => {
  test('says what JSON.stringify says, whether the text was indented or not', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(undefined, 2, '\t'), (text, indent) => {
        const value: unknown = JSON.parse(text);
        expect(indentJson(JSON.stringify(value, null, indent))).toBe(JSON.stringify(value, null, 2));
      }),
    );
  });

  test('leaves numbers and the insides of strings as they are written', () => {
    expect(indentJson('{"a":1.10e2,"b":" x:\\" ,{"}')).toBe('{\n  "a": 1.10e2,\n  "b": " x:\\" ,{"\n}');
  });
});

test.each([
  ['pretty=true', undefined, true],
  ['pretty=1', undefined, true],
  ['pretty=yes', 'curl/8', false],
  ['pretty=false', 'curl/8', false],
  ['pretty=', 'curl/8', true],
  ['', 'curl/8', true],
  ['', 'Mozilla/5.0 (X11)', true],
  ['', 'kubectl/v1.36', false],
  ['', undefined, false],
])('?%s from %s: %s', (query, agent, wanted) => {
  expect(wantsPretty(query, agent)).toBe(wanted);
});
