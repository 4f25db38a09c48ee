import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse, type Tags } from 'yaml';
import { encode } from '../../../../src/apiserver/http/encoding.ts';
import { withoutDot } from '../../../../src/apiserver/yaml.ts';
import { warningHeaders } from '../../../../src/apiserver/http/warnings.ts';

describe('encode', () => {
  test('YAML has its members sorted and its lists at the depth of their key', () => {
    const value = { kind: 'X', apiVersion: 'v1', items: [{ b: 1, a: ['yes', '1', 'no', 'on'] }], empty: {} };
    expect(encode(value, 'application/yaml')).toBe(
      'apiVersion: v1\nempty: {}\nitems:\n- a:\n  - "yes"\n  - "1"\n  - "no"\n  - "on"\n  b: 1\nkind: X\n',
    );
  });

  test('what is written as YAML is read back', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        // as a body has it: JSON knows no negative zero
        const value: unknown = JSON.parse(JSON.stringify(JSON.parse(text)));
        const options = { version: '1.1', customTags: (tags: Tags) => tags.map(withoutDot) } as const;
        expect(parse(encode(value, 'application/yaml').toString(), options)).toEqual(value);
      }),
      { numRuns: 200 },
    );
  });
});

describe('Warning headers', () => {
  test('quote as Go does, and say nothing twice', () => {
    expect(warningHeaders(['unknown field "x"', 'back\\slash', 'unknown field "x"'])).toEqual([
      '299 - "unknown field \\"x\\""',
      '299 - "back\\\\slash"',
    ]);
  });

  test('cannot end the header, and carry other letters as UTF-8', () => {
    expect(warningHeaders(['a\r\nSet-Cookie: x'])).toEqual(['299 - "aSet-Cookie: x"']);
    expect(Buffer.from(warningHeaders(['é'])[0] ?? '', 'latin1').toString('utf8')).toBe('299 - "é"');
  });

  test('are told until they are too many', () => {
    const headers = warningHeaders(Array.from({ length: 60_000 }, (_, i) => `unknown field "f${i}"`));
    const characters = headers.reduce((sum, header) => sum + header.length, 0);
    expect(headers[0]).toBe('299 - "unknown field \\"f0\\""');
    expect(characters).toBeGreaterThan(4096);
    expect(characters).toBeLessThan(8192);
  });

  test('are cut when there is too much of them', () => {
    const headers = warningHeaders(['a'.repeat(4000), 'b'.repeat(4000)]);
    expect(headers.map((header) => header.length)).toEqual([264, 264]);
  });
});

test('YAML quotes what Go would read as something else than text, and a dot alone not', () => {
  expect(encode({ '.': {}, a: '1.', b: 'yes', c: '.' }, 'application/yaml')).toBe(
    '.: {}\na: "1."\nb: "yes"\nc: .\n',
  );
});
