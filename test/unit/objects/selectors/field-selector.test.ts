import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  escapeFieldValue,
  matchesFields,
  parseFieldSelector,
} from '../../../../src/objects/selectors/field-selector.ts';

describe('parseFieldSelector', () => {
  it.each([
    ['', []],
    [',,', []],
    ['a=b', [{ field: 'a', operator: '=', value: 'b' }]],
    ['a==b', [{ field: 'a', operator: '=', value: 'b' }]],
    ['a!=b', [{ field: 'a', operator: '!=', value: 'b' }]],
    ['=a', [{ field: '', operator: '=', value: 'a' }]],
    ['!=a', [{ field: '', operator: '!=', value: 'a' }]],
    ['a=', [{ field: 'a', operator: '=', value: '' }]],
    [
      'b=1,a=x\\,y\\=z\\\\',
      [
        { field: 'a', operator: '=', value: 'x,y=z\\' },
        { field: 'b', operator: '=', value: '1' },
      ],
    ],
  ])('reads %j', (text, expected) => {
    expect(parseFieldSelector(text)).toEqual(expected);
  });

  it.each([
    ['metadata.name', "invalid selector: 'metadata.name'; can't understand 'metadata.name'"],
    ['b=1,a', "invalid selector: 'b=1,a'; can't understand 'a'"],
    ['a=\\b', 'invalid field selector: invalid escape sequence: \\b'],
    ['a=b\\', 'invalid field selector: invalid escape sequence: \\'],
    ['a=b=c', 'invalid field selector: unescaped character in value: 61'],
  ])('refuses %j', (text, message) => {
    expect(() => parseFieldSelector(text)).toThrow(message);
  });

  it('has a bound of terms', () => {
    const terms = Array.from({ length: 10_000 }, () => 'a=b').join(',');
    expect(parseFieldSelector(terms)).toHaveLength(10_000);
    expect(() => parseFieldSelector(`${terms},a=b`)).toThrow('more than 10000 terms');
  });

  it('reads back any escaped value', () => {
    fc.assert(
      fc.property(fc.string(), (value) => {
        expect(parseFieldSelector(`f=${escapeFieldValue(value)}`)).toEqual([
          { field: 'f', operator: '=', value },
        ]);
      }),
    );
  });
});

describe('matchesFields', () => {
  it.each([
    ['a=1', true],
    ['a!=1', false],
    ['b=', true],
    ['b!=', false],
    ['toString=', true],
    ['a=1,b=2', false],
  ])('%s: %s', (text, expected) => {
    expect(matchesFields(parseFieldSelector(text), { a: '1' })).toBe(expected);
  });
});
