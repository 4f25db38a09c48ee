import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { parseJson } from '../../../../src/apiserver/schema/json.ts';
import { JsonSyntaxError, RawNumber } from '../../../../src/apiserver/schema/json.ts';
import { parseJsonSlowly } from '../../../../src/apiserver/schema/json.ts';

function errorOf(text: string): string {
  try {
    parseJson(Buffer.from(text));
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error.message;
    throw error;
  }
  return 'no error';
}

describe('parseJson', () => {
  it.each([
    ['', 'unexpected end of JSON input'],
    ['   ', 'unexpected end of JSON input'],
    ['hello', "invalid character 'h' looking for beginning of value"],
    ['{"a":', 'unexpected end of JSON input'],
    ['{"a"', 'unexpected end of JSON input'],
    ['{', 'unexpected end of JSON input'],
    ['{"apiVersion":"v1",}', "invalid character '}' looking for beginning of object key string"],
    ['{a:1}', "invalid character 'a' looking for beginning of object key string"],
    ['{"a" 1}', "invalid character '1' after object key"],
    ['{"a":1 "b":2}', `invalid character '"' after object key:value pair`],
    ['[1 2]', "invalid character '2' after array element"],
    ['[1,]', "invalid character ']' looking for beginning of value"],
    ['{} x', "invalid character 'x' after top-level value"],
    ['"a\nb"', "invalid character '\\n' in string literal"],
    ['"\\q"', "invalid character 'q' in string escape code"],
    ['"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"],
    ['-x', "invalid character 'x' in numeric literal"],
    ['1.x', "invalid character 'x' after decimal point in numeric literal"],
    ['1ex', "invalid character 'x' in exponent of numeric literal"],
    ['01', "invalid character '1' after top-level value"],
    ['trux', "invalid character 'x' in literal true (expecting 'e')"],
    ['nul', 'unexpected end of JSON input'],
    ["'a'", "invalid character '\\'' looking for beginning of value"],
    ['ä', "invalid character 'Ã' looking for beginning of value"],
    ['\ufeff{}', "invalid character 'ï' looking for beginning of value"],
    ['['.repeat(1001), 'exceeded max depth'],
    [`${'{"a":'.repeat(1001)}1`, 'exceeded max depth'],
  ])('%j fails as in Go', (text, message) => {
    expect(errorOf(text)).toBe(message);
  });

  it('keeps the spelling of numbers that JavaScript would write otherwise', () => {
    const { value, hasRawNumbers } = parseJson(Buffer.from('[80.0,8e1,-0,99999999999,12345678901234567890]'));
    expect(hasRawNumbers).toBe(true);
    expect(value).toEqual([
      new RawNumber('80.0'),
      new RawNumber('8e1'),
      new RawNumber('-0'),
      99999999999,
      new RawNumber('12345678901234567890'),
    ]);
  });

  it('records repeated keys with all their values in order', () => {
    const parsed = parseJson(Buffer.from('{"x":{"k":1,"j":2,"k":3},"y":1}'));
    const { value, repeated } = parsed;
    expect(value).toEqual({ x: { k: 3, j: 2 }, y: 1 });
    const inner: unknown = typeof value === 'object' && value !== null ? Object.values(value)[0] : undefined;
    expect([...(repeated ?? [])]).toEqual([
      [
        inner,
        [
          ['k', 1],
          ['j', 2],
          ['k', 3],
        ],
      ],
    ]);
  });

  it('takes __proto__ as a key like any other', () => {
    for (const text of ['{"__proto__":{"a":1}}', '{"__proto__":{"a":1},"n":1.0}']) {
      const { value } = parseJson(Buffer.from(text));
      expect(Object.keys(value ?? {})[0]).toBe('__proto__');
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    }
  });

  it('replaces surrogates without their other half and bytes that are no UTF-8', () => {
    expect(parseJson(Buffer.from('"\\ud800x"')).value).toBe('\ufffdx');
    expect(parseJson(Buffer.from('"\\ud83d\\ude00"')).value).toBe('😀');
    expect(parseJson(Buffer.from([0x22, 0xff, 0x22])).value).toBe('\ufffd');
  });

  it('reads what JSON.stringify writes, fast and slow alike', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const expected: unknown = JSON.parse(text);
        expect(JSON.stringify(parseJson(Buffer.from(text)).value)).toBe(JSON.stringify(expected));
        expect(JSON.stringify(parseJsonSlowly(text).value)).toBe(JSON.stringify(expected));
      }),
    );
  });

  it('accepts exactly what JSON.parse accepts', () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"',
      '1',
      '-',
      '.5',
      'e3',
      'null',
      'true',
      ' ',
      '\\',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        const text = parts.join('');
        let valid = true;
        try {
          JSON.parse(text);
        } catch {
          valid = false;
        }
        expect(errorOf(text) === 'no error').toBe(valid);
      }),
      { numRuns: 2000 },
    );
  });
});
