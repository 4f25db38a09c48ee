import { describe, expect, it } from 'vitest';

import { applyJsonPatch, PatchOperationError } from '../../../../src/apiserver/patch/json-patch.ts';
import { parsePatch } from '../../../../src/apiserver/patch/patch.ts';

function document(): Record<string, unknown> {
  return { a: { b: 1, 'x/y~z': 2 }, list: ['p', 'q'], n: null };
}

describe('applyJsonPatch', () => {
  it.each([
    ['add', [{ op: 'add', path: '/a/c', value: [1] }], { a: { b: 1, 'x/y~z': 2, c: [1] } }],
    ['add in front', [{ op: 'add', path: '/list/0', value: 'o' }], { list: ['o', 'p', 'q'] }],
    ['add behind', [{ op: 'add', path: '/list/-', value: 'r' }], { list: ['p', 'q', 'r'] }],
    ['add at the end by position', [{ op: 'add', path: '/list/2', value: 'r' }], { list: ['p', 'q', 'r'] }],
    ['add counted from the end', [{ op: 'add', path: '/list/-1', value: 'r' }], { list: ['p', 'q', 'r'] }],
    ['replace', [{ op: 'replace', path: '/list/-1', value: 'z' }], { list: ['p', 'z'] }],
    ['replace of what is not there', [{ op: 'replace', path: '/new', value: 1 }], { new: 1 }],
    ['remove with escapes', [{ op: 'remove', path: '/a/x~1y~0z' }], { a: { b: 1 } }],
    ['move', [{ op: 'move', from: '/list/0', path: '/a/b' }], { a: { b: 'p', 'x/y~z': 2 }, list: ['q'] }],
    [
      'copy, which is a copy',
      [
        { op: 'copy', from: '/a', path: '/c' },
        { op: 'add', path: '/c/d', value: 1 },
      ],
      { c: { b: 1, 'x/y~z': 2, d: 1 }, a: { b: 1, 'x/y~z': 2 } },
    ],
    ['test', [{ op: 'test', path: '/a', value: { 'x/y~z': 2, b: 1 } }], {}],
    ['test for null of what is not there', [{ op: 'test', path: '/none', value: null }], {}],
    ['a path without its slash', [{ op: 'add', path: 'junk/top', value: 1 }], { top: 1 }],
    ['nothing', [], {}],
  ])('%s', (_name, patch, changed) => {
    expect(applyJsonPatch(document(), patch)).toEqual({ ...document(), ...changed });
  });

  it.each([
    { op: 'add', path: '/none/deep', value: 1 },
    { op: 'add', path: '/n/deep', value: 1 },
    { op: 'add', path: '/list/3', value: 1 },
    { op: 'add', path: '/list/x', value: 1 },
    { op: 'remove', path: '/none' },
    { op: 'remove', path: '/list/2' },
    { op: 'remove', path: '/a/constructor' },
    { op: 'replace', path: '', value: 1 },
    { op: 'add', path: '', value: {} },
    { op: 'move', from: '/none', path: '/x' },
    { op: 'test', path: '/a/b', value: '1' },
    { op: 'test', path: '/a/b' },
    { op: 'test', path: '/toString', value: 1 },
    { op: 'explode', path: '/a' },
    { op: 'add', value: 1 },
    {},
  ])('fails: %j', (operation) => {
    expect(() => applyJsonPatch(document(), [operation])).toThrow(PatchOperationError);
  });

  it('replaces and tests the whole document', () => {
    expect(applyJsonPatch({ a: 1 }, [{ op: 'replace', path: '', value: [1] }])).toEqual([1]);
    expect(
      applyJsonPatch({ a: 1 }, [
        { op: 'test', path: '', value: { a: 1 } },
        { op: 'replace', path: '', value: {} },
        { op: 'add', path: '/b', value: 2 },
      ]),
    ).toEqual({ b: 2 });
  });

  it('finds strings only where they are spelt as Go spells them', () => {
    const tests = (value: string): boolean => {
      const body = Buffer.from(`[{"op":"test","path":"/t","value":{"a":[${value}]}}]`);
      const { value: patch, misspelt } = parsePatch({ type: 'json', bytes: body, fieldValidation: 'Ignore' });
      try {
        return applyJsonPatch({ t: { a: [JSON.parse(value)] } }, patch, misspelt) !== undefined;
      } catch {
        return false;
      }
    };
    for (const text of [String.raw`"a\u003cb\u0026"`, '"é\u{1F600}"', String.raw`"\"\\\n\u0001"`, '""']) {
      expect(tests(text), text).toBe(true);
    }
    for (const text of [
      '"a<b"',
      '"&"',
      '">"',
      String.raw`"\u00e9"`,
      String.raw`"\/"`,
      String.raw`"\u0041"`,
    ]) {
      expect(tests(text), text).toBe(false);
    }
  });

  it('sorts the members of what a path goes through, and of nothing else', () => {
    const patched = applyJsonPatch({ z: 1, a: { y: 1, b: 2 }, c: { y: 1, b: 2 } }, [
      { op: 'add', path: '/a/c', value: 3 },
    ]);
    expect(JSON.stringify(patched)).toBe('{"a":{"b":2,"c":3,"y":1},"c":{"y":1,"b":2},"z":1}');
  });

  it('does not touch prototypes', () => {
    const patched = applyJsonPatch(document(), [
      { op: 'add', path: '/__proto__', value: { polluted: true } },
      { op: 'add', path: '/__proto__/more', value: 1 },
    ]);
    expect(JSON.stringify(patched)).toContain('"__proto__":{"more":1,"polluted":true}');
    expect(Object.getPrototypeOf(patched)).toBe(Object.prototype);
    expect({}).not.toHaveProperty('polluted');
    expect(() => applyJsonPatch({}, [{ op: 'add', path: '/constructor/prototype/x', value: 1 }])).toThrow(
      PatchOperationError,
    );
  });

  it('has limits', () => {
    const test = { op: 'test', path: '/n', value: null };
    expect(() =>
      applyJsonPatch(
        document(),
        Array.from({ length: 10_001 }, () => test),
      ),
    ).toThrow('The allowed maximum operations in a JSON patch is 10000, got 10001');
    const doubling = Array.from({ length: 40 }, (_, i) => ({ op: 'copy', from: '/a', path: `/a/${i}` }));
    expect(() => applyJsonPatch(document(), doubling)).toThrow(PatchOperationError);
  });
});
