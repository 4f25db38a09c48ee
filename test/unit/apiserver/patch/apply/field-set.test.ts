import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import {
  fieldSetDifference,
  emptySet,
  type FieldSet,
  intersection,
  isEmptySet,
  leafSet,
  fieldPathsOf,
  setOf,
  union,
  withoutPath,
} from '../../../../../src/apiserver/patch/apply/field-set.ts';
import {
  decodeFields,
  encodeFields,
  FieldsV1Error,
} from '../../../../../src/apiserver/patch/apply/managers.ts';
import { compareElements, showPath } from '../../../../../src/apiserver/patch/apply/field-set.ts';

const element = fc.constantFrom(
  'f:a',
  'f:b',
  'f:c.d/e',
  'k:{"port":80}',
  'k:{"port":443}',
  'v:"x"',
  'v:1',
  'i:0',
);
const paths = fc.array(fc.array(element, { minLength: 1, maxLength: 3 }), { maxLength: 8 });

function setFrom(list: readonly string[][]): FieldSet {
  return list.reduce((set, path) => union(set, singlePath(path)), emptySet);
}

function singlePath(path: readonly string[]): FieldSet {
  const [first, ...rest] = path;
  return first === undefined ? leafSet : setOf(false, new Map([[first, singlePath(rest)]]));
}

function texts(set: FieldSet): string[] {
  return fieldPathsOf(set)
    .map((path) => path.join(' '))
    .sort();
}

/** A trie without empty branches, which every operation must leave. */
function isClean(set: FieldSet): boolean {
  return [...set.children.values()].every((child) => !isEmptySet(child) && isClean(child));
}

describe('field sets', () => {
  it('behave as sets of paths', () => {
    fc.assert(
      fc.property(paths, paths, (left, right) => {
        const [a, b] = [setFrom(left), setFrom(right)];
        const [inA, inB] = [texts(a), texts(b)];
        expect(texts(a)).toEqual([...new Set(left.map((path) => path.join(' ')))].sort());
        expect(texts(union(a, b))).toEqual([...new Set([...inA, ...inB])].sort());
        expect(texts(fieldSetDifference(a, b))).toEqual(inA.filter((path) => !inB.includes(path)));
        expect(texts(intersection(a, b))).toEqual(inA.filter((path) => inB.includes(path)));
        expect(texts(withoutPath(a, ['a']))).toEqual(inA.filter((path) => !/^f:a( |$)/.test(path)));
        for (const set of [union(a, b), fieldSetDifference(a, b), intersection(a, b)])
          expect(isClean(set)).toBe(true);
      }),
    );
  });

  it('survive FieldsV1', () => {
    fc.assert(
      fc.property(paths, (list) => {
        const set = setFrom(list);
        const fields = encodeFields(set);
        expect(texts(decodeFields(fields))).toEqual(texts(set));
        expect(texts(decodeFields(JSON.parse(JSON.stringify(fields))))).toEqual(texts(set));
        // Equal sets share one FieldsV1.
        expect(encodeFields(setFrom(list.toReversed()))).toBe(fields);
      }),
    );
  });
});

describe('FieldsV1', () => {
  it('is sorted: fields, keys, values, positions', () => {
    const set = setFrom([
      ['i:10'],
      ['i:9'],
      ['v:"b"'],
      ['v:2'],
      ['v:10'],
      ['k:{"port":443}'],
      ['k:{"port":80}', 'f:x'],
      ['k:{"port":80}'],
      ['f:z'],
      ['f:B'],
    ]);
    expect(JSON.stringify(encodeFields(set))).toBe(
      '{"f:B":{},"f:z":{},"k:{\\"port\\":80}":{".":{},"f:x":{}},"k:{\\"port\\":443}":{},"v:2":{},"v:10":{},"v:\\"b\\"":{},"i:9":{},"i:10":{}}',
    );
  });

  it('is not confused by names that look like its own notation', () => {
    const sets = [
      setFrom([['f:a'], ['f:b']]),
      setFrom([['f:a\nf:b']]),
      setFrom([['f:a+3:f:b']]),
      setFrom([['f:a', 'f:b']]),
      setFrom([['f:a(+3:f:b)']]),
    ];
    const encoded = sets.map((set) => JSON.stringify(encodeFields(set)));
    expect(new Set(encoded).size).toBe(sets.length);
  });

  it('sorts the members of a key', () => {
    expect(texts(decodeFields({ 'k:{"protocol":"TCP", "port":80}': {} }))).toEqual([
      'k:{"port":80,"protocol":"TCP"}',
    ]);
  });

  it.each([
    { x: {} },
    { 'f:a': 1 },
    { 'k:1': {} },
    { 'k:{': {} },
    { 'v:': {} },
    { 'i:-1': {} },
    { 'i:x': {} },
    'text',
    1,
  ])('refuses %j', (fields) => {
    expect(() => decodeFields(fields)).toThrow(FieldsV1Error);
  });

  it('leaves path elements of later versions out, and owns what has nothing else below it', () => {
    const read = (fields: object): unknown => encodeFields(decodeFields(fields));
    expect(read({ 'f:a': {}, 'r:b': { 'f:c': {} } })).toEqual({ 'f:a': {} });
    expect(read({ 'f:a': { 'r:b': {} }, 'f:c': null })).toEqual({ 'f:a': {}, 'f:c': {} });
  });

  it('refuses what is nested beyond reason', () => {
    let deep: Record<string, unknown> = {};
    for (let i = 0; i < 2_000; i++) deep = { 'f:a': deep };
    expect(() => decodeFields(deep)).toThrow('nested too deeply');
  });
});

describe('paths', () => {
  it('are shown as conflicts show them', () => {
    expect(showPath(['f:spec', 'f:ports', 'k:{"port":80,"protocol":"TCP"}', 'f:targetPort'])).toBe(
      '.spec.ports[port=80,protocol="TCP"].targetPort',
    );
    expect(showPath(['f:metadata', 'f:finalizers', 'v:"x"'])).toBe('.metadata.finalizers[="x"]');
    expect(showPath(['f:a', 'i:3'])).toBe('.a[3]');
  });

  it('have a total order', () => {
    fc.assert(
      fc.property(element, element, element, (a, b, c) => {
        expect(Math.sign(compareElements(a, b)) + Math.sign(compareElements(b, a))).toBe(0);
        if (compareElements(a, b) < 0 && compareElements(b, c) < 0)
          expect(compareElements(a, c)).toBeLessThan(0);
      }),
    );
  });
});
