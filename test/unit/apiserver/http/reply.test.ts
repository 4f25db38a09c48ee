import { describe, expect, test } from 'vitest';
import { warningHeaders } from '../../../../src/apiserver/http/reply.ts';

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

  test('are kept until they are too many', () => {
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
