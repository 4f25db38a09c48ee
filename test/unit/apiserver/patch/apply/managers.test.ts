import { expect, test } from 'vitest';
import { decodeFields, encodeFields } from '../../../../../src/apiserver/patch/apply/managers.ts';
import { type FieldSet, leafSet, setOf } from '../../../../../src/apiserver/patch/apply/field-set.ts';
import { heapUsed } from '../../../../support/heap.ts';

function fields(names: readonly string[]): FieldSet {
  return setOf(
    false,
    new Map([['f:data', setOf(false, new Map(names.map((name) => [`f:${name}`, leafSet])))]]),
  );
}

test('equal sets share one FieldsV1, whatever the order of their fields', () => {
  const first = encodeFields(fields(['b', 'a']));
  expect(first).toEqual({ 'f:data': { 'f:a': {}, 'f:b': {} } });
  expect(encodeFields(fields(['b', 'a']))).toBe(first);
  expect(encodeFields(fields(['a', 'b']))).toBe(first);
});

test('sets come back as they were, and no more are remembered than fit', () => {
  const many = (count: number, of: string): string[] =>
    Array.from({ length: count }, (_, n) => `${of}-${n}-${'x'.repeat(40)}`);
  const before = heapUsed();
  for (let i = 0; i < 2000; i++) encodeFields(fields(many(200, `small-${i}`)));
  for (let i = 0; i < 200; i++) {
    const set = fields(many(2000, `large-${i}`));
    expect(decodeFields(encodeFields(set))).toEqual(set);
  }
  const grown = heapUsed() - before;
  expect(grown).toBeLessThan(64 * 2 ** 20);
});
